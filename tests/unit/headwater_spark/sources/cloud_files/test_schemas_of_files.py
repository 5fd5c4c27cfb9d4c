"""Schemas of files: merged, evolved, hinted, kept as numbered files, partitions found in paths. No session is needed."""

from __future__ import annotations

import json

import pytest
from pyspark.sql.types import DateType, IntegerType, StringType, StructType

from headwater.errors import CheckpointUnreadable
from headwater_spark.sources.cloud_files.merging import evolved, union
from headwater_spark.sources.cloud_files.new_files import csv_columns, file_uri
from headwater_spark.sources.cloud_files.options import parse_options
from headwater_spark.sources.cloud_files.partitions import path_partitions
from headwater_spark.sources.cloud_files.schema_log import SchemaLog


def schema(**columns: str) -> StructType:
    kinds = {"bigint": "long", "int": "integer"}
    fields = [
        {"name": name, "type": kinds.get(kind, kind), "nullable": True, "metadata": {}}
        for name, kind in columns.items()
    ]
    return StructType.fromJson({"type": "struct", "fields": fields})


def test_new_columns_come_last_and_types_stay():
    """Evolution adds at the end, at any level, leaves types alone, and takes other letter case for the same field."""
    known, seen = schema(id="int", name="string"), schema(NAME="string", z="bigint", id="string")
    assert evolved(known, seen) == schema(id="int", name="string", z="bigint")
    nested = StructType().add("s", schema(a="int"))
    assert evolved(nested, StructType().add("s", schema(b="int"))) == StructType().add(
        "s", schema(a="int", b="int")
    )


def test_widening_follows_delta():
    """Only what Delta can widen is widened."""
    known = schema(a="int", b="int", c="bigint", d="date", e="int")
    seen = schema(a="bigint", b="double", c="double", d="string", e="string")
    assert evolved(known, seen, widen=True) == schema(a="bigint", b="double", c="bigint", d="date", e="int")


def test_files_that_disagree_make_text():
    """Of several files a type is inferred that holds all, text in the end."""
    merged = union([schema(a="bigint", b="bigint", c="int"), schema(a="double", b="string", c="bigint")])
    assert merged == schema(a="double", b="string", c="bigint")


def test_schema_log(tmp_path):
    """Versions are numbered files that people can read; a damaged one is named, with what its removal means."""
    log = SchemaLog(tmp_path / "here")
    assert log.latest() is None
    assert log.append(schema(id="int"), "inferred from 1 files") == 0
    assert log.append(schema(id="int", z="bigint"), "new: z") == 1
    assert log.latest() == (1, schema(id="int", z="bigint"))
    text = json.loads((tmp_path / "here/_schemas/1").read_text())
    assert (text["columns"], text["reason"]) == (["id: int", "z: bigint"], "new: z")
    (tmp_path / "here/_schemas/2").write_text("{")
    with pytest.raises(CheckpointUnreadable) as caught:
        log.latest()
    assert caught.value.where.endswith("_schemas/2")
    assert "the version before it" in caught.value.remedy
    for version in ("1", "2"):
        (tmp_path / "here/_schemas" / version).unlink()
    (tmp_path / "here/_schemas/0").write_text("")
    with pytest.raises(CheckpointUnreadable) as caught:
        log.latest()
    assert "inferred from all files" in caught.value.remedy


def test_partitions_from_paths():
    """key=value folders at any depth; types only where they are asked for."""
    paths = ["/in/eu/day=2026-01-31/n=1/a.json", "/in/day=2026-02-01/n=__HIVE_DEFAULT_PARTITION__/b.json"]
    plain = path_partitions(paths, None, infer_types=False)
    assert [(f.name, f.dataType) for f in plain.fields] == [("day", StringType()), ("n", StringType())]
    typed = path_partitions(paths, None, infer_types=True)
    assert [f.dataType for f in typed.fields] == [DateType(), IntegerType()]
    assert path_partitions(paths, ("n", "other"), infer_types=False).names == ["n", "other"]


def test_uris_are_spelled_as_spark_spells_them():
    """Blanks and percent signs are encoded, letters of other scripts are not."""
    assert file_uri("/a b/ä%20+=/c#?.json") == "file:/a%20b/ä%2520+=/c%23%3F.json"


def test_csv_header(tmp_path):
    """The header is read with the read's own separator and quotes, without the byte order mark."""
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbf# note\n"id";"the; name"\n1;2\n')
    options = parse_options({"cloudFiles.format": "csv", "sep": ";", "comment": "#"}, schema_given=False)
    assert csv_columns(str(path), options) == ("id", "the; name")
