"""What benchmarks are measured and judged with; their results are as the page shows them, and name no machine."""

from __future__ import annotations

import json
import re
import socket
import sys
import time
from pathlib import Path

import pytest
from tests.benchmarks.frame.bench import RESULTS, Bench
from tests.benchmarks.frame.comparison import at_most, compare, throughput, times_as_fast
from tests.benchmarks.frame.page import DOCS, render
from tests.benchmarks.frame.rows import ROWS
from tests.benchmarks.frame.runs import Run, timed_process

BURN = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"


def runs(*seconds: float) -> list[Run]:
    return [Run(wall, wall * 2) for wall in seconds]


def test_ratio_of_medians():
    """The ratio is that of the medians, the spread that of single rounds, and each target counts its own way round."""
    both = {"ours": runs(1, 2, 9), "peer": runs(4, 4, 4)}
    slower = compare("part", both, "ours", "peer", at_most(0.5))
    assert (slower.ratio, slower.cpu_ratio, slower.spread, slower.rounds, slower.met) == (0.5, 0.5, (0.25, 2.25), 3, True)  # fmt: skip
    assert compare("part", both, "ours", "peer", at_most(0.49)).met is False
    assert compare("part", both, "ours", "peer", throughput(2.0)).met is True
    assert compare("part", both, "ours", "peer", times_as_fast(2.1)).met is False
    assert compare("part", both, "ours", "peer", None).met is None


def test_same_rounds_only():
    """Contenders that were not in the same rounds are not compared."""
    with pytest.raises(AssertionError, match="same rounds"):
        compare("part", {"ours": runs(1), "peer": runs(1, 2)}, "ours", "peer", None)


def test_rounds_are_interleaved():
    """Each round begins with another contender, and a smoke run has one round of each."""
    turns: list[str] = []

    def contender(name):
        return lambda number: turns.append(f"{name}{number}") or Run(1, 1)

    bench = Bench("x", seconds=0)
    bench.interleaved("part", {"a": contender("a"), "b": contender("b")}, least=2, most=5, warm=True)
    assert turns == ["a-1", "b-1", "a0", "b0", "b1", "a1"]
    turns.clear()
    Bench("x", smoke=True).interleaved("part", {"a": contender("a"), "b": contender("b")}, warm=True)
    assert turns == ["a0", "b0"]


def test_sizes(monkeypatch: pytest.MonkeyPatch):
    """A size can be set from outside, and is part of the result; a smoke run has its own."""
    monkeypatch.setenv("BENCH_ROWS", "7")
    bench = Bench("x")
    assert (bench.size("rows", 100, smoke=1), bench.size("files", 3, smoke=1)) == (7, 3)
    assert bench.sizes == {"rows": 7, "files": 3}
    assert Bench("x", smoke=True).size("rows", 100, smoke=1) == 1


@pytest.mark.parametrize(("seconds", "asked", "taken"), [(240, None, 50), (60, None, 10), (60, "30", 30)])
def test_all_rows_in_one_run_are_brief(monkeypatch, seconds, asked, taken):
    """Where all rows share one run, a size is the brief one, unless another was asked for."""
    if asked:
        monkeypatch.setenv("BENCH_FLOWS", asked)
    bench = Bench("x", seconds=seconds)
    assert bench.size("flows", 50, smoke=1, brief=10) == taken
    assert bench.size("files", 3, smoke=1) == 3


def test_orphans_count(tmp_path: Path):
    """The CPU seconds of a process that its parent has not waited for are counted; the wall time ends with the parent."""
    parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {BURN!r}])"
    run = timed_process([sys.executable, "-c", parent])
    assert run.cpu >= 0.3
    started = time.monotonic()
    assert timed_process([sys.executable, "-c", "pass"]).wall <= time.monotonic() - started


def test_a_program_that_fails():
    """A contender that fails is no fast contender: it ends the benchmark, with what it said."""
    with pytest.raises(AssertionError, match="no such luck"):
        timed_process([sys.executable, "-c", "raise SystemExit('no such luck')"])


def test_a_missed_target_fails_and_is_written(tmp_path: Path):
    """The file of results is written, then the benchmark fails; a smoke run writes nothing."""
    for smoke in (True, False):
        bench = Bench("small", smoke=smoke)
        bench.parts["2 flows"] = {"ours": runs(2), "peer": runs(1)}
        bench.compare("2 flows", "ours", "peer", at_most(1.0))
        if smoke:
            bench.finish(tmp_path)
            assert list(tmp_path.iterdir()) == []
    with pytest.raises(AssertionError, match="misses its targets"):
        bench.finish(tmp_path)
    page = render(tmp_path, tmp_path / "docs")[tmp_path / "docs" / "benchmarks.md"]
    assert "| 2 flows | ours | peer | 2.00 | 2.00 to 2.00 | 2.00 | 1 | time at most 1 | **missed** |" in page
    assert "0 of 1 met" in page
    assert page.count("| not measured |") == len(ROWS) - 1


def test_the_page_shows_the_results():
    """docs/benchmarks.md and its plots are what the files of results give: nobody has written a figure by hand."""
    for file, text in render(RESULTS, DOCS).items():
        assert file.read_text() == text, (
            f"{file.name}: run `make bench`, or python -m tests.benchmarks.frame.page"
        )


def test_results_name_no_machine():
    """No name of the machine, and no path of it, is in a file of results."""
    for file in RESULTS.glob("*.json"):
        text = file.read_text()
        assert socket.gethostname() not in text
        assert not re.findall(r'"/[^"]*"|/(?:home|root|tmp|work|usr)/', text), file.name
        assert json.loads(text)["name"] == file.stem
