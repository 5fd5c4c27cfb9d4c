"""Whatever the data, the rules, the batches and the crashes: rows = written + dropped + quarantined, each once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.killed_before_recording import forget_mark
from tests.pipeline_case import PipelineCase
from tests.seeds import SEED, SOAK

from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.delta_writes.staged_append import StagedAppend
from headwater_spark.execution.batch_records import BatchRecords
from headwater_spark.execution.foreach_batch import BatchWriter
from headwater_spark.quarantine.quarantine_table import QuarantineTable

Row = tuple[int | None, int | None, int | None]
Rule = Callable[[Row], bool | None]
# A condition in SQL, and what it is for a row; None is NULL.
RULES: dict[str, tuple[str, Rule]] = {
    "has_id": ("id IS NOT NULL", lambda row: row[0] is not None),
    "positive": ("amount > 0", lambda row: None if row[1] is None else row[1] > 0),
    "adult": ("age >= 18", lambda row: None if row[2] is None else row[2] >= 18),
    "low": ("id < 2", lambda row: None if row[0] is None else row[0] < 2),
}
DECORATORS = {"warn": "expect", "drop": "expect_or_drop", "quarantine": "expect_or_quarantine"}
# Half of the tables have a quarantine; the others are written by Delta's own sink.
TABLES, ROUNDS = 6, 7 if SOAK else 1
# How a table's first driver dies, where the crash is not one of `points`.
DEATHS = ("unmarked", "unrecorded", "never")


class Crash(Exception):
    """The driver is gone."""


@dataclass(frozen=True)
class Table:
    """A table, what comes into it, and when its drivers die.

    ``points``: which of the points that its batches pass end the driver; a batch of a table with a quarantine passes three:
    before the quarantine's commit, before the table's, before Spark marks the batch.
    """

    name: str
    actions: dict[str, str]
    files: list[list[Row]]
    points: frozenset[int]
    dies: str

    @property
    def rows(self) -> list[Row]:
        """All that comes."""
        return [row for rows in self.files for row in rows]

    @property
    def source(self) -> str:
        """Its definition."""
        rules = [
            f'@dp.{DECORATORS[action]}("{name}", "{RULES[name][0]}")' for name, action in self.actions.items()
        ]
        columns = 'schema("id INT, amount INT, age INT").option("maxFilesPerTrigger", 1)'
        query = f'spark.readStream.{columns}.json(LANDING + "/{self.name}")'
        return "\n".join(["@dp.table", *rules, f"def {self.name}():", f"    return {query}\n"])

    def fate(self, row: Row) -> str:
        """Where a row belongs."""
        broken = {self.actions[name] for name in RULES if RULES[name][1](row) is False}
        return next((kind for kind in ("quarantine", "drop") if kind in broken), "written")

    def __str__(self) -> str:
        return f"{self.name}: {self.actions}, {self.files}, {sorted(self.points)}, {self.dies}"


def drawn(chance: random.Random, number: int) -> Table:
    """A table at random."""
    kinds = list(DECORATORS) if number % 2 == 0 else ["warn", "drop"]
    actions = {name: chance.choice(kinds) for name in RULES}
    if number % 2 == 0:
        actions[chance.choice(list(RULES))] = "quarantine"
    values = [None, *range(-2, 4)]
    files = [
        [
            (chance.choice(values), chance.choice(values), chance.choice([None, 17, 18]))
            for _ in range(chance.randint(1, 6))
        ]
        for _ in range(chance.randint(1, 2))
    ]
    if "quarantine" in actions.values():
        first = number // 2 % 3  # each kind of point once
        points = frozenset({first, chance.randrange(first + 1, 7)})
        return Table(f"people_{number}", actions, files, points, "never")
    return Table(f"people_{number}", actions, files, frozenset(), DEATHS[number // 2 % len(DEATHS)])


class Fuses:
    """Counts the points that the batches of each table pass, and ends its driver at some of them."""

    def __init__(self, tables: list[Table]) -> None:
        self._points = {table.name: table.points for table in tables}
        self._passed = dict.fromkeys(self._points, -1)

    def pass_point(self, application: str) -> None:
        """Go on, or die."""
        table = application.partition(".")[2].partition("@")[0]
        self._passed[table] += 1
        if self._passed[table] in self._points[table]:
            raise Crash(f"at point {self._passed[table]} of {table}")

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Put points before both commits and behind the second."""
        call = BatchWriter.__call__

        def before(method: Callable[..., None]) -> Callable[..., None]:
            def wrapped(*arguments: Any) -> None:
                transaction = next(each for each in arguments if isinstance(each, BatchTransaction))
                self.pass_point(transaction.application)
                method(*arguments)

            return wrapped

        def after(self_: BatchWriter, *arguments: Any) -> None:
            call(self_, *arguments)
            self.pass_point(self_._application)

        patch.setattr(QuarantineTable, "hold", before(QuarantineTable.hold))
        patch.setattr(DeltaAppend, "write", before(DeltaAppend.write))
        patch.setattr(StagedAppend, "commit", before(StagedAppend.commit))
        patch.setattr(BatchWriter, "__call__", after)


