"""A pipeline on disk for a test: written from source texts, updated in this process, its tables read without Spark."""

from __future__ import annotations

import io
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

import run_update as run_update_program
from headwater.checkpoints.layout import FlowCheckpoint, flow_checkpoint
from headwater.event_log.reader import events
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_project import PipelineProject, open_project
from headwater.graph.update_plan import Selection
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.update import UpdateRequest, UpdateResult, run_update
from headwater_spark.resolution.graph_resolution import ResolvedPipeline, resolved_pipeline
from headwater_spark.session import start_session

# One line, so that line numbers in a test's text are those of the file, less one.
PRELUDE = "from pyspark.sql import functions as F; from headwater import pipelines as dp; LANDING = spark.conf.get('landing')\n"
# The same session for every pipeline of a process: tests are too small to gain from more.
SPARK = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}
# For queries that see ten rows: to generate and compile code for them takes a third of the time of a small update, and a Spark job
# for each exchange, as adaptive execution has it, a tenth. The log of a table of ten rows is read in one task.
SMALL_QUERIES = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # Else Spark makes a session of its own for each frame that is kept, to switch this off in it.
    "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Each query is described for a UI that nobody opens: in short that costs less.
    "spark.sql.ui.explainMode": "simple",
}
# A secret that Spark has from the start; test_secrets_are_on_no_command_line looks for it.
SECRET = {"spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net": "Hunter2Canary"}


def spec_of(settings: Mapping[str, str]) -> str:
    """Settings of Spark as lines of ``pipeline.yml``: for a driver of its own."""
    return "".join(["spark:\n", *(f"  {name}: {value}\n" for name, value in settings.items())])


