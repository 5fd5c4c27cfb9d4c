"""Functions are evaluated over stand-ins: the graph comes out whatever the order, and faults have the user's line."""

from __future__ import annotations

import pytest

from headwater.definitions.dataset import DatasetKind
from headwater.errors import (
    DatasetCycle,
    FlowWithoutTarget,
    HeadwaterError,
    NotADataFrame,
    QueryFailed,
    SourceFileFailed,
    StreamingReadOfMaterializedView,
    UnknownDataset,
    UnsupportedArgument,
)

# Quick where a session is there: they run each time.

BRONZE = """
@dp.table
def bronze():
    return spark.readStream.schema("id INT, name STRING, at TIMESTAMP").json(LANDING)

@dp.materialized_view
def people():
    return spark.createDataFrame([("a", 1)], "name STRING, age INT")
"""


def error_of(case, kind: type[HeadwaterError], fragment: str) -> HeadwaterError:
    """The error of a pipeline that can't be resolved, told at the line with ``fragment``; nothing is written."""
    with pytest.raises(kind) as caught:
        case.manifest()
    assert case.line_of(fragment) in caught.value.where
    assert caught.value.remedy
    assert case.nothing_written()
    return caught.value


def test_declared_from_the_end_to_the_beginning(pipeline):
    """Readers may be declared before what they read; a join of two new tables and views in between resolve in one pass."""
    case = pipeline(
        """
@dp.materialized_view
def gold():
    return dp.read("joined").groupBy("age").count()

@dp.table
def joined():
    return dp.read_stream("recent").join(dp.read("adults"), "name")

@dp.temporary_view
def adults():
    return dp.read("people").where("age >= 18")

@dp.temporary_view
def recent():
    return spark.readStream.table("bronze").where("at > '2026-01-01'")
"""
        + BRONZE
    )
    manifest = case.manifest()
    kinds = {entry.name: entry.kind for entry in manifest.datasets}
    assert kinds["joined"] is DatasetKind.STREAMING_TABLE
    assert kinds["gold"] is DatasetKind.MATERIALIZED_VIEW
    assert set(manifest.flows_into("joined")[0].inputs) == {"recent", "adults"}
    assert manifest.upstream("joined") == ["bronze", "people"]
    sources = [(source.name, source.streaming) for source in manifest.flows_into("joined")[0].sources]
    assert sources == [("bronze", True), ("people", False)]
    assert [column.name for column in manifest.dataset("gold").columns] == ["age", "count"]


def test_table_is_what_its_function_returns(pipeline):
    """dp.table gives a streaming table or a materialized view, by the frame."""
    kinds = {
        entry.name: entry.kind
        for entry in pipeline(BRONZE.replace("materialized_view", "table")).manifest().datasets
    }
    assert kinds == {"bronze": DatasetKind.STREAMING_TABLE, "people": DatasetKind.MATERIALIZED_VIEW}


def test_a_watermark_is_not_inherited(pipeline):
    """Who reads a table whose query had a watermark must set one: without it an aggregation can't be appended."""
    case = pipeline(
        BRONZE.replace(".json(LANDING)", '.json(LANDING).withWatermark("at", "1 hour")')
        + """
@dp.table
def whole():
    return dp.read_stream("bronze").groupBy(F.window("at", "1 day")).count()

@dp.table
def appended():
    return dp.read_stream("bronze").withWatermark("at", "1 hour").groupBy(F.window("at", "1 day")).count()
"""
    )
    with case.resolved() as resolved:
        modes = resolved.evaluation.output_modes
    names = {flow: str(mode.kind) for flow, mode in modes.items()}
    assert names == {"bronze": "append", "whole": "update", "appended": "append"}
    assert modes["whole"].keys == ("window",)


def test_a_watermark_is_not_stored(pipeline):
    """The stored table has no mark of the watermark in its columns' metadata."""
    case = pipeline(BRONZE.replace(".json(LANDING)", '.json(LANDING).withWatermark("at", "1 hour")'))
    case.land([{"id": 1, "name": "a", "at": "2026-01-01T00:00:00Z"}])
    case.update(tables=("bronze",))
    log = (case.table("bronze") / "_delta_log" / f"{0:020d}.json").read_text()
    assert "metaData" in log
    assert "watermark" not in log


