"""The checkpoint of a hand-written streaming job becomes a flow's: copied once, before the flow's first start.

Only where no row can be lost or doubled by it: the target has to be the table that the job wrote, up to the checkpoint's own
position. The job's folder is left as it is. Decision 0090, decision 0192.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headwater.checkpoints.checksums import agrees
from headwater.checkpoints.conditions import ImportRefused
from headwater.checkpoints.layout import NO_STATE, FlowCheckpoint, FlowState
from headwater.checkpoints.offsets import numbered, query_id, read_offsets
from headwater.checkpoints.whole_folders import clear_unfinished, copy_durably, make_folder
from headwater.delta_log.table_history import table_exists, transaction_version
from headwater.errors import CheckpointUnreadable
from headwater.storage.place import Place
from headwater.storage.walking import files_below, remove_tree

# Where earlier versions left a copy that was not complete.
_COPYING = ".importing"
_SETTINGS = ("spark.sql.shuffle.partitions", "spark.sql.streaming.stateStore.providerClass")


@dataclass(frozen=True)
class ImportTarget:
    """What the flow writes to. ``table``: the Delta table's folder, None for a sink without one. ``sink_id``: as in FlowState.

    ``sources``: how many streams the flow reads. ``repeats``: a batch that the job planned and did not mark as done is skipped by
    the target if it has it: only Spark's own Delta sink does that, under the job's id.
    """

    flow: str
    table: Place | None
    sink_id: str | None
    sources: int
    repeats: bool
    where: object = None


def import_checkpoint(job: Place, checkpoint: FlowCheckpoint, epoch: int, target: ImportTarget) -> int | None:
    """Copy a job's checkpoint into an epoch that was never used; the last batch that is done there, None where there is none.

    Raises:
        ImportRefused: it is no checkpoint, or the target is not certainly the table that it belongs to; nothing was copied.
        LeaseLost: another driver has given the flow a state meanwhile, which stays.
    """
    try:
        identity = query_id(job)
        planned, done = numbered(job / "offsets"), numbered(job / "commits")
        if identity is None or not planned:
            raise _refused(
                target, f"{job} is no checkpoint of a stream that has run", "It has no `metadata` or no `offsets`",
                "Give the folder that the job had as checkpointLocation.",
            )  # fmt: skip
        newest = read_offsets(job, max(planned))
    except CheckpointUnreadable as error:
        raise _refused(
            target, f"The checkpoint {job} can't be read", error.what, "Restore it from a copy."
        ) from None
    last = max(planned & done, default=None)
    if len(newest.sources) != target.sources:
        raise _refused(
            target, f"The checkpoint {job} has positions of {len(newest.sources)} streams", f"the flow reads {target.sources}",
            "Let the flow's query read the same sources as the job's, in the same order.",
        )  # fmt: skip
    _check_target(target, identity, last, newest.batch_id, job)
    if _loses_checksums(job, checkpoint):
        _check_files(target, job)
    state = FlowState(
        epoch=epoch, query_id=identity, sink_id=target.sink_id, state_settings=_settings(job, newest.metadata)
    )
    _copy(job, checkpoint, epoch)
    checkpoint.replace_state(state, NO_STATE)
    return last


def _check_target(target: ImportTarget, identity: str, last: int | None, planned: int, job: Place) -> None:
    if target.table is not None:
        has = transaction_version(target.table, identity) if table_exists(target.table) else None
        if has not in (last, planned):
            state = "has none of its batches" if has is None else f"has its batches up to {has}"
            raise _refused(
                target, f"The checkpoint {job} is at batch {last}", f"the table in {target.table} {state}",
                "Name the table that the job wrote by itself (writeStream.format('delta')): dp.create_streaming_table(..., "
                'path="/its/folder"). What foreachBatch wrote has no batches in its log: begin such a flow at a position, as '
                "docs/coming-from-lakeflow.md says.",
            )  # fmt: skip
    if planned != last and not target.repeats:
        raise _refused(
            target, f"The checkpoint {job} has planned batch {planned} and not marked it as done",
            "the flow's target can't tell whether it has it",
            "Let the job run to the end of a batch once more, then import its checkpoint.",
        )  # fmt: skip


def _loses_checksums(job: Place, checkpoint: FlowCheckpoint) -> bool:
    """Whether the copy has no checksums: on a store Spark neither writes nor removes any, so that old ones would be left over."""
    return isinstance(job, Path) and not isinstance(checkpoint.folder, Path)


def _check_files(target: ImportTarget, job: Place) -> None:
    damaged = next((file for file, _ in files_below(job) if not agrees(file)), None)
    if damaged is not None:
        raise _refused(
            target, f"The checkpoint {job} is damaged", f"{damaged} is not what its checksum says",
            "Restore it from a copy.",
        )  # fmt: skip


def _settings(job: Place, metadata: object) -> dict[str, str]:
    conf = metadata.get("conf") if isinstance(metadata, dict) else None
    if not (job / "state").is_dir() or not isinstance(conf, dict):
        return {}
    return {key: str(conf[key]) for key in _SETTINGS if key in conf}


def _copy(job: Place, checkpoint: FlowCheckpoint, epoch: int) -> None:
    remove_tree(checkpoint.folder / _COPYING, ignore_errors=True)
    without = _loses_checksums(job, checkpoint)

    def keep(file: Place) -> bool:
        return not (without and file.suffix == ".crc")

    make_folder(checkpoint.epoch_folder(epoch), lambda folder: copy_durably(job, folder, keep))
    clear_unfinished(checkpoint.folder)


def _refused(target: ImportTarget, what: str, but: str, remedy: str) -> ImportRefused:
    return ImportRefused(
        f"{target.flow!r} can't go on from it. {what}; {but.removesuffix('.')}.",
        where=target.where,
        remedy=remedy,
    )