@dataclass
class PipelineCase:
    """A pipeline's folder and its roots below ``root``. ``source``: the text of its one source, after the prelude."""

    root: Path
    source: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    spec: str = ""

    def __post_init__(self) -> None:
        self.folder = self.root / "pipeline"
        self.storage = self.root / "storage"
        self.warehouse = self.root / "warehouse"
        self.landing = self.root / "landing"
        self.landing.mkdir(parents=True, exist_ok=True)
        self._kept = self.root.with_name(f"{self.root.name}.kept")
        self._files_landed = self._files_kept = 0
        self._last_change = 0.0
        sources = {
            **({"transformations/main.py": PRELUDE + self.source} if self.source else {}),
            **self.files,
        }
        head = f"name: case\nschema: shop\nconfiguration:\n  landing: {self.landing}\n"
        for name, text in {"pipeline.yml": head + self.spec, **sources}.items():
            self.write(name, text)

    def keep(self) -> None:
        """Copy all that there is now, for :meth:`restore`."""
        shutil.copytree(self.root, self._kept)
        self._files_kept = self._files_landed

    def restore(self) -> None:
        """Make everything as it was kept. A session must forget the tables that it met since."""
        shutil.rmtree(self.root)
        shutil.copytree(self._kept, self.root)
        self._files_landed = self._files_kept

    def write(self, name: str, text: str) -> Path:
        """Write a file of the pipeline."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def rewrite(self, source: str) -> None:
        """Put another text in place of the source."""
        self.write("transformations/main.py", PRELUDE + source)

    def line_of(self, fragment: str, name: str = "transformations/main.py") -> str:
        """Where a piece of the source's text stands: ``file:line``."""
        path = self.folder / name
        numbered = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        return f"{path.resolve()}:{next(number for number, line in numbered if fragment in line)}"

    def land(self, rows: Sequence[Mapping[str, Any] | str], folder: str = ".") -> None:
        """Put a file of JSON lines into the landing folder (a text is written as it is); it appears in one step."""
        self._files_landed += 1
        target = self.landing / folder / f"{self._files_landed:05d}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden = target.with_name(f".{target.name}")
        hidden.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
        # A file source goes by the time of change; files made in one millisecond would come in any order.
        self._last_change = max(time.time(), self._last_change + 0.01)
        os.utime(hidden, (self._last_change, self._last_change))
        hidden.rename(target)

    def project(self, **parameters: str) -> PipelineProject:
        """The pipeline, opened with this case's roots."""
        return open_project(
            self.folder, storage=self.storage, warehouse=self.warehouse, parameters=parameters, environment={}
        )

    @contextmanager
    def resolved(self) -> Iterator[ResolvedPipeline]:
        """The resolved pipeline; nothing is written."""
        project = self.project()
        with resolved_pipeline(project, start_session("tests", SPARK)) as pipeline:
            yield pipeline

    def manifest(self) -> Manifest:
        """The resolved graph; nothing is written."""
        with self.resolved() as pipeline:
            return pipeline.manifest

    def update(self, *, request: UpdateRequest | None = None, **selection: Any) -> UpdateReport:
        """Run an update; ``selection`` as for :class:`Selection`."""
        return UpdateReport(run_update(self.project(), request or UpdateRequest(Selection(**selection))))

    def run(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """``headwater run`` in this process: the exit code, and the JSON of the last line."""
        return self.call(run_update_program.main, *arguments)

    def call(
        self, main: Callable[[list[str]], int], *arguments: str, verb: Sequence[str] = ()
    ) -> tuple[int, dict[str, Any]]:
        """A program's exit code and the JSON of its last line, if any, for this pipeline; ``verb`` comes first."""
        roots = [f"--storage={self.storage}", f"--warehouse={self.warehouse}", "--json"]
        with redirect_stdout(io.StringIO()) as output:
            code = main([*verb, str(self.folder), *arguments, *roots])
        lines = output.getvalue().splitlines()
        return code, json.loads(lines[-1]) if lines else {}

    def table(self, name: str) -> Path:
        """The folder of a table."""
        parts = name.split(".") if "." in name else ["shop", name]
        return self.warehouse.joinpath(*parts)

    def rows(self, name: str, select: str = "*", order: str = "1, 2") -> list[tuple[Any, ...]]:
        """The rows of a table now, read by delta-rs."""
        return read_rows(self.table(name), select, order)

    def version(self, name: str) -> int:
        """The version of a table now."""
        return DeltaTable(str(self.table(name))).version()

    def columns(self, name: str) -> list[str]:
        """The columns of a table now."""
        return [column.name for column in DeltaTable(str(self.table(name))).schema().fields]

    def checkpoint(self, table: str, flow: str | None = None) -> FlowCheckpoint:
        """The checkpoint of a flow."""
        return flow_checkpoint(self.project().state_folder, table, flow or table)

    def events(self, **conditions: Any) -> list[dict[str, Any]]:
        """Records of the event log."""
        return events(self.project().state_folder, **conditions)

    def nothing_written(self) -> bool:
        """Whether neither storage nor warehouse is there."""
        return not self.storage.exists() and not self.warehouse.exists()


@dataclass(frozen=True)
class UpdateReport:
    """An update's result, by flow."""

    result: UpdateResult

    @property
    def state(self) -> str:
        """How the update ended."""
        return str(self.result.state)

    @property
    def error(self) -> Exception | None:
        """The first error of a flow that failed by itself."""
        return self.result.error

    def __getitem__(self, flow: str) -> FlowOutcome:
        return next(outcome for outcome in self.result.outcomes if outcome.flow == flow)

    @property
    def statuses(self) -> dict[str, str]:
        """How each flow ended."""
        return {outcome.flow: str(outcome.status) for outcome in self.result.outcomes}


def read_rows(table: Path, select: str = "*", order: str = "1, 2") -> list[tuple[Any, ...]]:
    """The rows of a Delta table, read by delta-rs."""
    source = DeltaTable(str(table))
    columns = len(source.schema().fields) if select == "*" else select.count(",") + 1
    if order == "1, 2" and columns == 1:
        order = "1"
    query = f"select {select} from t order by {order}"
    answer = pa.table(QueryBuilder().register("t", source).execute(query).read_all())
    return [tuple(row.values()) for row in answer.to_pylist()]
