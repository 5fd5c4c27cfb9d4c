"""How an update's time grows with the batches that a stream has behind it, with tables and with rows; beside the job by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import QueryBuilder, write_deltalake
from pyspark.sql import SparkSession
from tests.benchmarks.frame.aged_stream import last_batch, renumber_checkpoint, repeat_last_commit
from tests.benchmarks.frame.bench import Bench
from tests.benchmarks.frame.comparison import median_cpu, median_wall
from tests.benchmarks.frame.programs import session
from tests.benchmarks.frame.runs import Run, stopwatch
from tests.benchmarks.frame.slopes import slope
from tests.benchmarks.peers import many_tables
from tests.benchmarks.peers.append_stream import append, delta_rows
from tests.dags.observed_pipeline import tell_batch
from tests.dags.pipeline_folder import UpdateLog
from tests.pipeline_case import PipelineCase, read_rows

from headwater.event_log.details import UpdateState
from headwater.storage.delta_tables import delta_table

OURS, PEER = "headwater", "by hand"
MANY_TABLES = Path(__file__).parent / "many_tables" / "transformations" / "tables.py"
SOURCE = """
@dp.table
def copied():
    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 1000).load("{source}")
    return rows.where("amount > 0").selectExpr("id", "amount", "upper(country) as country")
"""
# Multiples of ten: a table's checkpoint is then one commit back, and none is due in the rounds that are counted.
BATCHES = (10, 100, 1000, 5000, 10_000)
TABLES = (5, 20, 50, 200)
ROWS = (100_000, 1_000_000, 10_000_000, 100_000_000)
# By default a benchmark of ten minutes, five among all rows: the largest steps take minutes each.
LARGEST = {"batches": (10_000, 5_000), "tables": (50, 20), "rows": (10_000_000, 1_000_000)}


@pytest.mark.timeout(7200)
def test_growth(bench: Bench, tmp_path: Path) -> None:
    """The slopes are reported. BENCH_BATCHES, BENCH_TABLES=200 and BENCH_ROWS=100000000 say how far it goes."""
    largest = {name: bench.size(name, full, smoke=0, brief=brief) for name, (full, brief) in LARGEST.items()}
    steps = {"batches": BATCHES, "tables": TABLES, "rows": ROWS}
    for name, sizes in steps.items():
        steps[name] = tuple(size for size in sizes if size <= largest[name])
    measure(bench, tmp_path, session(whole=True), **steps)
    bench.finish()


def measure(
    bench: Bench,
    root: Path,
    spark: SparkSession,
    batches: tuple[int, ...],
    tables: tuple[int, ...],
    rows: tuple[int, ...],
) -> None:
    """One new row after so many batches; one new row through so many tables; and so many new rows at once."""
    for count in batches:
        aged = _Stream(root / f"batches{count}", spark)
        aged.begin()
        aged.age(count)
        part = f"{count:,} batches"
        bench.interleaved(part, aged.contenders(), share=0.3 / len(batches), least=3, most=6, warm=True)
        bench.compare(part, OURS, PEER)
    for count in tables:
        chain = _Tables(root / f"tables{count}", spark, count)
        part = f"{count} tables"
        bench.interleaved(part, chain.contenders(), share=0.4 / len(tables), least=2, most=5, warm=True)
        bench.compare(part, OURS, PEER)
    for count in rows:
        large = _Stream(root / f"rows{count}", spark)
        large.begin()
        part = f"{count:,} rows"
        bench.interleaved(part, large.contenders(rows=count), share=0.3 / len(rows), least=2, most=5)
        bench.compare(part, OURS, PEER)
    for steps, what in ((batches, "batches"), (tables, "tables"), (rows, "rows")):
        _report_growth(bench, steps, what)


def _report_growth(bench: Bench, steps: tuple[int, ...], what: str) -> None:
    """What the largest step takes beside the smallest; and what one more of them costs beside what it costs by hand."""
    if len(steps) < 2:
        return
    slopes = []
    for name in (OURS, PEER):
        runs = [bench.parts[f"{step:,} {what}"][name] for step in steps]
        times = {"time": [*map(median_wall, runs)], "CPU time": [*map(median_cpu, runs)]}
        label = f"{name}, {steps[-1]:,} {what} beside {steps[0]:,}"
        bench.report(label, {each: f"{taken[-1] / taken[0]:.2f}" for each, taken in times.items()})
        slopes.append({each: slope(steps, taken) for each, taken in times.items()})
    # Where batches cost nothing, the ratio of two slopes would be one of noise.
    if what != "batches":
        bench.report(
            f"what each more of the {what} costs, by hand being 1",
            {each: f"{slopes[0][each] / slopes[1][each]:.2f}" for each in slopes[0]},
        )


class _Stream:
    """A Delta table that grows, and what both append of it."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self.spark, self.source = root, spark, root / "source"
        self.case = PipelineCase(root, SOURCE.format(source=self.source))
        self.theirs = root / "theirs"
        self.tables = {OURS: self.case.table("copied"), PEER: self.theirs / "table"}
        self.next_id = 0

    def begin(self) -> None:
        """A first batch of one row, which is not measured: it makes the table."""
        self.more(1)
        self.run_ours()
        self.run_theirs()

    def age(self, batches: int) -> None:
        """Make it look as after so many batches, and a commit for each of both tables."""
        checkpoints = {OURS: self.case.checkpoint("copied").live_folder(), PEER: self.theirs / "checkpoint"}
        before = last_batch(self.tables[OURS])
        for table in (self.source, *self.tables.values()):
            repeat_last_commit(table, batches + 1)
        for name, table in self.tables.items():
            renumber_checkpoint(Path(str(checkpoints[name])), last_batch(table), batches + 1)
        log = UpdateLog(self.case.project().state_folder, "aged", "aged-1")
        log.update(UpdateState.RUNNING)
        for number in range(before + 1, last_batch(self.tables[OURS]) + 1):
            tell_batch(log, "copied", number, failed=0)
        log.update(UpdateState.COMPLETED)
        log.close()

    def more(self, count: int) -> None:
        """Append to the source: a row by delta-rs, which takes milliseconds, many by Spark."""
        if count == 1:
            schema = pa.schema([("id", pa.int64()), ("amount", pa.float64()), ("country", pa.string())])
            row = {"id": [self.next_id], "amount": [1.5], "country": ["c"]}
            write_deltalake(str(self.source), pa.table(row, schema=schema), mode="append")
        else:
            rows = self.spark.range(self.next_id, self.next_id + count)
            rows.selectExpr("id", "cast(1.5 as double) amount", "concat('country-', id % 50) country").write.format(
                "delta"
            ).mode("append").save(str(self.source))  # fmt: skip
        self.next_id += count

    def run_ours(self) -> None:
        report = self.case.update()
        assert report.state == "COMPLETED", report.error

    def run_theirs(self) -> None:
        append(delta_rows(self.spark, str(self.source), 1000), self.theirs)

    def contenders(self, rows: int = 1) -> dict[str, Callable[[int], Run]]:
        """Both; the first of a round appends the rows that both take in, which are the only ones with their numbers."""
        first_of: dict[int, int] = {}

        def contender(name: str, work: Callable[[], None]) -> Callable[[int], Run]:
            def run(number: int) -> Run:
                if number not in first_of:
                    first_of[number] = self.next_id
                    self.more(rows)
                with stopwatch() as watch:
                    work()
                assert _rows_from(self.tables[name], first_of[number]) == rows
                return watch.run

            return run

        return {OURS: contender(OURS, self.run_ours), PEER: contender(PEER, self.run_theirs)}


