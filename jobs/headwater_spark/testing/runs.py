"""Running a dataset, or a pipeline, over given rows: real updates into real Delta tables, in a folder of their own.

Decision 0050.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from headwater.delta_log.table_history import head_version
from headwater.errors import UsageError
from headwater.event_log.reader import events
from headwater.graph.manifest import FILE_NAME, Manifest, read_manifest
from headwater.graph.update_plan import Selection
from headwater_spark.execution.update import UpdateRequest, run_update
from headwater_spark.facade.source_substitutes import substituting
from headwater_spark.testing.batch_records import BatchRecord, of_rows, records_of
from headwater_spark.testing.given_sources import RowsInPlace
from headwater_spark.testing.local_session import forget_tables, local_session
from headwater_spark.testing.project_under_test import Source, project_under_test
from headwater_spark.testing.results import DatasetRun, PipelineRun

Each = Literal["update", "micro_batch"]


def run_dataset(
    source: Source,
    dataset: str,
    *,
    inputs: Mapping[str, Any],
    schemas: Mapping[str, Any] | None = None,
    configuration: Mapping[str, str] | None = None,
    each: Each = "update",
) -> DatasetRun:
    """Run one dataset over rows given in the test, with its expectations, into a Delta table of its own.

    What the dataset reads is given, or runs too, down to what is given. A temporary view is run as if it were a table.

    Args:
        source: the pipeline's folder, a source file (``.py``, ``.ipynb``), or an imported module.
        dataset: the dataset's name.
        inputs: rows for what is read, by name: a dataset or table (``"bronze"``), or ``"format:what"``
            (``"kafka:orders"``, ``"json:landing/clicks"``, ``"files:landing/clicks"``, ``"jdbc:customers"``). A list of
            rows is one batch, a list of lists several. A row is a dict; for Kafka also a text, bytes, or a dict as the
            message's value; for JSON, CSV and text files also a text, which is written as it is.
        schemas: columns by the same names (DDL text or StructType), where neither the reader nor the pipeline's own
            definition tells them, and the rows' Python types shall not.
        configuration: values over those of ``pipeline.yml``.
        each: what a batch becomes: an ``update`` of its own, or a ``micro_batch`` of one update.

    Returns what was written, in all and by batch.

    Raises:
        SourceNotGiven: a source is read that has no rows, or rows are given that nothing reads.
        HeadwaterError: what an update would have failed with (ExpectationViolated, for one).
    """
    case = _Case(source, inputs, schemas, configuration, dataset, each)
    case.run()
    return case.results()[case.canonical(dataset)]


def run_pipeline(
    source: Source,
    *,
    inputs: Mapping[str, Any],
    schemas: Mapping[str, Any] | None = None,
    configuration: Mapping[str, str] | None = None,
    each: Each = "update",
) -> PipelineRun:
    """Run every dataset of a pipeline over given rows; arguments as for :func:`run_dataset`.

    A dataset for which rows are given is not run: its readers get the rows. With ``each="micro_batch"`` a dataset that
    reads another one of the pipeline gets that one's rows in one batch, as in any update that has waited long.
    """
    case = _Case(source, inputs, schemas, configuration, None, each)
    case.run()
    return PipelineRun(case.results())


class _Case:
    def __init__(
        self,
        source: Source,
        inputs: Mapping[str, Any],
        schemas: Mapping[str, Any] | None,
        configuration: Mapping[str, str] | None,
        target: str | None,
        each: Each,
    ) -> None:
        if each not in ("update", "micro_batch"):
            raise UsageError(f"each={each!r}", remedy='Use "update" or "micro_batch".')
        # It is deleted with the last result of the run.
        self._workspace = tempfile.TemporaryDirectory(prefix="headwater-test-", ignore_cleanup_errors=True)
        folder = Path(self._workspace.name).resolve()
        self._spark = local_session()
        forget_tables(self._spark)  # of earlier runs, whose folders are gone
        self._project = project_under_test(source, folder, configuration, self._spark)
        self._sources = RowsInPlace(inputs, schemas, target, folder / "given")
        self._sources.one_by_one = each == "micro_batch"
        self._records: list[BatchRecord] = []

    def canonical(self, name: str) -> str:
        """The one spelling of a dataset's name."""
        return next(e.name for e in self._manifest.tables if e.name.lower() == self._spelled(name).lower())

    def run(self) -> None:
        """Run the updates."""
        batches = self._sources.batches
        rounds = [batches] if self._sources.one_by_one else range(1, batches + 1)
        for landed in rounds:
            self._sources.land(landed)
            self._update(landed - 1)
        self._sources.check_all_read()

    def results(self) -> dict[str, DatasetRun]:
        """The results of each stored dataset."""
        return {
            entry.name: DatasetRun(
                entry.name,
                self._manifest.table_path(self._project.warehouse, entry.name),
                tuple(record for record in self._records if record.dataset == entry.name),
                self._sources,
                self._project,
                self._workspace,
            )
            for entry in self._manifest.tables
        }

    def _update(self, number: int) -> None:
        with substituting(self._sources):
            result = run_update(self._project, UpdateRequest(Selection()))
        if result.error is not None:
            raise result.error
        self._manifest = self._read_manifest()
        log = events(
            self._project.state_folder,
            update_id=result.update_id,
            event_type="flow_progress",
        )
        last = self._sources.batches - 1
        for entry in self._manifest.tables:
            mine = [
                event for event in log if event["origin"]["dataset_name"] == entry.name and of_rows(event)
            ]
            path = self._manifest.table_path(self._project.warehouse, entry.name)
            self._records += records_of(entry.name, mine, number, head_version(path), one_by_one=self._sources.one_by_one, last=last)  # fmt: skip

    def _read_manifest(self) -> Manifest:
        manifest = read_manifest(self._project.state_folder / FILE_NAME)
        assert manifest is not None
        return manifest

    def _spelled(self, name: str) -> str:
        return name.removeprefix("LIVE.").replace("`", "")