def first_update(case: PipelineCase, tables: list[Table]) -> None:
    """An update in which drivers die: at the points, and with the last batch unmarked, or marked and no batch recorded."""
    record, silent = BatchRecords._record, {table.name for table in tables if table.dies != "never"}

    def recorded(self: BatchRecords, *arguments: Any, **options: Any) -> None:
        if self._run.name not in silent:
            record(self, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BatchRecords, "_record", recorded)
        report = case.update()
    assert {report.statuses[table.name] for table in tables if not table.points} == {"COMPLETED"}
    assert {report.statuses[table.name] for table in tables if 0 in table.points} == {"FAILED"}
    for table in tables:
        if table.dies == "unmarked":
            forget_mark(case, table.name)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_every_row_has_one_fate(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, round_: int):
    """After any crashes both tables hold just their rows, and the event log counts each row and each rule once: also of
    tables that Delta's own sink writes, which no point of these passes.
    """
    chance = random.Random(SEED * 1000 + round_)
    tables = [drawn(chance, number) for number in range(TABLES)]
    case = PipelineCase(tmp_path, "".join(table.source for table in tables))
    Fuses(tables).install(monkeypatch)
    for table in tables:
        for rows in table.files:
            case.land([dict(zip(("id", "amount", "age"), row, strict=True)) for row in rows], table.name)
    first_update(case, tables)
    for _ in range(2):
        if (report := case.update()).state == "COMPLETED":
            break
    assert report.state == "COMPLETED", report.error
    for table in tables:
        check_rows(case, table)
        check_log(case, table)


def check_rows(case: PipelineCase, table: Table) -> None:
    """Each row is in the table, in the quarantine, or in neither, as its rules say."""
    expected = Counter(row for row in table.rows if table.fate(row) == "written")
    assert Counter(case.rows(table.name)) == expected, table
    kept_out = Counter(row for row in table.rows if table.fate(row) == "quarantine")
    if kept_out:
        assert Counter(case.rows(f"{table.name}_quarantine", "id, amount, age")) == kept_out, table


def check_log(case: PipelineCase, table: Table) -> None:
    """One record a batch, and together they count each row once."""
    fates = Counter(table.fate(row) for row in table.rows)
    bodies = [r["details"]["flow_progress"] for r in case.events(flow=table.name, level="METRICS")]
    assert len(bodies) == len(table.files), table
    assert sum(body["metrics"]["num_output_rows"] for body in bodies) == fates["written"], table
    assert sum(body["metrics"]["num_input_rows"] for body in bodies) == len(table.rows), table
    qualities = [body["data_quality"] for body in bodies]
    assert sum(quality["dropped_records"] for quality in qualities) == fates["drop"], table
    assert sum(quality["quarantined_records"] for quality in qualities) == fates["quarantine"], table
    failed: Counter[str] = Counter()
    for rule in (rule for quality in qualities for rule in quality["expectations"]):
        failed[rule["name"]] += rule["failed_records"]
    assert +failed == +Counter(
        {name: sum(holds(row) is False for row in table.rows) for name, (_, holds) in RULES.items()}
    ), table
