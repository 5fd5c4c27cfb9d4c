"""Types of Delta's log in Hive's words."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from headwater.metastore.column_types import Column, hive_columns, hive_type


@pytest.mark.parametrize(
    ("delta", "hive"),
    [
        ("string", "string"),
        ("byte", "tinyint"),
        ("short", "smallint"),
        ("integer", "int"),
        ("long", "bigint"),
        ("void", "void"),
        ("timestamp", "timestamp"),
        ("timestamp_ntz", "timestamp"),
        ("decimal(10,2)", "decimal(10,2)"),
        ("decimal(10, 2)", "decimal(10,2)"),
        ("variant", "struct<metadata:binary,value:binary>"),
        ("a type of tomorrow", "binary"),
        ({"type": "a type of tomorrow"}, "binary"),
        ({"type": "array", "elementType": "integer", "containsNull": True}, "array<int>"),
        ({"type": "map", "keyType": "string", "valueType": "long"}, "map<string,bigint>"),
        (
            {"type": "struct", "fields": [{"name": "a b", "type": "date"}, {"name": "Cc", "type": "short"}]},
            "struct<a_b:date,Cc:smallint>",
        ),
    ],
)
def test_types_are_told_in_hives_words(delta, hive):
    """Each type has one; a field's name has only signs that the grammars of Hive and of Spark both take."""
    assert hive_type(delta) == hive


def test_columns_of_a_real_table(tmp_path):
    """Names, types and comments come from the log as delta-rs reads it; a comment is not longer than Hive's tables take."""
    fields = [
        pa.field("Id", pa.int64(), metadata={"comment": "the key"}),
        pa.field("tags", pa.list_(pa.string()), metadata={"comment": "x" * 300}),
    ]
    write_deltalake(str(tmp_path / "t"), pa.table({"Id": [1], "tags": [["a"]]}, schema=pa.schema(fields)))
    schema = json.loads(DeltaTable(str(tmp_path / "t")).schema().to_json())
    assert hive_columns(schema) == (
        Column("id", "bigint", "the key"),
        Column("tags", "array<string>", "x" * 255),
    )
