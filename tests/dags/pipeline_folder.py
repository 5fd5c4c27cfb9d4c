"""Writes pipelines as `validate` would leave them, and event logs as an update would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from headwater.definitions.source import SourceKind
from headwater.event_log.details import FlowStatus, UpdateState, create_update, flow_progress, update_progress
from headwater.event_log.writer import EventLogWriter
from headwater.graph.manifest import (
    FILE_NAME,
    DatasetEntry,
    FlowEntry,
    Manifest,
    SourceEntry,
    read_manifest,
)
from headwater.graph.pipeline_project import open_project

MEDALLION = {"bronze": (), "silver": ("bronze",), "gold": ("silver",)}


def write_pipeline(
    folder: Path,
    datasets: Mapping[str, Sequence[str]] = MEDALLION,
    *,
    airflow: str = "{schedule: '*/5 * * * *'}",
    kinds: Mapping[str, str] | None = None,
) -> Path:
    """A pipeline in `folder` whose datasets read those that they are mapped to, with a fresh manifest."""
    (folder / "transformations").mkdir(parents=True, exist_ok=True)
    (folder / "pipeline.yml").write_text(f"name: {folder.name}\nschema: shop\nairflow: {airflow}\n")
    (folder / "transformations" / "tables.py").write_text("# nothing here is run by Airflow\n")
    kinds = kinds or {}
    manifest = Manifest(
        headwater_version="0",
        pipeline_id=folder.name,
        pipeline_name=folder.name,
        schema_name="shop",
        source_hash=open_project(folder).source_hash(),
        datasets=tuple(
            DatasetEntry(
                name=name,
                kind=kinds.get(name, "streaming_table"),
                location=None if kinds.get(name) == "temporary_view" else f"shop/{name}",
                comment=f"What | {name} holds",
            )
            for name in datasets
        ),
        flows=tuple(
            FlowEntry(
                name=name,
                target=name,
                streaming=kinds.get(name) != "materialized_view",
                inputs=tuple(inputs),
            )
            for name, inputs in datasets.items()
        ),
    )
    (folder / "manifest.json").write_text(manifest.to_json())
    return folder


def write_files_pipeline(roots: Path, name: str, airflow: str = "{}") -> Path:
    """A pipeline of one table that reads the files of a folder; gives that folder."""
    folder = write_pipeline(roots / "pipelines" / name, {"t": ()}, airflow=airflow)
    landing = roots / "landing" / name
    landing.mkdir(parents=True)
    manifest = read_manifest(folder / FILE_NAME)
    source = SourceEntry(kind=SourceKind.FILES, streaming=True, path=str(landing), format="json")
    flows = tuple(flow.model_copy(update={"sources": (source,)}) for flow in manifest.flows)
    (folder / FILE_NAME).write_text(manifest.model_copy(update={"flows": flows}).to_json())
    return landing


class UpdateLog:
    """One attempt of an update, told to a pipeline's event log."""

    def __init__(
        self,
        state_folder: Path,
        request: str,
        update_id: str = "update-1",
        requested_at: datetime | None = None,
        *,
        together: bool = False,
    ) -> None:
        self.writer = EventLogWriter(state_folder, state_folder.name, state_folder.name, update_id, request)
        if requested_at is not None or together:
            details = create_update(requested_at=requested_at, announced_together=together)
            self.writer.emit("create_update", "begun", details=details)

    def flow(
        self, name: str, status: FlowStatus, *, error: BaseException | None = None, **details: Any
    ) -> None:
        """A flow, named as its dataset, reached a state."""
        self.writer.emit(
            "flow_progress",
            f"Flow {name} is {status}.",
            level="ERROR" if status is FlowStatus.FAILED else "INFO",
            flow=name,
            dataset=name,
            epoch=0,
            details=flow_progress(status, **details),
            error=error,
        )
        self.writer.flush()

    def completed(self, name: str, rows: int = 3, version: int = 1) -> None:
        """A flow came to its end, having written `rows`."""
        self.flow(
            name,
            FlowStatus.COMPLETED,
            metrics={"num_input_rows": rows, "num_output_rows": rows},
            dropped=1,
            version=version,
        )

    def update(self, state: UpdateState) -> None:
        """The update as a whole reached a state."""
        self.writer.emit("update_progress", f"The update is {state}.", details=update_progress(state))
        self.writer.flush()

    def close(self) -> None:
        """End the attempt."""
        self.writer.close()
