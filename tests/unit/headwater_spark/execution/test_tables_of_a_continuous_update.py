"""Which tables a continuous update makes before their first row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, sink, state_of

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.sink import SinkKind
from headwater_spark.execution import continuous
from headwater_spark.execution.flow_run import FlowRun


@pytest.mark.parametrize(
    ("table", "more", "written", "created"),
    [
        (dataset(), {}, False, True),
        (dataset(), {}, True, False),
        (dataset(), {"once": True}, False, False),
        (dataset(kind=DatasetKind.MATERIALIZED_VIEW), {}, False, False),
        (sink(SinkKind.DELTA, "delta", path="/t"), {}, False, False),
        (sink(SinkKind.FUNCTION, "", function=print), {}, False, False),
    ],
)
def test_tables_that_readers_wait_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    table: Any,
    more: dict[str, Any],
    written: bool,
    created: bool,
):
    """A stream's table is there before its first row, unless it has one; others make theirs themselves."""
    one = flow("f", table.name, **more)
    context = context_of(tmp_path, table, flows=(one,))
    context.pipeline.evaluation.table_schema = lambda _: None
    if written:
        state_of(context, table.name, "f", sink_id="id")
    made: list[object] = []
    monkeypatch.setattr(continuous, "create_table", lambda *given: made.append(given[2]))
    continuous._create_table(FlowRun.of(context, table, one))
    assert bool(made) is created
