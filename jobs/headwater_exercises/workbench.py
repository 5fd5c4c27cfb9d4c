"""A pipeline in a folder of its own, made of the file of an exercise: updated here, and measured from its event log."""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headwater.advice.reading import pipeline_facts
from headwater.advice.rules import advise
from headwater.checkpoints.layout import flow_checkpoint
from headwater.errors import PipelineNotFound
from headwater.event_log.reader import events
from headwater.graph.pipeline_project import PipelineProject, open_project
from headwater.graph.stored_manifest import stored_manifest
from headwater.graph.update_plan import Selection
from headwater.storage.delta_tables import append
from headwater.storage.place import Place
from headwater_spark.execution.update import UpdateRequest, run_update
from headwater_spark.testing import local_session
from headwater_spark.testing.stored_rows import stored_rows
from headwater_spark.testing.typed_rows import arrow_table

_DATA = "exercise_data.py"


@dataclass(frozen=True)
class BatchMeasures:
    """What one batch of a stream took, from the event log.

    Attributes:
        rows: rows that it read.
        seconds: its duration.
        phases: seconds of its parts, by Spark's names (``addBatch``, ``walCommit``, ``queryPlanning`` ...).
        state_rows: rows of state after it; None where the query keeps none.
        state_bytes: memory that the state takes; None where the query keeps none.
        late_rows: rows that were left out because they came behind the watermark.

    """

    rows: int
    seconds: float
    phases: Mapping[str, float]
    state_rows: int | None = None
    state_bytes: int | None = None
    late_rows: int = 0


class Workbench:
    """A pipeline whose one source is the file of an exercise. Its folder goes with it.

    Args:
        source: the file, a script or a notebook; a file ``exercise_data.py`` beside it comes along.

    """

    def __init__(self, source: str | Path) -> None:
        source = Path(source).resolve()
        if not source.is_file():
            raise PipelineNotFound(
                f"There is no file {source}.", remedy="Save the notebook, and run it in its own folder."
            )
        self._temporary = tempfile.TemporaryDirectory(
            prefix="headwater-exercise-", ignore_cleanup_errors=True
        )
        self.root = Path(self._temporary.name).resolve()
        self.spark = local_session()
        folder = self.root / "pipeline"
        folder.mkdir()
        for file in (source, source.with_name(_DATA)):
            if file.is_file():
                shutil.copy(file, folder)
        spec = {
            "name": "exercise",
            "schema": "shop",
            "libraries": [{"file": {"path": source.name}}],
            "trigger": "available_now",
        }
        (folder / "pipeline.yml").write_text(yaml.safe_dump(spec), encoding="utf-8")
        self.folder = folder
        self._files = 0

    @property
    def project(self) -> PipelineProject:
        """The pipeline, with its roots in this folder."""
        return open_project(
            self.folder, storage=self.root / "storage", warehouse=self.root / "warehouse", environment={}
        )

    def append(self, table: str, rows: Sequence[Mapping[str, Any]], schema: str) -> None:
        """Append rows, as one file, to a Delta table that the exercise reads. ``table``: ``schema.name``; ``schema``: in DDL."""
        columns = cast("StructType", StructType.fromDDL(schema))
        append(self._path(table), arrow_table(rows, columns, table), mode="append")

    def update(self, *tables: str) -> None:
        """Run an update of these tables, or of all; raises what it failed with."""
        result = run_update(self.project, UpdateRequest(Selection(tables=tables)))
        if result.error is not None:
            raise result.error

    def table(self, name: str) -> DataFrame:
        """A table now."""
        return self.spark.read.format("delta").load(str(self._path(name)))

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table now; times are in UTC."""
        return stored_rows(self._path(name))

    def checkpoint(self, table: str) -> Place:
        """The folder of a table's checkpoint, as Spark writes it."""
        return flow_checkpoint(self.project.state_folder, table, table).live_folder()

    def batches(self, table: str) -> list[BatchMeasures]:
        """The batches of a table that have read rows, oldest first."""
        measures: dict[int, dict[str, Any]] = {}
        for record in events(self.project.state_folder, flow=table):
            batch, details = record["origin"]["batch_id"], record["details"]
            if batch is None:
                continue
            metrics = measures.setdefault(int(batch), {})
            metrics.update((details.get("flow_progress") or {}).get("metrics") or {})
            report = (details.get("stream_progress") or {}).get("progress_json")
            if report:
                metrics["phases"] = json.loads(report).get("durationMs") or {}
        return [
            _measures(metrics) for _, metrics in sorted(measures.items()) if metrics.get("num_input_rows")
        ]

    def seconds(self, table: str) -> float:
        """How long a batch of a table takes: the median of those behind the first, which also compiles."""
        taken = [batch.seconds for batch in self.batches(table)]
        return statistics.median(taken[1:] or taken)

    def advice(self, table: str) -> list[str]:
        """What ``headwater advise`` says about a table, in lines."""
        facts = pipeline_facts(self.project, stored_manifest(self.project))
        return [finding.line for finding in advise(facts) if finding.dataset == table]

    def _path(self, table: str) -> Place:
        parts = table.split(".") if "." in table else ["shop", table]
        return self.root.joinpath("warehouse", *parts)


def plan_of(frame: DataFrame) -> str:
    """How Spark would run a query over a batch, as text."""
    return str(frame._jdf.queryExecution().executedPlan().toString())  # noqa: SLF001 - no public face in Python


def _measures(metrics: Mapping[str, Any]) -> BatchMeasures:
    return BatchMeasures(
        int(metrics["num_input_rows"]),
        (metrics.get("batch_duration_ms") or 0) / 1000,
        {name: value / 1000 for name, value in (metrics.get("phases") or {}).items()},
        metrics.get("state_rows"),
        metrics.get("state_bytes"),
        metrics.get("late_rows") or 0,
    )
