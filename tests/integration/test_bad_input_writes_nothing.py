"""Each kind of bad input is told with what, where and what to do, has exit code 2, and leaves nothing on disk."""

from __future__ import annotations

import pytest

from headwater import errors

GOOD = '@dp.table\ndef bronze():\n    return spark.readStream.schema("id INT").json(LANDING)\n\n'

# The source, the kind of error, the piece of the user's line that is named, a word of the message, a word of the remedy.
CASES = {
    "two datasets of one name": (
        GOOD + '@dp.table(name="bronze")\ndef again():\n    return spark.range(1)\n',
        errors.DuplicateDataset, '@dp.table(name="bronze")', "defined twice", "Rename",
    ),
    "an unknown dataset": (
        GOOD + '@dp.table\ndef silver():\n    return dp.read("bronce")\n',
        errors.UnknownDataset, '"bronce"', "bronce", "Did you mean 'bronze'",
    ),
    "a cycle": (
        GOOD + '@dp.table\ndef a():\n    return dp.read("b")\n\n@dp.table\ndef b():\n    return dp.read("a")\n',
        errors.DatasetCycle, "def a" , "a -> b -> a", "Break the circle",
    ),
    "no DataFrame": (GOOD + "@dp.table\ndef x(): return 5\n", errors.NotADataFrame, "def x", "int", "return"),
    "collect": (
        GOOD + '@dp.table\ndef x():\n    rows = dp.read("bronze").collect()\n    return rows\n',
        errors.ActionInDefinition, ".collect()", "collect()", "Return the DataFrame",
    ),
    "count": (
        GOOD + '@dp.table\ndef x():\n    n = dp.read("bronze").count()\n    return spark.range(n)\n',
        errors.ActionInDefinition, ".count()", "count()", "Return the DataFrame",
    ),
    "start": (
        GOOD + '@dp.table\ndef x():\n    return dp.read_stream("bronze").writeStream.start("/nowhere")\n',
        errors.ActionInDefinition, ".start(", "start()", "Return the DataFrame",
    ),
    "toTable": (
        GOOD + '@dp.table\ndef x():\n    return dp.read_stream("bronze").writeStream.toTable("y")\n',
        errors.ActionInDefinition, ".toTable(", "toTable()", "Return the DataFrame",
    ),
    "a rule that does not parse": (
        GOOD.replace("def", '@dp.expect("r", "id >")\ndef'),
        errors.InvalidExpectation, 'dp.expect("r"', "does not parse", "SQL condition",
    ),
    "a rule over an unknown column": (
        GOOD.replace("def", '@dp.expect_or_fail("r", "idd > 0")\ndef'),
        errors.InvalidExpectation, 'dp.expect_or_fail("r"', "idd", "SQL condition",
    ),
    "a Python error in a source": (
        GOOD + "limits = {}\nx = limits['missing']\n",
        errors.SourceFileFailed, "limits['missing']", "KeyError", "Correct",
    ),
    "a Python error in a function": (
        GOOD + "@dp.table\ndef x():\n    limits = {}\n    return limits['missing']\n",
        errors.SourceFileFailed, "limits['missing']", "KeyError", "Correct",
    ),
    "no Python": (GOOD + "def x(:\n", errors.SourceFileFailed, "def x(:", "invalid syntax", "Correct"),
    "no dataset": ("x = 1\n", errors.InvalidPipeline, None, "declare no dataset", "@dp.table"),
    "only a flow, and no table for it": (
        GOOD.replace("@dp.table", '@dp.append_flow(target="users")'),
        errors.FlowWithoutTarget, '@dp.append_flow(target="users")', "'users', which nothing declares", "dp.create_streaming_table",
    ),
    "a partition by a column that is not there": (
        GOOD + '@dp.table(partition_cols=["dya"])\ndef x():\n    return spark.sql("select 1 id, 2 day")\n',
        errors.UnsupportedArgument, "partition_cols", "its columns are: id, day", "Did you mean 'day'?",
    ),
    "a table property that Delta does not know": (
        GOOD + '@dp.table(table_properties={"delta.apendOnly": "true"})\ndef x():\n    return spark.range(1)\n',
        errors.UnsupportedArgument, "table_properties", "delta.apendOnly=true", "leave them out",
    ),
    "a value that a table property can't have": (
        GOOD + '@dp.table(table_properties={"delta.appendOnly": "maybe"})\ndef x():\n    return spark.range(1)\n',
        errors.UnsupportedArgument, "table_properties", "delta.appendOnly=maybe", "leave them out",
    ),
    "an argument that can't be honoured": (
        GOOD + '@dp.table(row_filter="f")\ndef x():\n    return spark.range(1)\n',
        errors.UnsupportedArgument, "row_filter", "row_filter", "Filter in the query",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "kind", "fragment", "what", "remedy"), CASES.values(), ids=list(CASES))
def test_bad_sources(
    pipeline, source: str, kind: type[errors.HeadwaterError], fragment: str | None, what: str, remedy: str
):
    """An update of such a pipeline ends before anything is read or written."""
    case = pipeline(source)
    case.land([{"id": 1}])
    with pytest.raises(kind) as caught:
        case.update()
    message = str(caught.value)
    assert what in message
    assert remedy in message
    # A function's place is the line of its decorator, as Python counts.
    places = [case.line_of(fragment)] if fragment else [str(case.folder)]
    if fragment and fragment.startswith("def "):
        name, _, line = places[0].rpartition(":")
        places.append(f"{name}:{int(line) - 1}")
    assert any(place in message for place in places), message
    assert caught.value.exit_code == 2
    assert not caught.value.transient
    assert case.nothing_written()


@pytest.mark.parametrize(
    ("spec", "what", "line"),
    [
        ("librarys: []\n", "Did you mean `libraries`?", 5),
        ("airflow: {retries: many}\n", "airflow.retries", 5),
        ("libraries: [{glob: {include: '../**'}}]\n", "leads out", None),
        ("libraries: [{glob: {include: 'empty/**'}}]\n", "no source files", None),
    ],
)
def test_bad_specs(pipeline, spec: str, what: str, line: int | None):
    """A fault of pipeline.yml is told with its line, before Spark is asked for anything."""
    case = pipeline(GOOD, spec=spec)
    with pytest.raises(errors.InvalidPipeline) as caught:
        case.update()
    assert what in str(caught.value)
    assert f"pipeline.yml{f':{line}' if line else ''}" in caught.value.where
    assert caught.value.exit_code == 2
    assert case.nothing_written()


def test_bad_selections(pipeline):
    """A dataset that is not there, named for an update, is told with the nearest name."""
    case = pipeline(GOOD)
    with pytest.raises(errors.UnknownDataset, match="bronce") as caught:
        case.update(full_refresh=("bronce",))
    assert "bronze" in caught.value.remedy
    assert not case.warehouse.exists()
    assert not (case.project().state_folder / "checkpoints").exists()
