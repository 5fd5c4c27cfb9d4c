"""Whatever the data, the rules, the batches and the crashes: rows = written + dropped + quarantined, each once."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.killed_before_recording import killed_before_recording
from tests.pipeline_case import PipelineCase
from tests.seeds import SOAK

from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.delta_writes.staged_append import StagedAppend
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
EXAMPLES = 40 if SOAK else 3

number = st.none() | st.integers(-2, 3)
row = st.tuples(number, number, st.none() | st.sampled_from([17, 18]))
files = st.lists(st.lists(row, min_size=1, max_size=6), min_size=1, max_size=2)
actions = st.one_of(
    st.fixed_dictionaries({name: st.sampled_from(kinds) for name in RULES})
    for kinds in (list(DECORATORS), ["warn", "drop"])  # the latter is a table that Delta's own sink writes
)
# A batch passes three points: before the quarantine's commit, before the table's, before Spark marks the batch.
crashes = st.sets(st.integers(0, 8), max_size=2)


class Crash(Exception):
    """The driver is gone."""


class Fuse:
    """Counts the points that batches pass, and ends the driver at some of them."""

    def __init__(self, points: set[int]) -> None:
        self._points = points
        self._passed = -1

    def pass_point(self) -> None:
        """Go on, or die."""
        self._passed += 1
        if self._passed in self._points:
            raise Crash(f"at point {self._passed}")

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Put points before both commits and behind the second."""
        hold, write, call = QuarantineTable.hold, DeltaAppend.write, BatchWriter.__call__
        commit = StagedAppend.commit

        def before(method: Callable[..., None]) -> Callable[..., None]:
            def wrapped(*arguments: Any) -> None:
                self.pass_point()
                method(*arguments)

            return wrapped

        def after(*arguments: Any) -> None:
            call(*arguments)
            self.pass_point()

        patch.setattr(QuarantineTable, "hold", before(hold))
        patch.setattr(DeltaAppend, "write", before(write))
        patch.setattr(StagedAppend, "commit", before(commit))
        patch.setattr(BatchWriter, "__call__", after)


def source_of(chosen: dict[str, str]) -> str:
    """The pipeline with these actions."""
    rules = [f'@dp.{DECORATORS[action]}("{name}", "{RULES[name][0]}")' for name, action in chosen.items()]
    query = (
        'spark.readStream.schema("id INT, amount INT, age INT").option("maxFilesPerTrigger", 1).json(LANDING)'
    )
    return "\n".join(["@dp.table", *rules, "def people():", f"    return {query}\n"])


def fate(row: Row, chosen: dict[str, str]) -> str:
    """Where a row belongs."""
    broken = {chosen[name] for name in RULES if RULES[name][1](row) is False}
    return next((kind for kind in ("quarantine", "drop") if kind in broken), "written")


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # an example takes seconds: it is told as it is, not made smaller
)
@given(files=files, chosen=actions, points=crashes, dies=st.sampled_from(["never", "unmarked", "unrecorded"]))
@pytest.mark.timeout(1800)
def test_every_row_has_one_fate(
    spark: Any, files: list[list[Row]], chosen: dict[str, str], points: set[int], dies: str
):
    """After any crashes both tables hold just their rows, and the event log counts each row and each rule once: also of
    tables that Delta's own sink writes, which no point of these passes (``dies``: with its last batch unmarked, or
    marked, and no batch recorded).
    """
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        case = PipelineCase(Path(folder), source_of(chosen))
        Fuse(points).install(patch)
        for rows in files:
            case.land([dict(zip(("id", "amount", "age"), row, strict=True)) for row in rows])
        if dies != "never" and "quarantine" not in chosen.values():
            killed_before_recording(case, ("people",) if dies == "unmarked" else ())
        for _ in range(len(points) + 1):
            if (report := case.update()).state == "COMPLETED":
                break
        assert report.state == "COMPLETED", report.error
        everything = [row for rows in files for row in rows]
        fates = Counter(fate(row, chosen) for row in everything)
        assert Counter(case.rows("people")) == Counter(
            row for row in everything if fate(row, chosen) == "written"
        )
        kept_out = Counter(row for row in everything if fate(row, chosen) == "quarantine")
        if kept_out:
            assert Counter(case.rows("people_quarantine", "id, amount, age")) == kept_out
        check_log(case, everything, fates, len(files))


def check_log(case: PipelineCase, rows: list[Row], fates: Counter[str], batches: int) -> None:
    """One record a batch, and together they count each row once."""
    bodies = [r["details"]["flow_progress"] for r in case.events(flow="people", level="METRICS")]
    assert len(bodies) == batches
    assert sum(body["metrics"]["num_output_rows"] for body in bodies) == fates["written"]
    assert sum(body["metrics"]["num_input_rows"] for body in bodies) == len(rows)
    qualities = [body["data_quality"] for body in bodies]
    assert sum(quality["dropped_records"] for quality in qualities) == fates["drop"]
    assert sum(quality["quarantined_records"] for quality in qualities) == fates["quarantine"]
    failed: Counter[str] = Counter()
    for rule in (rule for quality in qualities for rule in quality["expectations"]):
        failed[rule["name"]] += rule["failed_records"]
    assert +failed == +Counter(
        {name: sum(holds(row) is False for row in rows) for name, (_, holds) in RULES.items()}
    )
