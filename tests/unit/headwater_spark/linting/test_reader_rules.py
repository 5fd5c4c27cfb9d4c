"""Tables that the readers of pipeline.yml could not follow."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.finding import Severity
from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.definitions.source_location import SourceLocation
from headwater.graph.manifest import ColumnEntry, DatasetEntry
from headwater_spark.linting.reader_rules import unreadable_tables


def pipeline_of(*tables: DatasetEntry, **given: Any) -> Any:
    """A resolved pipeline as far as the rule looks at it."""
    spec = PipelineSpec.model_validate({"name": "a", **given})
    return SimpleNamespace(
        project=SimpleNamespace(spec=spec),
        manifest=SimpleNamespace(tables=tables),
        dataset=lambda name: SimpleNamespace(location=SourceLocation(f"{name}.py", 3)),
    )


def table(name: str, **more: Any) -> DatasetEntry:
    return DatasetEntry(name=name, kind=DatasetKind.STREAMING_TABLE, **more)


MAPPED = table("mapped", table_properties={"delta.columnMapping.mode": "name"})
VARIANT = table("loose", columns=(ColumnEntry(name="v", type="variant"),))
PRIVATE = table("inner", private=True, table_properties={"delta.checkpointPolicy": "v2"})


def test_each_table_is_named_with_its_line_and_the_way_out():
    """HW701, a warning, with the feature and the readers that it shuts out; private tables are no business of theirs."""
    found = list(
        unreadable_tables(pipeline_of(MAPPED, VARIANT, PRIVATE, table("plain"), readers=["duckdb", "polars"]))
    )
    assert [(one.code, one.severity, one.dataset, str(one.where)) for one in found] == [
        ("HW701", Severity.WARNING, "mapped", "mapped.py:3"),
        ("HW701", Severity.WARNING, "loose", "loose.py:3"),
    ]
    assert found[0].message == "polars can't read 'mapped': the table has column mapping."
    assert "Leave delta.columnMapping.mode out, or take polars out of `readers`" in found[0].remedy


def test_defaults_under_spark_count():
    """The session that makes a table gives it properties, too."""
    spark = {"spark.databricks.delta.properties.defaults.enableTypeWidening": True}
    (found,) = unreadable_tables(pipeline_of(table("plain"), readers=["delta-rs"], spark=spark))
    assert found.dataset == "plain"


def test_without_readers_nothing_is_looked_for():
    """Whoever names nobody is told nothing."""
    assert list(unreadable_tables(pipeline_of(MAPPED, VARIANT))) == []
