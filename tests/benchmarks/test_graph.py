"""Ten tables from bronze to gold: one update, against one submit per table, and against Spark Declarative Pipelines."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from deltalake import DeltaTable
from tests.benchmarks.frame.bench import Bench, Contender
from tests.benchmarks.frame.comparison import times_as_fast
from tests.benchmarks.frame.programs import FLOORS, PEERS, headwater_run, session
from tests.benchmarks.frame.runs import Run, timed, timed_process
from tests.benchmarks.frame.spark_pipelines import SparkPipelines, documented_settings, equal_settings
from tests.benchmarks.peers import one_table

from headwater.files.json_lines import lines_of

HERE = Path(__file__).parent / "medallion"
OURS, SUBMITS, DOCUMENTED, SDP, SDP_DOCUMENTED = (
    "headwater",
    "one submit per table",
    "the same, as documented",
    "spark-pipelines run",
    "spark-pipelines, as documented",
)
# Minutes a round, which is left out where all rows are measured in one run.
_LONG = (DOCUMENTED, SDP_DOCUMENTED)


def test_graph(bench: Bench, tmp_path: Path) -> None:
    """First, incremental and with nothing new: 5 times as fast as submits, 1.5 times as fast as SDP, with equal settings."""
    measure(bench, tmp_path)
    bench.finish()


def measure(bench: Bench, root: Path) -> None:
    """Each contender has its tables; all take in the same files."""
    rows = bench.size("rows", 2000, smoke=20)
    work = _Medallion(bench, root)
    work.land(rows)
    contenders = {OURS: work.ours, SUBMITS: lambda _: work.submits("equal")}
    declarative = work.declarative()
    if not bench.smoke:
        contenders |= {DOCUMENTED: lambda _: work.submits("documented"), **declarative}
    bench.interleaved("first", contenders, least=1, most=1)
    work.check(contenders)
    if not bench.smoke:
        # As documented, the submits of one round take five minutes.
        again = {name: c for name, c in contenders.items() if not (bench.brief and name in _LONG)}
        bench.interleaved(
            "incremental",
            {name: work.with_news(c) for name, c in again.items()},
            share=0.5,
            least=1,
            most=3,
        )
        work.check(again)
        # The others would do what they did for the news: minutes for a ratio that says nothing more.
        nearest = {name: contender for name, contender in contenders.items() if name in (OURS, SUBMITS)}
        bench.interleaved("nothing new", nearest, share=0.5, least=1, most=3)
        work.check(again)
    for part in bench.parts:
        bench.compare(part, OURS, SUBMITS, times_as_fast(5))
        if DOCUMENTED in bench.parts[part]:
            bench.compare(part, OURS, DOCUMENTED, times_as_fast(8))
        if SDP in bench.parts[part]:
            bench.compare(part, OURS, SDP, times_as_fast(1.5))
        if SDP_DOCUMENTED in bench.parts[part]:
            bench.compare(part, OURS, SDP_DOCUMENTED, times_as_fast(3))


class _Medallion:
    """Files landed, and the tables that each contender makes of them."""

    def __init__(self, bench: Bench, root: Path) -> None:
        self.bench, self.root, self.landing = bench, root, root / "landing"
        self.landed = 0
        self.rounds = 0
        self.tables = {
            OURS: root / "warehouse/bench", SUBMITS: root / "equal/tables", DOCUMENTED: root / "documented/tables",
            SDP: root / "sdp/warehouse", SDP_DOCUMENTED: root / "sdp_documented/warehouse",
        }  # fmt: skip

    def land(self, rows: int) -> None:
        """A file for each of the three sources."""
        numbers = range(self.landed, self.landed + rows)
        lines = {
            "orders": (
                {"id": n, "customer": n % 50, "product": n % 9, "amount": n * 37 % 300 - 20.5}
                for n in numbers
            ),
            "customers": ({"id": n, "name": f"n{n}", "country": f"c{n % 5}"} for n in numbers),
            "clicks": (
                {"id": n, "customer": n % 50, "page": f"p{n % 11}" if n % 13 else None} for n in numbers
            ),
        }
        for name, found in lines.items():
            (self.landing / name).mkdir(parents=True, exist_ok=True)
            (self.landing / name / f"{self.landed:06}.json").write_text("\n".join(map(json.dumps, found)))
        self.landed += rows

    def with_news(self, contender: Contender) -> Contender:
        """The contender, with ten new rows a source in each round."""

        def run(number: int) -> Run:
            if number >= self.rounds:
                self.land(10)
                self.rounds = number + 1
            return contender(number)

        return run

    def ours(self, _: int) -> Run:
        """One update."""
        roots = ["--storage", self.root / "storage", "--warehouse", self.root / "warehouse"]
        return headwater_run(self.bench, [HERE, *roots, "--param", f"landing={self.landing}"])

    def submits(self, settings: str) -> Run:
        """A program for each table, one after another."""
        runs = []
        for table in one_table.ORDER:
            words = [str(self.landing), str(self.root / settings), table]
            if self.bench.smoke:
                runs.append(timed(lambda words=words: one_table.main(session(), *words)))
            else:
                runs.append(timed_process([sys.executable, PEERS / "one_table.py", settings, *words], FLOORS))
        return Run(sum(run.wall for run in runs), sum(run.cpu for run in runs))

    def declarative(self) -> dict[str, Contender]:
        """spark-pipelines with equal settings and as documented, where a dry run goes through."""
        works: dict[str, Contender] = {}
        for name, settings in ((SDP, equal_settings()), (SDP_DOCUMENTED, documented_settings())):
            peer = SparkPipelines(
                self.tables[name].parent,
                PEERS / "sdp/transformations",
                settings,
                {"LANDING": str(self.landing)},
            )
            peer.write()
            if self.bench.smoke:
                peer.run("dry-run")
                break
            try:
                peer.run("dry-run")
            except (AssertionError, OSError) as error:
                self.bench.report(f"{name} was left out, a dry run fails", _cause(str(error)))
                continue
            works[name] = lambda _, peer=peer: peer.run()
        return works

    def check(self, contenders: dict[str, Contender]) -> None:
        """The same rows in all ten tables of all."""
        for table in one_table.ORDER:
            found = {name: _rows(self.tables[name] / table) for name in contenders}
            assert found[OURS]
            assert all(rows == found[OURS] for rows in found.values()), table


def _cause(said: str) -> str:
    """The line of an output that names an error, without a path in it."""
    lines = [line for line in lines_of(said) if "Exception" in line or "Error" in line]
    return re.sub(r"(file:)?/[^\s'\"`]+", "PATH", (lines or lines_of(said) or ["no reason given"])[0])[:300]


def _rows(table: Path) -> list[tuple[object, ...]]:
    read = DeltaTable(str(table)).to_pyarrow_table()
    return sorted((tuple(row[name] for name in sorted(row)) for row in read.to_pylist()), key=repr)
