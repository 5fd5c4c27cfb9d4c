"""The results of a test run: rows, drops and counts of expectations, in all and by batch."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from headwater.definitions.dataset import quarantine_folder
from headwater.delta_log.table_history import table_exists
from headwater.graph.pipeline_project import PipelineProject
from headwater.storage.place import Place
from headwater.testing.rows import assert_same_rows, difference
from headwater_spark.rules.expectations import RuleCounts
from headwater_spark.testing.batch_records import BatchRecord, add_counts
from headwater_spark.testing.given_sources import RowsInPlace
from headwater_spark.testing.local_session import local_session
from headwater_spark.testing.stored_rows import stored_columns, stored_rows


@dataclass(frozen=True)
class BatchResult:
    """What one given batch did to the table.

    Attributes:
        rows: rows that the table has gained.
        removed: rows that it has lost (a materialized view, a merge, an aggregation in complete mode).
        input_rows: rows that the query read.
        dropped: rows that expectations kept out.
        quarantined: rows that went to the quarantine table.
        expectations: counts by rule.

    """

    rows: list[dict[str, Any]]
    removed: list[dict[str, Any]]
    input_rows: int
    dropped: int
    quarantined: int
    expectations: Mapping[str, RuleCounts]


class DatasetRun:
    """One dataset after a test run. Timestamps are in UTC, structs are dicts."""

    def __init__(
        self,
        name: str,
        table: Place,
        records: Sequence[BatchRecord],
        sources: RowsInPlace,
        project: PipelineProject,
        workspace: tempfile.TemporaryDirectory[str],
    ) -> None:
        self.name = name
        self._table = table
        self._records = records
        self._sources = sources
        self._project = project
        self._workspace = workspace  # kept: the tables lie in it
        self._versions: dict[int, list[dict[str, Any]]] = {}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table after the run."""
        return list(self._rows_at(self._records[-1].version))

    @property
    def columns(self) -> dict[str, str]:
        """The table's columns and their types, as Spark prints them."""
        return stored_columns(self._table)

    @property
    def dropped(self) -> int:
        """How many rows expectations kept out, over all batches."""
        return sum(record.dropped for record in self._records)

    @property
    def quarantined(self) -> int:
        """How many rows went to the quarantine table, over all batches."""
        return sum(record.quarantined for record in self._records)

    @property
    def quarantine(self) -> list[dict[str, Any]]:
        """The rows of the quarantine table, with the columns that say why and from where; empty where there is none."""
        path = Path(quarantine_folder(str(self._table)))
        return stored_rows(path) if table_exists(path) else []

    @property
    def expectations(self) -> dict[str, RuleCounts]:
        """Counts by rule (``passed``, ``failed``), over all batches."""
        return _by_name(add_counts(rule for record in self._records for rule in record.expectations))

    @cached_property
    def batches(self) -> list[BatchResult]:
        """What each given batch did."""
        return list(self._batch_results())

    def assert_rows(
        self,
        expected: Collection[Mapping[str, Any]],
        *,
        ignore: Collection[str] = (),
        where: str | None = None,
    ) -> None:
        """Fail unless the table has just these rows, in any order.

        Args:
            expected: rows as dicts; columns that a row leaves out are NULL.
            ignore: columns that are not compared.
            where: a SQL condition; only rows for which it is true are compared.

        """
        assert_same_rows(self._where(where), expected, ignore=ignore)

    def assert_equals_batch(self, *, ignore: Collection[str] = (), where: str | None = None) -> None:
        """Fail unless the rows are those that the same functions give when everything is read at once, as a batch.

        Args:
            ignore: columns that are not compared, as those that hold the time of the run.
            where: a SQL condition over the rows of both: a window that no watermark has closed yet is in the batch
                result and not in the table.

        """
        from headwater_spark.testing.batch_result import batch_rows

        expected = batch_rows(self._project, self._sources, self.name, where)
        assert_same_rows(self._where(where), expected, ignore=ignore, names=("table", "batch result"))

    def _where(self, condition: str | None) -> list[dict[str, Any]]:
        if condition is None:
            return self.rows
        version = self._records[-1].version
        frame = local_session().read.format("delta").option("versionAsOf", version).load(str(self._table))
        rows: list[dict[str, Any]] = frame.where(condition).toArrow().to_pylist()
        return rows

    def _batch_results(self) -> Iterator[BatchResult]:
        before: list[dict[str, Any]] = []
        for record in self._records:
            now = self._rows_at(record.version)
            yield BatchResult(
                difference(now, before),
                difference(before, now),
                record.input_rows,
                record.dropped,
                record.quarantined,
                _by_name(record.expectations),
            )
            before = now

    def _rows_at(self, version: int) -> list[dict[str, Any]]:
        if version not in self._versions:
            self._versions[version] = stored_rows(self._table, version)
        return self._versions[version]


class PipelineRun(Mapping[str, DatasetRun]):
    """A pipeline after a test run: its datasets by name."""

    def __init__(self, datasets: Mapping[str, DatasetRun]) -> None:
        self._datasets = dict(datasets)

    def __getitem__(self, name: str) -> DatasetRun:
        return self._datasets[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._datasets)

    def __len__(self) -> int:
        return len(self._datasets)


def _by_name(counts: Sequence[RuleCounts]) -> dict[str, RuleCounts]:
    return {rule.name: rule for rule in counts}
