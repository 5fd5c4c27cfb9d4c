"""What rules count is what a batch has, though Spark evaluates a part of it again because its output was lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F
from tests.pipeline_case import PipelineCase

from headwater.definitions.expectation import Expectation, ViolationAction
from headwater_spark.plans.session_settings import session_settings
from headwater_spark.rules.exact_counts import EXACT_COUNTS
from headwater_spark.rules.expectations import apply_expectations, read_quality

pytestmark = pytest.mark.usefixtures("adaptive")

# Runs with each row. The task that has the marked row waits for the output of the one that has the first row, and loses it: the
# file is called by the number of its task.
LOSING = """
@F.udf("int")
def losing(number):
    import pathlib, time
    from pyspark import TaskContext
    root, mark = pathlib.Path("{blocks}"), pathlib.Path("{mark}")
    task = pathlib.Path("{mark}.task")
    if number == 1:
        task.write_text(str(TaskContext.get().taskAttemptId()))
    if number == 100 and not mark.exists():
        ends = time.time() + 30
        outputs = lambda: [*root.glob(f"*/shuffle_*_{{task.read_text()}}_*.index")] if task.exists() else []
        while not (written := outputs()) and time.time() < ends:
            time.sleep(0.05)
        time.sleep(0.3)  # the index comes before the rows
        mark.write_text(" ".join(path.name for path in written))
        for index in written:
            for part in root.glob(f"*/{{index.stem}}.*"):
                part.unlink()
    return number

def rows():
    lines = spark.readStream.format("json").schema("id INT, amount INT").load(LANDING)
    return lines.withColumn("id", losing("id"))
"""
# Of 8 rows 3 are not positive, one of them is too large, and 2 have no amount.
LINES = [[(1, 5), (2, -1), (3, None), (4, 7)], [(100, -2), (101, 900), (102, 0), (103, None)]]
RULES = '@dp.{kind}("positive", "amount > 0")\n@dp.expect("small", "amount < 100")\n'
COUNTS = {"positive": (5, 3), "small": (7, 1)}
KEPT = [(1,), (3,), (4,), (101,), (103,)]
# Delta puts rows together before it writes them: what rules judge is then not the last part of the job.
TABLE = '@dp.table(table_properties={{"delta.autoOptimize.optimizeWrite": "true"}})\n{rules}def kept():\n    return rows()\n'


@pytest.fixture
def losing(
    pipeline: Callable[..., PipelineCase], spark: SparkSession, tmp_path: Path
) -> Callable[[str], PipelineCase]:
    """Make a pipeline over two files, each a task, of which the one loses the other's output."""
    jvm: Any = SparkContext._jvm
    (blocks,) = jvm.org.apache.spark.SparkEnv.get().blockManager().diskBlockManager().localDirsString()

    def make(source: str) -> PipelineCase:
        case = pipeline(LOSING.format(blocks=blocks, mark=tmp_path / "lost") + source)
        for rows in LINES:
            case.land([{"id": number, "amount": amount} for number, amount in rows])
        return case

    return make


def counted(case: PipelineCase, flow: str) -> tuple[dict[str, Any], dict[str, tuple[int, int]]]:
    """The numbers of a flow's one batch in the event log: of its rows, and of each rule."""
    (record,) = case.events(event_type="flow_progress", flow=flow, level="METRICS")
    details = record["details"]["flow_progress"]
    rules = {
        one["name"]: (one["passed_records"], one["failed_records"])
        for one in details["data_quality"]["expectations"]
    }
    return {**details["metrics"], **details["data_quality"]}, rules


def test_rules_of_a_table(losing: Callable[[str], PipelineCase], tmp_path: Path):
    """The table has each row once, and the event log counts each once; Spark itself read more rows than there are."""
    case = losing(TABLE.format(rules=RULES.format(kind="expect_or_drop")))
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert case.rows("kept", "id") == KEPT
    numbers, rules = counted(case, "kept")
    assert numbers["num_input_rows"] > 8, (tmp_path / "lost").read_text()
    assert (numbers["dropped_records"], rules) == (3, COUNTS)


def test_rows_for_the_quarantine(losing: Callable[[str], PipelineCase], tmp_path: Path):
    """They were collected twice, which the counts tell: each is in the quarantine once."""
    case = losing(TABLE.format(rules=RULES.format(kind="expect_or_quarantine")))
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert (tmp_path / "lost").read_text()
    assert case.rows("kept", "id") == KEPT
    assert case.rows("kept_quarantine", "id") == [(2,), (100,), (102,)]
    numbers, rules = counted(case, "kept")
    assert (numbers["quarantined_records"], rules) == (3, COUNTS)


def test_rules_of_a_view(losing: Callable[[str], PipelineCase], tmp_path: Path):
    """Its rows are grouped, and what its rules count lies before the exchange of the groups."""
    case = losing(
        f"@dp.temporary_view\n{RULES.format(kind='expect_or_drop')}def kept():\n    return rows()\n"
        '@dp.table\ndef groups():\n    return spark.readStream.table("kept").groupBy("amount").agg(F.max("id").alias("last"))\n'
    )
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert (tmp_path / "lost").read_text()
    assert case.rows("groups", "amount, last") == [(5, 1), (7, 4), (900, 101), (None, 103)]
    assert counted(case, "groups")[1] == COUNTS


@pytest.mark.parametrize("more", [0, 40])
@pytest.mark.parametrize("exact", ["true", "false"])
@pytest.mark.parametrize("code", ["true", "false"])
def test_each_way_to_count(spark: SparkSession, exact: str, code: str, more: int):
    """By our own step and by Spark's, in generated code and row by row, few rules and many, with partitions joined in one task."""
    rules = [Expectation("half", "id % 2 = 0", ViolationAction.DROP)]
    rules += [
        Expectation(f"from {number}", f"id >= {number}", ViolationAction.WARN) for number in range(more)
    ]
    settings = {EXACT_COUNTS: exact, "spark.sql.codegen.wholeStage": code}
    with session_settings(spark, settings):
        observation = Observation()
        rows = apply_expectations(spark.range(0, 100, 1, 5).toDF("id"), rules, observation)
        assert rows.coalesce(2).agg(F.sum("id")).collect()[0][0] == sum(range(0, 100, 2))
        plan = rows._jdf.queryExecution().executedPlan().toString()
        assert ("Counting" in plan) == (exact == "true")
    quality = read_quality(observation.get, rules)
    assert (quality.rows, quality.dropped) == (100, 50)
    assert [rule.failed for rule in quality.rules] == [50, *range(more)]