class _Tables:
    """So many tables, each of which reads another; and the same by hand."""

    def __init__(self, root: Path, spark: SparkSession, count: int) -> None:
        self.root, self.spark, self.count = root, spark, count
        self.case = PipelineCase(root, MANY_TABLES.read_text(), spec=f"  flows: '{count}'\n")
        self.landed = 0

    def contenders(self) -> dict[str, Callable[[int], Run]]:
        """Both; the first of a round lands the row."""
        rounds: set[int] = set()
        last = f"t{self.count}"

        def contender(work: Callable[[], Any], table: Path) -> Callable[[int], Run]:
            def run(number: int) -> Run:
                if number not in rounds:
                    rounds.add(number)
                    self.case.land([{"id": self.landed, "customer": "c", "amount": 1.5}])
                    self.landed += 1
                with stopwatch() as watch:
                    work()
                assert read_rows(table, "id", "1") == [(n,) for n in range(self.landed)]
                return watch.run

            return run

        theirs = self.root / "theirs"
        return {
            OURS: contender(self._update, self.case.table(last)),
            PEER: contender(
                lambda: many_tables.main(self.spark, str(self.case.landing), str(theirs), self.count),
                theirs / "tables" / last,
            ),
        }

    def _update(self) -> None:
        report = self.case.update()
        assert report.state == "COMPLETED", report.error


def _rows_from(table: Path, first: int) -> int:
    """The rows of a table whose number is at least this."""
    query = f"select count(*) as n from t where id >= {first}"
    answer = QueryBuilder().register("t", delta_table(table)).execute(query).read_all()
    return int(pa.table(answer)["n"][0].as_py())
