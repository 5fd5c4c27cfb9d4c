"""How the table of a stage is made ready: declared anew where it is there, created where it must be there first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import LongType, StructField, StructType
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, state_of
from tests.unit.headwater_spark.written_table import commit

from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.output_kind import OutputKind
from headwater.errors import FlowFailed
from headwater.event_log.details import FlowStatus
from headwater.graph.update_plan import RefreshStage
from headwater_spark.execution import schedule
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.schedule import prepare_table
from headwater_spark.plans.output_mode import OutputMode

COLUMNS = StructType([StructField("id", LongType())])
STAGE = RefreshStage("orders", DatasetKind.STREAMING_TABLE, ("orders",))
PLAIN, DECLARED = dataset(), dataset(comment="All orders.")


class Prepared:
    """What is done for the table of ``orders``, in order."""

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        table: Dataset = PLAIN,
        mode: OutputKind = OutputKind.APPEND,
    ) -> None:
        self.steps: list[str] = []
        self.context: Any = context_of(folder, table, flows=(flow(),), modes={"orders": OutputMode(mode)})
        self.context.pipeline.evaluation.table_schema = lambda _: COLUMNS
        self.path = self.context.table_path(table)
        names = ("remove_empty_logs", "finish_replacements", "apply_declaration", "create_table")
        for name in names:
            monkeypatch.setattr(schedule, name, lambda *_, name=name: self.steps.append(name))
        monkeypatch.setattr(type(self.context), "check_lease", lambda _: self.steps.append("lease"))

    def steps_of(self) -> list[str]:
        """Prepare the table; what was done beyond what always is."""
        prepare_table(self.context, STAGE)
        always = ["lease", "remove_empty_logs", "finish_replacements"]
        assert self.steps[:3] == always
        return self.steps[3:]


@pytest.mark.parametrize(
    ("table", "mode", "created"),
    [
        (PLAIN, OutputKind.APPEND, False),
        (DECLARED, OutputKind.APPEND, True),
        (PLAIN, OutputKind.CHANGES, True),
    ],
)
def test_a_table_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: Dataset, mode: OutputKind, created: bool
):
    """It is created before its flows where there is something to declare, or rows are merged into it; else by its first write."""
    assert Prepared(tmp_path, monkeypatch, table, mode).steps_of() == ["create_table"] * created


@pytest.mark.parametrize(("table", "mode"), [(DECLARED, OutputKind.APPEND), (PLAIN, OutputKind.CHANGES)])
def test_a_table_that_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: Dataset, mode: OutputKind
):
    """One that a flow has written to is not made again in silence: the checks before the flow's start find it gone."""
    one = Prepared(tmp_path, monkeypatch, table, mode)
    state_of(one.context, sink_id="t", completed=True)
    assert one.steps_of() == []


def test_a_table_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is declared is applied, and it is never created; what a killed backfill left is put back first."""
    one = Prepared(tmp_path, monkeypatch, DECLARED)
    commit(one.path)
    assert one.steps_of() == ["apply_declaration"]


def test_a_table_that_can_not_be_made_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is tried once, and none of its flows runs: each has failed for this reason."""
    flows = flow("web", "orders"), flow("app", "orders")
    context: Any = context_of(tmp_path, PLAIN, flows=flows)
    tried: list[Any] = []

    def fails(*given: Any) -> None:
        tried.append(given)
        raise FlowFailed("no")

    monkeypatch.setattr(schedule, "prepare_table", fails)
    monkeypatch.setattr(schedule, "run_flow", lambda *_, **__: pytest.fail("it ran"))
    monkeypatch.setattr(schedule, "refusal_of_log", lambda _, error: error)
    ended: list[str] = []
    monkeypatch.setattr(schedule, "record_end", lambda _, outcome: ended.append(outcome.flow))
    prepared = schedule._Prepared(context, STAGE)
    for one in flows:
        outcome = FlowOutcome(one.name, "orders")
        schedule._run(context, STAGE, one.name, outcome, prepared)
        assert (outcome.status, type(outcome.error)) == (FlowStatus.FAILED, FlowFailed)
    assert tried == [(context, STAGE)]
    assert ended == ["web", "app"]