CYCLES = {
    "itself": ('@dp.table\ndef a():\n    return dp.read_stream("a")\n', "a -> a"),
    "two": (
        '@dp.table\ndef a():\n    return dp.read("b")\n\n@dp.table\ndef b():\n    return dp.read("a")\n',
        "a -> b -> a",
    ),
    "through a view": (
        '@dp.table\ndef a():\n    return dp.read("b")\n\n@dp.view\ndef b():\n    return spark.sql("select * from c")\n\n'
        '@dp.table\ndef c():\n    return dp.read("a")\n',
        "a -> b -> c -> a",
    ),
    "views": (
        '@dp.view\ndef a():\n    return dp.read("b")\n\n@dp.view\ndef b():\n    return dp.read("a")\n',
        "a -> b -> a",
    ),
}


@pytest.mark.parametrize(("source", "path"), CYCLES.values(), ids=list(CYCLES))
def test_a_cycle(pipeline, source: str, path: str):
    """Datasets that read each other in a circle are told as a path."""
    with pytest.raises(DatasetCycle) as caught:
        pipeline(source).manifest()
    assert path in caught.value.what
    assert "main.py:" in caught.value.where


@pytest.mark.parametrize(
    "read",
    [
        'dp.read("bronz")',
        'dp.read_stream("bronz")',
        'spark.read.table("shop.bronz")',
        'spark.table("LIVE.bronz")',
    ],
)
def test_an_unknown_dataset(pipeline, read: str):
    """A misspelt name is told at its line with the nearest name."""
    case = pipeline(BRONZE + f"\n@dp.table\ndef silver():\n    return {read}\n")
    error = error_of(case, UnknownDataset, read)
    assert "Did you mean 'bronze'?" in error.remedy


def test_an_unknown_dataset_that_nothing_resembles(pipeline):
    """Where no name is near, all are listed."""
    case = pipeline(BRONZE + '\n@dp.table\ndef silver():\n    return dp.read("zzz")\n')
    assert "bronze, people, silver" in error_of(case, UnknownDataset, "zzz").remedy


@pytest.mark.parametrize("value", ["None", "1", "'select 1'", "[spark.range(1)]", "spark.range(1).toPandas"])
def test_a_function_that_gives_no_frame(pipeline, value: str):
    """What is not a DataFrame is told by its type."""
    case = pipeline(f"@dp.table\ndef bronze():\n    return {value}\n")
    assert "not a DataFrame" in error_of(case, NotADataFrame, "@dp.table").what


WRONG_KINDS = {
    "stream in a materialized view": '@dp.materialized_view\ndef x():\n    return dp.read_stream("bronze")',
    "batch in a streaming table": '@dp.streaming_table\ndef x():\n    return dp.read("bronze")',
    "batch flow": 'dp.create_streaming_table("t")\n@dp.append_flow(target="t")\ndef x():\n    return dp.read("bronze")',
    "stream once": 'dp.create_streaming_table("t")\n@dp.append_flow(target="t", once=True)\ndef x():\n    return dp.read_stream("bronze")',
}


@pytest.mark.parametrize("source", WRONG_KINDS.values(), ids=list(WRONG_KINDS))
def test_a_frame_of_the_wrong_kind(pipeline, source: str):
    """A stream where a batch is needed, or the other way round, is told with what to write."""
    case = pipeline(BRONZE + "\n" + source + "\n")
    decorator = "@dp.append_flow" if "append_flow" in source else source.split("\n")[0]
    case.rewrite(source + "\n" + BRONZE)
    error = error_of(case, NotADataFrame, decorator)
    assert "spark.read" in error.remedy


