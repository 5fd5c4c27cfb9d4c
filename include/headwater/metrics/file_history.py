"""Which files a flow has taken in, and when: from the file source's log, the checkpoint and the event log."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from headwater.checkpoints.file_source_log import SUPERSEDED_MARK
from headwater.checkpoints.layout import FlowCheckpoint, flow_checkpoint
from headwater.checkpoints.offsets import committed_at, committed_batches, files_seen, read_offsets
from headwater.errors import CheckpointUnreadable
from headwater.event_log.reader import events
from headwater.storage.place import Place
from headwater.storage.walking import in_order


@dataclass(frozen=True)
class IngestedFile:
    """A file of a flow's live epoch.

    ``modified_ms``: its modification time when it was taken in, in ms since 1970. ``state``: ``ingested``,
    ``in flight`` (planned for a batch that is not committed), ``superseded`` (written again since, and to be read or
    read again) or ``skipped`` (there before the first start, with ``includeExistingFiles`` off).
    ``batch``, ``ingested_at``: the query's batch and when it was committed (UTC); None where no record of it is left.
    """

    flow: str
    source: int
    path: str
    modified_ms: int
    state: str
    batch: int | None
    ingested_at: datetime | None

    def as_dict(self) -> dict[str, Any]:
        """The file as JSON values."""
        return asdict(self)


def ingested_files(state_folder: Place, dataset: str, flow: str) -> list[IngestedFile]:
    """The files that the live epoch of ``flow`` into ``dataset`` knows, in the order in which they were taken in.

    Raises:
        CheckpointUnreadable: where a file of the checkpoint is damaged.
    """
    checkpoint = flow_checkpoint(state_folder, dataset, flow)
    folder = checkpoint.live_folder()
    recorded = _from_events(state_folder, flow, int(folder.name)) | _from_checkpoint(folder)
    skipped = _skipped(checkpoint)
    count = max((len(offsets) for offsets, _ in recorded.values()), default=0)
    files: list[IngestedFile] = []
    for source in range(max(count, _sources(folder))):
        ends = sorted(
            (offsets[source], batch, when)
            for batch, (offsets, when) in recorded.items()
            if source < len(offsets) and offsets[source] is not None
        )  # fmt: skip
        last = ends[-1][0] if ends else -1
        for file in files_seen(folder, source):
            place = bisect_left(ends, file.batch_id, key=lambda end: end[0])  # type: ignore[arg-type,return-value]
            end = ends[place] if place < len(ends) else None
            path, mark, _ = file.path.partition(SUPERSEDED_MARK)
            state = "superseded" if mark else "skipped" if path in skipped else "ingested"
            if last is None or file.batch_id > last:
                state = "in flight"
            files.append(
                IngestedFile(
                    flow,
                    source,
                    path,
                    file.timestamp,
                    state,
                    end[1] if end else None,
                    end[2] if end else None,
                )
            )
    return files


_Ends = dict[int, tuple[list[int | None], datetime]]


def _from_checkpoint(folder: Place) -> _Ends:
    """Of the batches that Spark still keeps (the last hundred)."""
    ends: _Ends = {}
    for batch in committed_batches(folder):
        committed = committed_at(folder, batch)
        if committed is None:
            continue  # a running update has just let go of it
        try:
            offsets = read_offsets(folder, batch)
        except CheckpointUnreadable:
            if (folder / "offsets" / str(batch)).exists():
                raise
            continue
        ends[batch] = (_log_offsets(offsets.sources), datetime.fromtimestamp(committed, UTC))
    return ends


def _from_events(state_folder: Place, flow: str, epoch: int) -> _Ends:
    batch_ends: _Ends = {}
    for event in events(state_folder, flow=flow, event_type="flow_progress", level="METRICS"):
        origin = event["origin"]
        ends = event["details"].get("flow_progress", {}).get("end_offsets")
        if ends and origin["batch_id"] is not None and (origin["epoch"] or 0) == epoch:
            when = event["timestamp"]
            moment = when if when.tzinfo else when.replace(tzinfo=UTC)
            batch_ends[int(origin["batch_id"])] = (_log_offsets(ends), moment)
    return batch_ends


def _log_offsets(texts: Iterable[str | None]) -> list[int | None]:
    """The file sources' offsets; None for sources of another kind."""
    offsets: list[int | None] = []
    for text in texts:
        try:
            value = json.loads(text) if text else None
        except json.JSONDecodeError:
            value = None
        is_file_offset = isinstance(value, Mapping) and "logOffset" in value
        offsets.append(int(value["logOffset"]) if is_file_offset else None)  # type: ignore[index]
    return offsets


def _skipped(checkpoint: FlowCheckpoint) -> set[str]:
    records = checkpoint.folder.glob(f"existing-{checkpoint.live_folder().name}-*.json")
    return {path for record in records for path in json.loads(record.read_text(encoding="utf-8"))}


def _sources(folder: Place) -> int:
    root = folder / "sources"
    if not root.is_dir():
        return 0
    return max((int(p.name) + 1 for p in root.iterdir() if p.name.isdigit() and _is_file_log(p)), default=0)


def _is_file_log(folder: Place) -> bool:
    """A Kafka source keeps its first offset in the same place, in another form."""
    try:
        first = next((p for p in in_order(folder.iterdir()) if not p.name.startswith(".")), None)
        if first is None:
            return False
        with first.open("rb") as stream:
            return bool(stream.read(2) == b"v1")
    except FileNotFoundError:
        # Spark removes entries that are in a compacted one since; there is another first one now.
        return folder.is_dir() and _is_file_log(folder)
