"""Pipelines on disk as an update leaves them: real Delta tables, and checkpoints in Spark's forms."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoints.flow_role import flow_role
from headwater.checkpoints.layout import FlowCheckpoint, FlowState, flow_checkpoint
from headwater.definitions.dataset import DatasetKind
from headwater.definitions.source import SourceKind
from headwater.delta_log.versions import table_head
from headwater.graph.manifest import DatasetEntry, FlowEntry, Manifest, SourceEntry
from headwater.graph.pipeline_project import PipelineProject, open_project
from headwater.metrics.fingerprint import source_fingerprint, source_key
from headwater.storage.delta_tables import append
from headwater.storage.place import Place


def write_rows(table: Place, *values: int, mode: str = "append") -> None:
    """Commit rows to a real Delta table."""
    import pyarrow as pa

    table.parent.mkdir(parents=True, exist_ok=True)
    append(table, pa.table({"id": pa.array(values, pa.int64())}), mode=mode)


def write_checkpoint(folder: Place, batch: int, offsets: Sequence[Any]) -> None:
    """A committed batch, as Spark writes it."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    lines = ["-" if offset is None else json.dumps(offset) for offset in offsets]
    (folder / "offsets" / str(batch)).write_text("\n".join(["v1", '{"batchWatermarkMs":0}', *lines]))
    (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def delta_offset(table: Place, version: int, index: int = -1, *, starting: bool = False) -> dict[str, Any]:
    """The offset of a Delta source."""
    head = table_head(table)
    assert head is not None
    return {
        "sourceVersion": 1,
        "reservoirId": head.table_id,
        "reservoirVersion": version,
        "index": index,
        "isStartingVersion": starting,
    }


@dataclass
class Pipeline:
    """files -> bronze (stream) -> silver (stream) -> gold (materialized view)."""

    project: PipelineProject
    landing: Path
    manifest: Manifest

    def table(self, name: str) -> Place:
        return self.project.warehouse / "shop" / name

    def checkpoint(self, name: str) -> FlowCheckpoint:
        return flow_checkpoint(self.project.state_folder, name, name)

    def flow(self, name: str) -> FlowEntry:
        return next(flow for flow in self.manifest.flows if flow.name == name)

    def store_manifest(self) -> None:
        target = self.project.state_folder / "manifest.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.manifest.to_json())

    def land(self, name: str, text: str = '{"id": 1}') -> Path:
        self.landing.mkdir(parents=True, exist_ok=True)
        file = self.landing / name
        file.write_text(text)
        return file

    def take_in(self, *names: str, batch: int = 0) -> None:
        """Record files as seen by bronze, in a committed batch."""
        folder = self.checkpoint("bronze").epoch_folder(0)
        log = folder / "sources" / "0"
        log.mkdir(parents=True, exist_ok=True)
        entries = []
        for name in names:
            file = self.landing / name
            millis = file.stat().st_mtime_ns // 1_000_000
            entries.append(json.dumps({"path": file.as_uri(), "timestamp": millis, "batchId": batch}))
        (log / str(batch)).write_text("\n".join(["v1", *entries]))
        write_checkpoint(folder, batch, [{"logOffset": batch}])

    def complete(self, name: str, **changes: Any) -> None:
        """Record that a flow ended well."""
        head = table_head(self.table(name))
        versions = {
            source_key(source): source_fingerprint(source, self.project.warehouse) or ""
            for source in self.flow(name).sources
            if not source.streaming
        }
        given = {
            "sink_id": head.table_id if head else None,
            "completed": True,
            "definition_hash": self.manifest.source_hash,
            "input_versions": versions,
            "role": flow_role(view=name == "gold", snapshots=False, once=False, changes=False),
        }
        self.checkpoint(name).write_state(FlowState(**{**given, **changes}))


@pytest.fixture
def pipeline(tmp_path: Path, roots: tuple[Place, Place]) -> Pipeline:
    """A pipeline that has not run."""
    folder = tmp_path / "pipeline"
    (folder / "transformations").mkdir(parents=True)
    (folder / "pipeline.yml").write_text("name: orders\nschema: shop\n")
    (folder / "transformations" / "tables.py").write_text("# the sources\n")
    project = open_project(folder, storage=roots[0], warehouse=roots[1])
    landing = tmp_path / "landing"
    files = SourceEntry(kind=SourceKind.FILES, streaming=True, path=str(landing), format="json")
    datasets = [
        DatasetEntry(name="bronze", kind=DatasetKind.STREAMING_TABLE, location="shop/bronze"),
        DatasetEntry(name="silver", kind=DatasetKind.STREAMING_TABLE, location="shop/silver"),
        DatasetEntry(name="gold", kind=DatasetKind.MATERIALIZED_VIEW, location="shop/gold"),
    ]

    def reads(name: str, *, streaming: bool) -> SourceEntry:
        return SourceEntry(
            kind=SourceKind.DATASET, streaming=streaming, name=name, location=f"shop/{name}", format="delta"
        )

    flows = [
        FlowEntry(name="bronze", target="bronze", streaming=True, sources=(files,)),
        FlowEntry(
            name="silver",
            target="silver",
            streaming=True,
            inputs=("bronze",),
            sources=(reads("bronze", streaming=True),),
        ),
        FlowEntry(
            name="gold",
            target="gold",
            streaming=False,
            inputs=("silver",),
            sources=(reads("silver", streaming=False),),
        ),
    ]
    manifest = Manifest(
        headwater_version="0.1.0",
        pipeline_id="orders",
        pipeline_name="orders",
        schema_name="shop",
        source_hash=project.source_hash(),
        datasets=tuple(datasets),
        flows=tuple(flows),
    )
    return Pipeline(project, landing, manifest)


@pytest.fixture
def done(pipeline: Pipeline) -> Pipeline:
    """The pipeline after an update that took in everything."""
    pipeline.land("a.json")
    pipeline.take_in("a.json")
    for name in ("bronze", "silver", "gold"):
        write_rows(pipeline.table(name), 1, 2)
    write_checkpoint(
        pipeline.checkpoint("silver").epoch_folder(0), 0, [delta_offset(pipeline.table("bronze"), 1)]
    )
    for name in ("bronze", "silver", "gold"):
        pipeline.complete(name)
    pipeline.store_manifest()
    return pipeline
