"""From kill -9 of a driver to the first new row that its successor commits."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from deltalake import DeltaTable
from tests.benchmarks.frame.bench import Bench
from tests.benchmarks.frame.comparison import at_most
from tests.benchmarks.frame.driver import Driver
from tests.benchmarks.frame.programs import PEERS, headwater_run, peer_program
from tests.benchmarks.frame.runs import Run
from tests.benchmarks.peers import one_stream

HERE = Path(__file__).parent / "recovered"
OURS, PEER = "headwater", "by hand"
ROWS_OF_A_FILE = 10


def test_recover(bench: Bench, tmp_path: Path) -> None:
    """The successor of a killed driver commits its first row in at most 1.1 of the hand-written job's time."""
    # More files than all rounds take in, so that every driver is killed in the middle of its work.
    landing = _landed(tmp_path, bench.size("files", 3000, smoke=0))
    both = {name: _Recovered(command, table) for name, (command, table) in _both(tmp_path, landing).items()}
    contenders = {name: each.kill_and_recover for name, each in both.items()}
    bench.interleaved("kill -9", contenders, least=3, most=7)
    for each in both.values():
        each.check()
    bench.compare("kill -9", OURS, PEER, at_most(1.1))
    bench.finish()


def smoke(bench: Bench, root: Path) -> None:
    """Both take in all files, each row once; nobody is killed."""
    landing = _landed(root, bench.size("files", 0, smoke=2))
    headwater_run(bench, _ours(root, landing))
    peer_program(bench, "one_stream.py", one_stream.main, [landing, root / "theirs"])
    for _, table in _both(root, landing).values():
        assert _Recovered([], table).check() == 2 * ROWS_OF_A_FILE


def _ours(root: Path, landing: Path) -> list[str | Path]:
    return [HERE, "--storage", root / "storage", "--warehouse", root / "warehouse", "--param", f"landing={landing}"]  # fmt: skip


def _both(root: Path, landing: Path) -> dict[str, tuple[Sequence[str | Path], Path]]:
    """The command of each, and the table that it fills."""
    ours = [sys.executable, "-m", "headwater", "run", *_ours(root, landing)]
    theirs = [sys.executable, PEERS / "one_stream.py", landing, root / "theirs"]
    return {OURS: (ours, root / "warehouse/bench/copied"), PEER: (theirs, root / "theirs/table")}


def _landed(root: Path, files: int) -> Path:
    folder = root / "landing"
    folder.mkdir()
    for number in range(files):
        rows = range(number * ROWS_OF_A_FILE, (number + 1) * ROWS_OF_A_FILE)
        (folder / f"{number:05}.json").write_text(
            "\n".join(json.dumps({"id": n, "customer": "c"}) for n in rows)
        )
    return folder


class _Recovered:
    """A driver that is killed, and its successor; and the table that they fill."""

    def __init__(self, command: Sequence[str | Path], table: Path) -> None:
        self.driver, self.table = Driver(command), table

    def kill_and_recover(self, number: int) -> Run:
        """Kill a driver in the middle of its work, start the next, and wait for its first commit; no other runs meanwhile."""
        try:
            self._start_and_wait_for(self._version() + 3)
            # Later in each round, so that a kill falls between any two steps of a batch.
            time.sleep(0.1 * (number % 5))
            self.driver.kill()
            before = self._version()
            started = time.monotonic()
            self._start_and_wait_for(before + 1)
            return Run(time.monotonic() - started, self.driver.cpu_seconds())
        finally:
            self.driver.kill()

    def _start_and_wait_for(self, version: int) -> None:
        self.driver.start()
        self.driver.wait_until(lambda: self._version() >= version, f"no commit {version}")

    def check(self) -> int:
        """The rows of the table: each of the files that were taken in once, and no half of a file."""
        ids = DeltaTable(str(self.table)).to_pyarrow_table(columns=["id"])["id"].to_pylist()
        assert len(set(ids)) == len(ids)
        files = {number // ROWS_OF_A_FILE for number in ids}
        assert len(ids) == len(files) * ROWS_OF_A_FILE
        return len(ids)

    def _version(self) -> int:
        # A listing, so that looking costs the driver nothing.
        folder = self.table / "_delta_log"
        return max((int(file.stem) for file in folder.glob("*.json") if file.stem.isdigit()), default=-1)
