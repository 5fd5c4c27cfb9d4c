"""Small updates: one new row through 2, 5, 10 and 50 tables, against the same queries written by hand."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from deltalake import DeltaTable
from tests.benchmarks.frame.bench import Bench
from tests.benchmarks.frame.comparison import at_most
from tests.benchmarks.frame.programs import headwater_run, peer_program
from tests.benchmarks.frame.runs import Run
from tests.benchmarks.peers import many_tables, nothing

from headwater.event_log.reader import events
from headwater.graph.pipeline_project import open_project

HERE = Path(__file__).parent / "many_tables"
TARGET = at_most(0.75)
OURS, PEER, LIMIT = "headwater", "by hand", "Spark starts and ends"
# The share of the time that each number of flows gets.
SHARES = {2: 0.2, 5: 0.2, 10: 0.2, 50: 0.4}


def test_small(bench: Bench, tmp_path: Path) -> None:
    """An update with one new row takes at most 0.75 of the time of the job written by hand."""
    measure(bench, tmp_path, SHARES)
    bench.finish()


def measure(bench: Bench, root: Path, shares: Mapping[int, float] = SHARES) -> None:
    """A first update of both, then one row at a time."""
    first_rows = bench.size("rows", 2000, smoke=20)
    most_flows = bench.size("most_flows", 50, smoke=2, brief=10)
    for flows, share in shares.items():
        if flows > most_flows:
            continue
        tables = _Tables(bench, root / str(flows), flows)
        tables.land(first_rows)
        bench.interleaved(f"{flows} flows, first", tables.contenders, least=1, most=1)
        tables.check()

        # The first of a round lands the row that both take in.
        def one_row(contender, tables=tables):
            def run(number: int) -> Run:
                tables.land_for_round(number)
                return contender(number)

            return run

        part = f"{flows} flows, one row"
        contenders = {name: one_row(contender) for name, contender in tables.contenders.items()}
        if flows == min(shares) and not bench.smoke:
            contenders[LIMIT] = lambda _: peer_program(bench, "nothing.py", nothing.main, [])
        bench.interleaved(part, contenders, share=share, least=1 if flows > 20 else 3)
        tables.check()
        bench.compare(f"{flows} flows, first", OURS, PEER)
        bench.compare(part, OURS, PEER, TARGET)
        if LIMIT in contenders:
            bench.compare(part, OURS, LIMIT)


class _Tables:
    """A folder of landed files, and the tables that both make of them."""

    def __init__(self, bench: Bench, root: Path, flows: int) -> None:
        self.bench, self.root, self.flows = bench, root, flows
        self.landing = root / "landing"
        self.landing.mkdir(parents=True)
        self.landed = self.rounds = 0
        self.contenders = {OURS: self.ours, PEER: self.by_hand}

    def land(self, rows: int) -> None:
        lines = [
            {"id": self.landed + n, "customer": f"c{n % 7}", "amount": n % 200 + 0.5} for n in range(rows)
        ]
        (self.landing / f"{self.landed:06}.json").write_text("\n".join(map(json.dumps, lines)))
        self.landed += rows

    def land_for_round(self, number: int) -> None:
        if number >= self.rounds:
            self.land(1)
            self.rounds = number + 1

    def ours(self, _: int) -> Run:
        began = time.time()
        run = headwater_run(
            self.bench,
            [HERE, "--storage", self.root / "storage", "--warehouse", self.root / "warehouse", "--param",
             f"landing={self.landing}", "--param", f"flows={self.flows}"],
        )  # fmt: skip
        self.bench.note_phases(f"{self.flows} flows", phases(self.state_folder(), began, began + run.wall))
        return run

    def state_folder(self) -> Path:
        return open_project(
            HERE, storage=self.root / "storage", warehouse=self.root / "warehouse"
        ).state_folder

    def by_hand(self, _: int) -> Run:
        arguments = [self.landing, self.root / "theirs", str(self.flows)]
        return peer_program(self.bench, "many_tables.py", many_tables.main, arguments)

    def check(self) -> None:
        """Each table of both has each row once."""
        for number in range(1, self.flows + 1):
            for tables in (self.root / "warehouse" / "bench", self.root / "theirs" / "tables"):
                ids = (
                    DeltaTable(str(tables / f"t{number}")).to_pyarrow_table(columns=["id"])["id"].to_pylist()
                )
                assert sorted(ids) == list(range(self.landed)), f"{tables.name}/t{number}"


def phases(state_folder: Path, began: float, ended: float) -> dict[str, float]:
    """Where the seconds of the newest update went, by the records of its event log."""
    records = events(state_folder)
    records = [
        record for record in records if record["origin"]["update_id"] == records[-1]["origin"]["update_id"]
    ]

    def moments(kind: str, *states: str) -> list[float]:
        return [
            _seconds(record["timestamp"])
            for record in records
            if record["event_type"] == kind
            and record["details"][kind].get("state" if kind == "update_progress" else "status") in states
        ]

    created = _seconds(records[0]["timestamp"])
    starts, batches = moments("flow_progress", "STARTING"), moments("flow_progress", "RUNNING")
    last = max(moments("flow_progress", "COMPLETED"))
    first_batch = min(batches)
    return {
        "Python, JVM, session, resolution": created - began,
        "plan": min(starts) - created,
        "first flow to its first batch": first_batch - min(starts),
        "other flows": last - first_batch,
        "end": ended - last,
    }


def _seconds(moment: object) -> float:
    return (
        moment.timestamp()
        if isinstance(moment, datetime)
        else datetime.fromisoformat(str(moment)).timestamp()
    )
