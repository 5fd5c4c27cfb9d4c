"""When a table gets column mapping for a column whose name files can't have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, run_of, sink
from tests.unit.headwater_spark.written_table import commit

from headwater.definitions.sink import SinkKind
from headwater_spark.delta_writes.column_mapping import MAPPING
from headwater_spark.execution import column_names as module
from headwater_spark.execution.restarts import Start

SPECIAL, OTHER = RuntimeError("special"), RuntimeError("other")


def again(
    root: Path, monkeypatch: pytest.MonkeyPatch, *, failure: Exception = SPECIAL, table: Any = None, there: bool = True,
    mapped: bool = True,
) -> Start | None:  # fmt: skip
    """The next start after a failure, where mapping the columns succeeds or not."""
    one = table or dataset()
    run = run_of(context_of(root, one), one, flow(target=one.name))
    if there and run.delta_table is not None:
        commit(Path(str(run.delta_table)))
    monkeypatch.setattr(module, "causes_of_error", str)
    monkeypatch.setattr(module, "shows", lambda causes, _: causes == "special")
    asked: list[Any] = []
    monkeypatch.setattr(module, "map_columns", lambda _, path: asked.append(path) or mapped)
    start = module.take_special_names(run, failure, Start(seconds=9.0))
    assert asked in ([], [run.delta_table])
    return start


def test_a_name_that_files_can_not_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The table has mapping from now on, and the flow starts again at once."""
    start = again(tmp_path, monkeypatch)
    assert start is not None
    assert start.seconds == 0.0
    assert "column mapping" in (start.reason or "")


@pytest.mark.parametrize(
    "case",
    [
        {"failure": OTHER},
        {"there": False},
        {"mapped": False},
        {"table": dataset(table_properties={MAPPING: "none"})},
        {"table": sink(SinkKind.FUNCTION, "", function=print)},
    ],
)
def test_what_is_left_to_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: dict[str, Any]):
    """Another failure, no table, one that can't be mapped, and one that says itself how its columns are mapped."""
    assert again(tmp_path, monkeypatch, **case) is None
