"""What a benchmark is written with: sizes, interleaved rounds, comparisons, and the file of results.

Decision 0182.

A test takes the fixture ``bench`` (its name is the test file's, less ``test_``) and hands it to a function that also has a smoke form:

    def measure(bench, root):
        rows = bench.size("rows", 1_000_000, smoke=100)
        bench.interleaved("backlog", {"headwater": ours, "by hand": by_hand})   # each takes the round's number, returns a Run
        bench.compare("backlog", "headwater", "by hand", throughput(0.97))
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.benchmarks.frame.comparison import Comparison, Target, compare
from tests.benchmarks.frame.runs import Run
from tests.benchmarks.frame.surroundings import load, surroundings
from tests.seeds import SEED

# With fewer seconds for each row (BENCH_SECONDS), all of them are to end within the hour.
BRIEF = 100.0
RESULTS = Path(__file__).parents[1] / "results"
# Takes the round's number. Several figures of one run, the percentiles of a latency for example, are a Run for each.
Contender = Callable[[int], Run | Mapping[str, Run]]


@dataclass
class Bench:
    """One benchmark while it runs.

    Attributes:
        name: of the row, and of the file of results.
        smoke: small sizes, one round, no target and no file: that it runs and that both sides are right.
        seconds: the time for all its rounds (BENCH_SECONDS); each part gets its share, and at least a few rounds.

    """

    name: str
    smoke: bool = False
    seconds: float = 240.0
    sizes: dict[str, int] = field(default_factory=dict)
    parts: dict[str, dict[str, list[Run]]] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    reported: dict[str, Any] = field(default_factory=dict)
    phases: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    load_before: float = field(default_factory=load)
    began: float = field(default_factory=time.monotonic)

    @property
    def brief(self) -> bool:
        """All rows are measured in one run: what takes minutes and says little more is left to the row's own."""
        return self.seconds < BRIEF

    def size(self, name: str, full: int, *, smoke: int, brief: int | None = None) -> int:
        """A size of the work; BENCH_<NAME> sets another one. What was taken is part of the result.

        Args:
            name: of the size, in the result and in the variable.
            full: where the row has its own run.
            smoke: where it only has to run.
            brief: where all rows share one run; without it as ``full``.

        """
        asked = os.environ.get(f"BENCH_{name.upper()}")
        usual = brief if self.brief and brief is not None else full
        taken = smoke if self.smoke else int(asked or usual)
        self.sizes[name] = taken
        return taken

    def interleaved(
        self,
        part: str,
        contenders: Mapping[str, Contender],
        *,
        share: float = 1.0,
        least: int = 3,
        most: int = 9,
        warm: bool = False,
    ) -> None:
        """Run the contenders in rounds, each round in another order, until the share of the time is used up.

        Args:
            part: what is measured. Where a contender returns several figures, each is a part: ``<part>, <figure>``.
            contenders: each gets the round's number, checks what it has done, and returns what that took.
            share: of the benchmark's seconds.
            least: rounds that are run however long they take.
            most: rounds at which it ends however much time is left.
            warm: a first round, number -1, is run and not counted: for contenders that share a JVM.

        """
        names = list(contenders)
        parts: dict[str, dict[str, list[Run]]] = {}
        if warm and not self.smoke:
            for name in names:
                contenders[name](-1)
        ends = time.monotonic() + share * self.seconds
        number = 0
        while number < (1 if self.smoke else most):
            if number >= least and time.monotonic() > ends:
                break
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                for label, run in _by_part(part, contenders[name](number)).items():
                    parts.setdefault(label, {each: [] for each in names})[name].append(run)
                    print(f"{self.name}, {label}, {name}: {run}", flush=True)
            number += 1
        self.parts |= parts

    def compare(self, part: str, ours: str, peer: str, target: Target | None = None) -> Comparison:
        """Note the ratio of two contenders of a part; without a target it is told only (the physical limit beside it)."""
        found = compare(part, self.parts[part], ours, peer, target)
        self.comparisons.append(found)
        print(found, flush=True)
        return found

    def report(self, name: str, figure: Any) -> None:
        """Note something else that was measured: bytes, slopes, the parts of a time."""
        self.reported[name] = figure
        print(f"{self.name}, {name}: {figure}", flush=True)

    def note_phases(self, label: str, seconds: dict[str, float]) -> None:
        """Note the seconds of each phase of a run, for a picture of where the time goes."""
        self.phases.setdefault(label, []).append({name: round(value, 3) for name, value in seconds.items()})

    def finish(self, folder: Path = RESULTS) -> None:
        """Write the file of results, then fail where a target is missed. A smoke run does neither."""
        if self.smoke or not (self.parts or self.reported):
            return
        folder.mkdir(exist_ok=True)
        (folder / f"{self.name}.json").write_text(json.dumps(self.as_dict(), indent=1) + "\n")
        missed = [
            f"{c.part}: {c.ours} to {c.peer} {c.ratio} ({c.target})"
            for c in self.comparisons
            if c.met is False
        ]
        assert not missed, f"{self.name} misses its targets: {missed}"

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        return {
            "name": self.name,
            "measured": datetime.now(UTC).strftime("%Y-%m-%d"),
            "seconds": round(time.monotonic() - self.began),
            "surroundings": surroundings(),
            "load": {"before": self.load_before, "after": load(), "note": _busy(self.load_before)},
            "seed": SEED,
            "sizes": self.sizes,
            "comparisons": [entry.as_dict() for entry in self.comparisons],
            "reported": self.reported,
            "phases": self.phases,
            "runs": {
                part: {name: [[round(run.wall, 4), round(run.cpu, 2)] for run in runs] for name, runs in contenders.items()}
                for part, contenders in self.parts.items()
            },
        }  # fmt: skip


def _busy(load_before: float) -> str:
    return (
        "the machine was busy when it began, with the row before or other work"
        if load_before > (os.cpu_count() or 1)
        else ""
    )


def _by_part(part: str, taken: Run | Mapping[str, Run]) -> dict[str, Run]:
    if isinstance(taken, Run):
        return {part: taken}
    return {f"{part}, {figure}": run for figure, run in taken.items()}
