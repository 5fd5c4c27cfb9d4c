"""Which features of a table shut out which of the readers that a pipeline names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaProtocolError
from pydantic import ValidationError

from headwater.definitions.other_engines import FEATURES, Engine, TableFeature, shut_out
from headwater.definitions.pipeline_spec import PipelineSpec

PAGE = Path(__file__).parents[4] / "docs" / "other-engines.md"
# What the page's tables are called that have a feature of the rule.
ROWS = {
    "column_mapping": "columnMapping",
    "deletion_vectors": "deletionVectors",
    "v2_checkpoint": "v2Checkpoint",
    "type_widening": "typeWidening",
    "variant": "variantType",
}
EVERYBODY = tuple(Engine)


def names(properties: dict[str, str], types: tuple[str, ...] = (), **more: dict[str, str]) -> list[str]:
    return [found.feature.protocol for found in shut_out(EVERYBODY, properties, types, **more)]


def test_the_rule_is_what_the_page_says():
    """For each row of the page's table, which is compared with the engines themselves: whom it shuts out, and nobody else."""
    rows = re.findall(r"^\| [^|]*\| `(\w+)` \| (\w+) \| (\w+) \| (\w+) \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) > len(ROWS)
    excluded = {feature.protocol: feature.shut_out - {Engine.PANDAS} for feature in FEATURES}
    for name, *answers in rows:
        engines = (Engine.DUCKDB, Engine.POLARS, Engine.DELTA_RS)
        refusing = {engine for engine, answer in zip(engines, answers, strict=True) if answer == "no"}
        assert refusing == excluded.get(ROWS.get(name, ""), set()), name
    assert set(ROWS.values()) == set(excluded)


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.protocol)
def test_delta_rs_and_its_older_readers_are_as_the_rule_says(feature: TableFeature, tmp_path: Path):
    """A table whose protocol has the feature is read by the installed delta-rs, or refused, as the rule has it."""
    columns = [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]
    configuration = {}
    if feature.protocol == "columnMapping":
        configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
        columns[0]["metadata"] = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c1"}
    log = tmp_path / "_delta_log"
    log.mkdir()
    version = {"minReaderVersion": 2, "minWriterVersion": 5}
    if feature.protocol != "columnMapping":
        listed = [feature.protocol]
        version = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": listed,
            "writerFeatures": listed,
        }
    metadata = {
        "id": "11111111-2222-3333-4444-555555555555",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": columns}),
        "partitionColumns": [],
        "configuration": configuration,
        "createdTime": 1,
    }
    lines = [{"protocol": version}, {"metaData": metadata}]
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, lines)))
    table = DeltaTable(tmp_path)

    if Engine.PANDAS in feature.shut_out:
        with pytest.raises(DeltaProtocolError):
            table.to_pyarrow_table()
    else:
        assert table.to_pyarrow_table().num_rows == 0
    if Engine.DELTA_RS not in feature.shut_out:
        QueryBuilder().register("t", table).execute("select * from t").read_all()


@pytest.mark.parametrize(
    ("properties", "found"),
    [
        ({}, []),
        ({"delta.columnMapping.mode": "name"}, ["columnMapping"]),
        ({"DELTA.columnmapping.mode": "ID"}, ["columnMapping"]),
        ({"delta.columnMapping.mode": "none"}, []),
        ({"delta.checkpointPolicy": "v2"}, ["v2Checkpoint"]),
        ({"delta.checkpointPolicy": "classic"}, []),
        ({"delta.enableTypeWidening": "TRUE"}, ["typeWidening"]),
        ({"delta.enableDeletionVectors": "false"}, []),
        ({"delta.feature.typeWidening-preview": "supported"}, ["typeWidening"]),
        ({"delta.feature.variantType": "supported"}, ["variantType"]),
    ],
)
def test_properties(properties: dict[str, str], found: list[str]):
    """By the property that turns a feature on, in any case of letters, or by the feature's own; off is off."""
    assert names(properties) == found


@pytest.mark.parametrize(
    ("type_", "found"),
    [
        ("variant", True),
        ("array<variant>", True),
        ("struct<a:int,b:map<string,variant>>", True),
        ("struct<variant:int>", False),
        ("string", False),
    ],
)
def test_variant_columns(type_: str, found: bool):
    """At any depth of a type; a field that is called variant is none."""
    assert names({}, ("bigint", type_)) == (["variantType"] if found else [])


def test_defaults_of_the_session():
    """A session may set properties for all tables that it makes; what the table itself says wins."""
    session = {"spark.databricks.delta.properties.defaults.columnMapping.mode": "name", "spark.x": "1"}
    assert names({}, session=session) == ["columnMapping"]
    assert names({"delta.columnMapping.mode": "none"}, session=session) == []


def test_only_who_is_named():
    """A feature is reported with the readers that it shuts out, in the order of the file, each once; nobody named, nothing found."""
    properties = {"delta.enableTypeWidening": "true", "delta.columnMapping.mode": "name"}
    readers = (Engine.DELTA_RS, Engine.DUCKDB, Engine.DELTA_RS)
    (found,) = shut_out(readers, properties, ())
    assert (found.feature.protocol, found.readers) == ("typeWidening", (Engine.DELTA_RS,))
    assert list(shut_out((), properties, ("variant",))) == []


def test_a_reader_that_was_never_tried():
    """It is refused by name, with those that were tried."""
    spec = PipelineSpec.model_validate({"name": "a", "readers": ["polars", "delta-rs"]})
    assert spec.readers == (Engine.POLARS, Engine.DELTA_RS)
    with pytest.raises(ValidationError, match=r"'trino' was never tried .* duckdb, polars, delta-rs, pandas"):
        PipelineSpec.model_validate({"name": "a", "readers": ["trino"]})
    with pytest.raises(ValidationError, match="readers"):
        PipelineSpec.model_validate({"name": "a", "readers": "polars"})
