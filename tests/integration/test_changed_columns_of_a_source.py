"""Columns of a Delta source that others change: each change under each policy."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.in_step import Scenario, Share, Steps, in_step
from tests.pipeline_case import PipelineCase

from headwater.checkpoints.conditions import SourceRowsChanged
from headwater.errors import InvalidPipeline, SourceSchemaChanged
from headwater_spark.execution import streaming_write
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.testing.local_session import forget_tables

POLICIES = {
    "fail": "",
    "add": '.option("mergeSchema", "true")',
    "rescue": '.option("rescuedDataColumn", "_rescued")',
}
PATH = 'LANDING + "/source"'
FIRST = (1, "a", 5)


def reading(*policies: str, name: str = "") -> str:
    """A table for each policy, called as it is."""
    return "".join(
        f'@dp.table(name="{name or policy}")\ndef {policy}():\n'
        f'    return spark.readStream.format("delta"){POLICIES[policy]}.load({PATH})\n\n'
        for policy in policies
    )


def begin(case: Share, *policies: str, mapped: bool = True) -> None:
    """Tables over a table of others, ``id, name, n``; its statements have {t} for the table."""
    case.rewrite(reading(*policies))
    made = case.whole.root / f"made-{mapped}"
    if not made.exists():  # by the first scenario, for all
        rows = SparkSession.active().createDataFrame([FIRST], "id INT, name STRING, n INT")
        writer = rows.write.format("delta")
        if mapped:
            writer = writer.option("delta.columnMapping.mode", "name").option(
                "delta.enableTypeWidening", "true"
            )
        writer.save(str(made))
    shutil.copytree(made, case.landing / "source")


def run(spark: SparkSession, case: PipelineCase, *statements: str) -> None:
    """Run statements on the source."""
    for statement in statements:
        spark.sql(statement.replace("{t}", f"delta.`{case.landing}/source`"))


CHANGES: dict[str, tuple[list[str], list[tuple[Any, ...]] | None, list[tuple[Any, ...]]]] = {
    # Statements; rows with policy add (None: it fails); rows with policy rescue.
    "added z": (
        ["ALTER TABLE {t} ADD COLUMN z INT", "INSERT INTO {t} VALUES (2, 'b', 6, 7)"],
        [(*FIRST, None), (2, "b", 6, 7)],
        [(*FIRST, None), (2, "b", 6, '{"z":7}')],
    ),
    "removed n": (
        ["ALTER TABLE {t} DROP COLUMN n", "INSERT INTO {t} VALUES (2, 'b')"],
        None,
        [(*FIRST, None), (2, "b", None, None)],
    ),
    "renamed n to m": (
        ["ALTER TABLE {t} RENAME COLUMN n TO m", "INSERT INTO {t} VALUES (2, 'b', 6)"],
        None,
        [(*FIRST, None), (2, "b", None, '{"m":6}')],
    ),
    "changed n from int to bigint": (
        [
            "ALTER TABLE {t} ALTER COLUMN n TYPE BIGINT",
            "INSERT INTO {t} VALUES (2, 'b', 6), (3, 'c', 5000000000)",
        ],
        None,
        [(*FIRST, None), (2, "b", 6, None), (3, "c", None, '{"n":5000000000}')],
    ),
}


def each_change_under_each_policy(case: Share, change: str) -> Steps:
    """Fail names the change and reads nothing; add takes additions alone; rescue goes on with the columns of before."""
    statements, added, rescued = CHANGES[change]
    spark = SparkSession.active()
    begin(case, *POLICIES)
    report = yield
    assert report.state == "COMPLETED", report.error
    run(spark, case, *statements)
    report = yield
    assert report.statuses == {
        "fail": "FAILED",
        "add": "FAILED" if added is None else "COMPLETED",
        "rescue": "COMPLETED",
    }
    for name in ("fail", "add"):
        error = report[name].error
        if error is not None:
            assert isinstance(error, SourceSchemaChanged)
            assert change in error.what
            assert "rescuedDataColumn" in error.remedy
            assert f"--full-refresh {case.own(name)}" in error.remedy
    assert case.rows("fail") == [FIRST]
    assert case.rows("add") == (added or [FIRST])
    assert case.rows("rescue", order="id") == rescued


def a_table_that_was_overwritten(case: Share) -> Steps:
    """Another schema over rows that were read: no policy helps; it is refused before a start, with what to do."""
    begin(case, "rescue", mapped=False)
    assert (yield).state == "COMPLETED"
    rows = (
        SparkSession.active()
        .createDataFrame([(2, "b", "x")], "id INT, name STRING, n STRING")
        .write.format("delta")
    )
    rows.mode("overwrite").option("overwriteSchema", "true").save(str(case.landing / "source"))
    report = yield
    assert isinstance(report.error, SourceRowsChanged)
    assert f"--full-refresh {case.own('rescue')}" in report.error.remedy
    assert not any("starts again" in event["message"] for event in case.events(flow="rescue"))
    assert case.rows("rescue") == [(*FIRST, None)]


def rescued_columns_stay_what_they_were(case: Share) -> Steps:
    """The columns are those of the first start, after any number of changes and updates; a full refresh takes today's."""
    spark = SparkSession.active()
    begin(case, "rescue")
    assert (yield).state == "COMPLETED"
    run(spark, case, "ALTER TABLE {t} ADD COLUMN z INT", "INSERT INTO {t} VALUES (2, 'b', 6, 7)")
    assert (yield).state == "COMPLETED"
    run(spark, case, "ALTER TABLE {t} ADD COLUMN y INT", "INSERT INTO {t} VALUES (3, 'c', 7, 8, 9)")
    assert (yield).state == "COMPLETED"
    assert case.rows("rescue")[2] == (3, "c", 7, '{"z":8,"y":9}')
    assert (yield {"full_refresh": ("rescue",)}).state == "COMPLETED"
    assert case.columns("rescue") == ["id", "name", "n", "_rescued", "z", "y"]
    assert case.rows("rescue", "id, z, y, _rescued")[2] == (3, 8, 9, None)


