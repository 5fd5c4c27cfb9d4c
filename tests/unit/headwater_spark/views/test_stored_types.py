"""What a view's own table says of its columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.headwater_spark.written_table import commit

from headwater_spark.views.stored_types import stored_schema_of, stored_table, stored_types

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "Id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "name", "type": "decimal(20,2)", "nullable": True, "metadata": {}},
    ],
}


def test_types_as_spark_prints_them(tmp_path: Path):
    """By the columns' own names in their order, or by those in lower case."""
    commit(tmp_path, schema=SCHEMA)
    assert list(stored_table(tmp_path).types.items()) == [("Id", "bigint"), ("name", "decimal(20,2)")]
    assert stored_types(tmp_path) == {"id": "bigint", "name": "decimal(20,2)"}
    assert stored_schema_of(tmp_path).simpleString() == "struct<Id:bigint,name:decimal(20,2)>"


@pytest.mark.parametrize(
    ("property_", "on"), [(None, False), ("false", False), ("TRUE", True), ("true", True)]
)
def test_whether_changes_are_recorded(tmp_path: Path, property_: str | None, on: bool):
    """As the property says, in whatever case; by default they are not."""
    properties = {} if property_ is None else {"delta.enableChangeDataFeed": property_}
    commit(tmp_path, properties=properties)
    assert stored_table(tmp_path).has_change_feed is on
