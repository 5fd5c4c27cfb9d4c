"""How an update's time grows with the commits of its tables, and with rows: slopes, beside those of the job by hand."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tests.benchmarks.frame.bench import Bench
from tests.benchmarks.frame.comparison import median_wall
from tests.benchmarks.frame.programs import session
from tests.benchmarks.frame.runs import Run, stopwatch
from tests.benchmarks.peers.append_stream import append, delta_rows
from tests.pipeline_case import PipelineCase, read_rows

OURS, PEER = "headwater", "by hand"
SOURCE = """
@dp.table
def copied():
    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 1000).load("{source}")
    return rows.where("amount > 0").selectExpr("id", "amount", "upper(country) as country")
"""


def test_growth(bench: Bench, tmp_path: Path) -> None:
    """The slopes are reported."""
    measure(
        bench, tmp_path, session(whole=True), commits=(10, 100, 1000), rows=(100_000, 1_000_000, 10_000_000)
    )
    bench.finish()


def measure(
    bench: Bench, root: Path, spark: SparkSession, commits: tuple[int, ...], rows: tuple[int, ...]
) -> None:
    """One new row after so many commits of source and target; and so many rows at once."""
    for count in commits:
        grown = _Stream(root / f"commits{count}", spark)
        for _ in range(count):
            grown.more(1, small=True)
        grown.take_in()
        bench.interleaved(f"{count} commits", grown.contenders(), share=0.15, warm=True)
    for count in rows:
        large = _Stream(root / f"rows{count}", spark)
        large.more(1)
        large.take_in()
        contenders = large.contenders(rows=count)
        bench.interleaved(f"{count:,} rows", contenders, share=0.15, least=2, most=5)
    for name in (OURS, PEER):
        seconds = {part: median_wall(runs[name]) for part, runs in bench.parts.items()}
        least, most = f"{commits[0]} commits", f"{commits[-1]} commits"
        bench.report(
            f"{name}, time at {most}, that at {least} being 1", round(seconds[most] / seconds[least], 2)
        )
        least, most = f"{rows[0]:,} rows", f"{rows[-1]:,} rows"
        bench.report(
            f"{name}, time at {most}, that at {least} being 1", round(seconds[most] / seconds[least], 2)
        )
    for part in bench.parts:
        bench.compare(part, OURS, PEER)


class _Stream:
    """A Delta table that grows, and what both append of it."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self.spark, self.source = root, spark, root / "source"
        self.case = PipelineCase(root, SOURCE.format(source=self.source))
        self.rows = 0

    def more(self, count: int, *, small: bool = False) -> None:
        """Append to the source; ``small``: by delta-rs, which takes milliseconds."""
        if small and self.rows:
            import pyarrow as pa
            from deltalake import write_deltalake

            row = {"id": [self.rows], "amount": [1.5], "country": ["c"]}
            schema = pa.schema([("id", pa.int64()), ("amount", pa.float64()), ("country", pa.string())])
            write_deltalake(str(self.source), pa.table(row, schema=schema), mode="append")
        else:
            rows = self.spark.range(self.rows, self.rows + count)
            rows.selectExpr(
                "id", "cast(1.5 as double) amount", "concat('country-', id % 50) country"
            ).write.format("delta").mode("append").save(str(self.source))
        self.rows += count

    def take_in(self) -> None:
        """Both take in what is there, and are not measured."""
        assert self.case.update().state == "COMPLETED"
        append(delta_rows(self.spark, str(self.source), 1000), self.root / "theirs")

    def contenders(self, rows: int = 1):
        """Both; the first of a round appends the rows that both take in."""

        grown: set[int] = set()

        def grow(number: int) -> None:
            if number not in grown:
                self.more(rows)
                grown.add(number)

        def ours(number: int) -> Run:
            grow(number)
            with stopwatch() as watch:
                report = self.case.update()
            assert report.state == "COMPLETED", report.error
            assert _count(self.case.table("copied")) == self.rows
            return watch.run

        def by_hand(number: int) -> Run:
            grow(number)
            with stopwatch() as watch:
                append(delta_rows(self.spark, str(self.source), 1000), self.root / "theirs")
            assert _count(self.root / "theirs" / "table") == self.rows
            return watch.run

        return {OURS: ours, PEER: by_hand}


def _count(table: Path) -> int:
    return int(read_rows(table, "count(*)", "1")[0][0])
