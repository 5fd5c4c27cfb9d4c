"""What rules cost: three on millions of rows against none, and a quarantine against none and against two streams."""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.benchmarks.frame.bench import Bench, Contender
from tests.benchmarks.frame.comparison import at_most, throughput
from tests.benchmarks.frame.programs import session
from tests.benchmarks.frame.runs import Run, stopwatch
from tests.benchmarks.frame.topics import fill_topic
from tests.benchmarks.peers.append_stream import append
from tests.benchmarks.peers.checked_stream import good_rows, split, two_streams
from tests.pipeline_case import PipelineCase, read_rows

from headwater_demo.kafka_broker import KafkaBroker

NONE, RULES_ONLY, QUARANTINE = "no rules", "three rules that drop", "quarantine"
FILTER, SPLIT, DQX = "filter by hand", "two streams by hand", "DQX"
SCHEMA = "id BIGINT, amount DOUBLE, age INT, country STRING"
RULES = {"valid_id": "id IS NOT NULL", "positive": "amount > 0", "adult": "age >= 18"}
SOURCE = """
@dp.table
{rule}
def checked():
    return {rows}
"""


def test_quality(bench: Bench, tmp_path: Path) -> None:
    """Rules that drop keep 0.9 of the throughput; a quarantine takes at most 1.5 of the time without rules."""
    measure(bench, tmp_path, session(whole=True))
    bench.finish()


def measure(
    bench: Bench, root: Path, spark: SparkSession, formats: tuple[str, ...] = ("json", "delta", "kafka")
) -> None:
    """One row in a hundred breaks a rule; text is dearer to read than columns."""
    count = bench.size("rows", 1_000_000, smoke=200, brief=500_000)
    rows = spark.range(count).select(
        "id",
        F.when(F.col("id") % 100 == 0, -1.0).otherwise(F.col("id") / 7).alias("amount"),
        (F.col("id") % 60 + 18).cast("int").alias("age"),
        F.concat(F.lit("country-"), F.col("id") % 50).alias("country"),
    )
    with KafkaBroker(root / "kafka") if "kafka" in formats else nullcontext() as broker:
        for name in formats:
            work = _Rules(root / name, spark, _reading(name, rows, root, broker), count)
            bench.interleaved(name, work.contenders(), share=1 / len(formats), least=2, warm=True)
            bench.compare(name, RULES_ONLY, NONE, throughput(0.9))
            bench.compare(name, QUARANTINE, NONE, at_most(1.5))
            bench.compare(name, RULES_ONLY, FILTER)
            bench.compare(name, QUARANTINE, SPLIT)
            if DQX in bench.parts[name]:
                bench.compare(name, QUARANTINE, DQX)


def _reading(name: str, rows: DataFrame, root: Path, broker: KafkaBroker | None) -> str:
    """Write the rows in a format; the text of an expression that reads them as a stream."""
    if broker is None or name != "kafka":
        folder = root / f"source-{name}"
        rows.repartition(8).write.format(name).save(str(folder))
        schema = f'.schema("{SCHEMA}")' if name == "json" else ""
        return f'spark.readStream.format("{name}"){schema}.load("{folder}")'
    fill_topic(broker, "rows", (json.dumps(row.asDict()) for row in rows.toLocalIterator()))
    return (
        f'spark.readStream.format("kafka").option("kafka.bootstrap.servers", "{broker.bootstrap_servers}")'
        '.option("subscribe", "rows").option("startingOffsets", "earliest").load()'
        f""".selectExpr("from_json(cast(value as string), '{SCHEMA}') as v").select("v.*")"""
    )


class _Rules:
    """The contenders over one source."""

    def __init__(self, root: Path, spark: SparkSession, reading: str, count: int) -> None:
        self.root, self.spark, self.reading = root, spark, reading
        self.count, self.bad = count, len(range(0, count, 100))

    def contenders(self) -> dict[str, Contender]:
        """By name; DQX where it is installed: its licence keeps it out of what we install."""
        found = {
            NONE: self.ours("", None),
            RULES_ONLY: self.ours(f"@dp.expect_all_or_drop({RULES!r})", 0),
            QUARANTINE: self.ours(f"@dp.expect_all_or_quarantine({RULES!r})", self.bad),
            FILTER: self.by_hand("filter", lambda rows, root: append(rows.where(good_rows(RULES)), root), dlq=False),
            SPLIT: self.by_hand("split", lambda rows, root: two_streams(*split(rows, RULES), root), dlq=True),
        }  # fmt: skip
        if importlib.util.find_spec("databricks") and importlib.util.find_spec("databricks.labs.dqx"):
            engine, rules = self._dqx()
            found[DQX] = self.by_hand(
                "dqx", lambda rows, root: two_streams(*engine.apply_checks_and_split(rows, rules), root), dlq=True
            )  # fmt: skip
        return found

    def ours(self, rule: str, quarantined: int | None) -> Contender:
        """An update with this rule; ``quarantined``: rows expected beside the table, None without rules."""

        def run(number: int) -> Run:
            source = SOURCE.format(rule=rule, rows=self.reading)
            case = PipelineCase(self.root / f"{rule[:24].strip('@(').replace('.', '-')}{number}", source)
            with stopwatch() as watch:
                report = case.update()
            assert report.state == "COMPLETED", report.error
            good = self.count - (0 if quarantined is None else self.bad)
            assert _count(case.table("checked")) == good
            assert not quarantined or _count(case.table("checked_quarantine")) == quarantined
            return watch.run

        return run

    def by_hand(self, name: str, write: Callable[[DataFrame, Path], None], *, dlq: bool) -> Contender:
        """A hand-written way to write the rows."""

        def run(number: int) -> Run:
            root = self.root / f"{name}{number}"
            with stopwatch() as watch:
                write(eval(self.reading, {"spark": self.spark}), root)
            assert _count(root / "table") == self.count - self.bad
            assert not dlq or _count(root / "dlq") == self.bad
            return watch.run

        return run

    def _dqx(self) -> tuple[Any, list[Any]]:
        dqx: Any = importlib.import_module("databricks.labs.dqx.engine")
        checks: Any = importlib.import_module("databricks.labs.dqx.check_funcs")
        rule: Any = importlib.import_module("databricks.labs.dqx.rule").DQRowRule
        # A workspace is wanted, and only its user agent is used: nothing of it is measured.
        workspace = create_autospec(importlib.import_module("databricks.sdk").WorkspaceClient)
        rules = [
            rule(name=name, criticality="error", check_func=checks.sql_expression, check_func_kwargs={"expression": text})
            for name, text in RULES.items()
        ]  # fmt: skip
        return dqx.DQEngine(workspace, self.spark), rules


def _count(table: Path) -> int:
    return int(read_rows(table, "count(*)", "1")[0][0])
