"""``cloud_files_state``: the files that flows know, under the names that Lakeflow's function has for its columns."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from headwater.checkpoints.layout import flow_checkpoint
from headwater.errors import UnknownDataset
from headwater.graph.manifest import FlowEntry, Manifest
from headwater.metrics.file_history import IngestedFile, ingested_files
from headwater.storage.place import Place, is_below, is_s3, of_spark

# What is NULL here is known to nobody: Spark's log of files has no times of its own.
COLUMNS = (
    "path STRING, size BIGINT, create_time TIMESTAMP, discovery_time TIMESTAMP, processed_time TIMESTAMP, commit_time TIMESTAMP, "
    "archive_time TIMESTAMP, archive_mode STRING, move_location STRING, source_id STRING, flow_name STRING, "
    "ingestion_state STRING, batch_id BIGINT"
)
Row = tuple[object, ...]


def file_states(state_folder: Place, manifest: Manifest, reference: str) -> list[Row]:
    """The files of the flows that ``reference`` names, as rows of ``COLUMNS``.

    Args:
        state_folder: the pipeline's folder in storage.
        reference: a table, a flow, or the folder of a flow's checkpoint.

    Raises:
        UnknownDataset: no flow of the pipeline is meant by it.
        CheckpointUnreadable: where a file of the checkpoint is damaged.
    """
    flows = [flow for flow in manifest.flows if _is_meant(flow, state_folder, manifest, reference)]
    if not flows:
        names = ", ".join(flow.name for flow in manifest.flows)
        raise UnknownDataset(
            f"cloud_files_state: the pipeline has no table, flow or checkpoint {reference!r}.",
            remedy=f"Write cloud_files_state(TABLE(t)), or cloud_files_state('flow'). Its flows are: {names}.",
        )
    return [row for flow in flows for row in _rows(state_folder, flow)]


def _is_meant(flow: FlowEntry, state_folder: Place, manifest: Manifest, reference: str) -> bool:
    names = {flow.name, flow.target, f"{manifest.schema_name}.{flow.target}"}
    if manifest.catalog is not None:
        names |= {f"{manifest.catalog}.{name}" for name in set(names)}
    if reference.lower() in {name.lower() for name in names}:
        return True
    folder = flow_checkpoint(state_folder, flow.target, flow.name).folder
    path = of_spark(state_folder, reference)
    return (
        path.is_absolute()
        and path in (folder, *folder.parents)
        and is_below(path, state_folder / "checkpoints")
    )


def _rows(state_folder: Place, flow: FlowEntry) -> Iterator[Row]:
    for file in ingested_files(state_folder, flow.target, flow.name):
        changed = datetime.fromtimestamp(file.modified_ms / 1000, UTC)
        yield (
            file.path, _size(file), changed, None, None, file.ingested_at, None, None, None, str(file.source), flow.name,
            file.state.upper().replace(" ", "_"), file.batch,
        )  # fmt: skip


def _size(file: IngestedFile) -> int | None:
    """The bytes of a file, None where it is gone or was written again since, or lies in S3."""
    if is_s3(file.path):
        return None  # a request for each of them
    try:
        state = Path(file.path).stat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    return state.st_size if state.st_mtime_ns // 1_000_000 == file.modified_ms else None