def a_change_while_it_runs(case: Share, policy: str, monkeypatch: pytest.MonkeyPatch) -> Steps:
    """The stream starts once more by itself with the columns of now; then the policy holds."""
    begin(case, policy)
    report = yield
    assert report.state == "COMPLETED", report.error
    # Within an update the active session is that of the pipeline's sources.
    spark, start, waiting = SparkSession.active(), streaming_write.start_stream, [case.own(policy)]

    def changed_first(run_of_flow: FlowRun, *arguments: Any) -> Any:
        """The source changes between the making of the query and its start."""
        if run_of_flow.name in waiting:
            waiting.clear()
            statements = ("ALTER TABLE {t} ADD COLUMN z INT", "INSERT INTO {t} VALUES (2, 'b', 6, 7)")
            run(spark, case, *statements)
        return start(run_of_flow, *arguments)

    monkeypatch.setattr(streaming_write, "start_stream", changed_first)
    report = yield
    assert waiting == []
    assert any("starts again" in event["message"] for event in case.events(flow=policy))
    if policy == "fail":
        assert isinstance(report.error, SourceSchemaChanged)
        assert case.rows(policy) == [FIRST]
    else:
        assert report.state == "COMPLETED", report.error
        assert case.rows(policy) == [(*FIRST, None), (2, "b", 6, 7)]


def named(scenario: Callable[..., Steps], *arguments: Any) -> Scenario:
    """A scenario with its arguments, under the first one's name."""

    def steps(case: Share) -> Steps:
        yield from scenario(case, *arguments)

    steps.__name__, steps.__doc__ = f"{scenario.__name__}, {arguments[0]}", scenario.__doc__
    return steps


def test_each_change(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    """Each change under each policy, also while the stream starts, a table that was overwritten, and one change after the other: what
    the docstrings say.
    """
    scenarios = [
        *(named(each_change_under_each_policy, change) for change in CHANGES),
        *(named(a_change_while_it_runs, policy, monkeypatch) for policy in ("fail", "add")),
        a_table_that_was_overwritten,
        rescued_columns_stay_what_they_were,
    ]
    in_step(tmp_path, tuple(POLICIES), scenarios)
    forget_tables(spark)


@pytest.mark.parametrize(
    "read",
    [
        'spark.readStream.schema("id INT").option("rescuedDataColumn", "r").json(LANDING)',
        'spark.readStream.format("json").schema("id INT").option("rescuedDataColumn", "r").load(LANDING)',
        'spark.read.format("delta").option("rescuedDataColumn", "r").load(LANDING + "/source")',
        'spark.readStream.option("rescuedDataColumn", "r").table("first")',
    ],
)
def test_rescue_that_can_not_be(pipeline, read: str):
    """Where open Spark would pass over the option, it is refused with what to do."""
    case = pipeline(
        '@dp.table\ndef first():\n    return spark.readStream.schema("id INT").json(LANDING)\n\n'
        f"@dp.table\ndef second():\n    return {read}\n"
    )
    with pytest.raises(InvalidPipeline) as caught:
        case.manifest()
    assert "rescuedDataColumn" in caught.value.what
    assert caught.value.remedy
