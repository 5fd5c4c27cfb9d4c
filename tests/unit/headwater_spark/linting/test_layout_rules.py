"""A z-order by a column that is none is said before maintenance passes over the table."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from headwater.definitions.source_location import SourceLocation
from headwater.delta_log.commits import commit_file
from headwater_spark.linting.layout_rules import unknown_order_columns

WHERE = SourceLocation("main.py", 7)


def found(warehouse: Path, properties: dict[str, str], *columns: str) -> list[tuple[str, str]]:
    """The message and the remedy of each finding, of a table with these columns."""
    entry = SimpleNamespace(
        name="sessions", table_properties=properties, columns=[SimpleNamespace(name=name) for name in columns]
    )
    manifest = SimpleNamespace(tables=[entry], table_path=lambda root, name: root / name)
    pipeline: Any = SimpleNamespace(
        manifest=manifest,
        project=SimpleNamespace(warehouse=warehouse),
        dataset=lambda _: SimpleNamespace(location=WHERE),
    )
    findings = list(unknown_order_columns(pipeline))
    assert {(one.code, one.where, one.dataset) for one in findings} <= {("HW606", WHERE, "sessions")}
    return [(one.message, one.remedy) for one in findings]


def order(columns: str, **more: str) -> dict[str, str]:
    return {"pipelines.autoOptimize.zOrderCols": columns, **more}


@pytest.mark.parametrize(
    ("properties", "columns"),
    [
        ({}, ("user_id",)),
        (order("USER_ID, at"), ("user_id", "At")),
        (order("other"), ()),
        ({"pipelines.autooptimize.zordercols": " "}, ("user_id",)),
        (order("other") | {"pipelines.autoOptimize.managed": "False"}, ("user_id",)),
    ],
)
def test_nothing_is_wrong(tmp_path: Path, properties: dict[str, str], columns: tuple[str, ...]):
    """Letter case makes no difference; a table that nothing fills has no columns; one that nobody lays out has no order."""
    assert found(tmp_path, properties, *columns) == []


def test_a_column_that_is_none(tmp_path: Path):
    """Each is named at the table's line, with the one that it was meant to be."""
    (first, second) = found(tmp_path, order("user, id, nowhere"), "user_id", "id")
    assert "names 'user'" in first[0]
    assert first[1] == "Did you mean 'user_id'?"
    assert "names 'nowhere'" in second[0]
    assert second[1] == "Its columns are: user_id, id."


def test_a_column_of_an_earlier_definition(tmp_path: Path):
    """The table still has it; where its log can't be read, nothing is known."""
    table = tmp_path / "sessions"
    write_deltalake(str(table), pa.table({"id": [1], "former": [1]}))
    assert found(tmp_path, order("former"), "id") == []
    assert len(found(tmp_path, order("former, never"), "id")) == 1
    commit_file(table, 0).write_text("{")
    assert found(tmp_path, order("former, never"), "id") == []