@pytest.mark.parametrize(
    ("kind", "read"),
    [("readStream.table", 'spark.read.table("v")'), ("read.table", 'spark.readStream.table("v")')],
)
def test_a_view_read_the_other_way(pipeline, kind: str, read: str):
    """A streaming view read as a batch, and a batch view as a stream, are refused (Spark would say nothing of the first)."""
    case = pipeline(
        BRONZE
        + f'\n@dp.view\ndef v():\n    return spark.{kind}("bronze")\n\n@dp.table\ndef x():\n    return {read}\n'
    )
    error_of(case, NotADataFrame, read)


def test_a_materialized_view_read_as_a_stream(pipeline):
    """It would fail at its first refresh: refused with both ways out; its change feed may be read."""
    source = '\n@dp.table\ndef x():\n    return spark.readStream{}.table("people")\n'
    error = error_of(
        pipeline(BRONZE + source.format("")), StreamingReadOfMaterializedView, "readStream.table"
    )
    assert "readChangeFeed" in error.remedy
    case = pipeline(BRONZE + source.format('.option("readChangeFeed", "true")'))
    names = [column.name for column in case.manifest().dataset("x").columns]
    assert names == ["name", "age", "_change_type", "_commit_version", "_commit_timestamp"]


TARGETS = {
    "no such table": (
        '@dp.append_flow(target="nope")\ndef x():\n    return dp.read_stream("bronze")',
        "append_flow",
    ),
    "a view": (
        '@dp.append_flow(target="people")\ndef x():\n    return dp.read_stream("bronze")',
        "append_flow",
    ),
    "nothing fills it": ('dp.create_streaming_table("empty")', "create_streaming_table"),
}


@pytest.mark.parametrize(("source", "fragment"), TARGETS.values(), ids=list(TARGETS))
def test_flows_and_targets_that_do_not_meet(pipeline, source: str, fragment: str):
    """A flow needs a streaming table, and a table a flow."""
    error_of(pipeline(BRONZE + "\n" + source + "\n"), FlowWithoutTarget, fragment)


def test_wrong_queries(pipeline):
    """A column that is not there is told at the line that names it, in Spark's words."""
    case = pipeline(
        BRONZE + '\n@dp.table\ndef x():\n    frame = dp.read("people")\n    return frame.select("agee")\n'
    )
    assert "agee" in error_of(case, QueryFailed, '"agee"').what


def test_python_errors(pipeline):
    """An error of Python in a function, in a helper of the source, or in a module beside it has the user's line."""
    case = pipeline(
        "import prices\n\ndef helper():\n    return prices.rate(0)\n\n@dp.table\ndef x():\n    return helper()\n",
        files={"transformations/prices.py": "def rate(x):\n    return 1 / x\n\nimport dlt\n"},
        spec="libraries: [{file: {path: transformations/main.py}}]\n",
    )
    with pytest.raises(SourceFileFailed, match="ZeroDivisionError") as caught:
        case.manifest()
    assert caught.value.where == case.line_of("1 / x", "transformations/prices.py")


@pytest.mark.parametrize(
    ("source", "fragment"),
    [
        ("x = 1\n1 / 0\n", "1 / 0"),
        ("import nothing_of_this_name\n", "import nothing"),
        ("def x(:\n", "def x(:"),
        ("assert False\n", "assert"),
    ],
)
def test_errors_while_a_source_is_run(pipeline, source: str, fragment: str):
    """A source that can't be run is told at its own line."""
    error_of(pipeline(source), SourceFileFailed, fragment)


def test_wrong_types_of_arguments(pipeline):
    """A name that is no text is told at its line."""
    case = pipeline(BRONZE + "\n@dp.table\ndef x():\n    return dp.read(42)\n")
    with pytest.raises(HeadwaterError) as caught:
        case.manifest()
    assert caught.value.where == case.line_of("dp.read(42)")


@pytest.mark.parametrize("schema", ["'id INTT'", "42", "['id']"])
def test_a_schema_that_is_none(pipeline, schema: str):
    """The schema argument takes a StructType or a DDL text."""
    case = pipeline(f"@dp.table(schema={schema})\ndef x():\n    return spark.range(1)\n")
    error_of(case, UnsupportedArgument, "@dp.table")
