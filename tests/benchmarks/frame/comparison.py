"""Two contenders compared: the ratio of their medians, its spread over the rounds, and whether it is what was aimed at."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tests.benchmarks.frame.runs import Run


@dataclass(frozen=True)
class Target:
    """An aim. ``inverse``: the ratio is the peer's time to ours, as for throughput, and has to be at least the limit."""

    limit: float
    inverse: bool = False
    what: str = "time"

    def ratio(self, ours: float, peer: float) -> float:
        """The ratio of two times as this target counts it."""
        return peer / ours if self.inverse else ours / peer

    def met(self, ratio: float) -> bool:
        """Whether a ratio is as aimed at."""
        return ratio >= self.limit if self.inverse else ratio <= self.limit

    def __str__(self) -> str:
        return f"{self.what} at {'least' if self.inverse else 'most'} {self.limit:g}"


def at_most(limit: float) -> Target:
    """Our time is at most so many times the peer's."""
    return Target(limit)


def throughput(limit: float) -> Target:
    """Our throughput is at least so many times the peer's."""
    return Target(limit, inverse=True, what="throughput")


def times_as_fast(limit: float) -> Target:
    """We are at least so many times as fast as the peer."""
    return Target(limit, inverse=True, what="times as fast:")


@dataclass(frozen=True)
class Comparison:
    """A ratio of medians. ``spread``: the least and the greatest ratio of one round; ``target``: None where it is told only."""

    part: str
    ours: str
    peer: str
    ratio: float
    cpu_ratio: float
    spread: tuple[float, float]
    rounds: int
    target: str | None
    met: bool | None

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "spread": list(self.spread)}


def compare(
    part: str, runs: Mapping[str, Sequence[Run]], ours: str, peer: str, target: Target | None
) -> Comparison:
    """Compare two contenders that took part in the same rounds."""
    mine, theirs = runs[ours], runs[peer]
    assert len(mine) == len(theirs) > 0, f"{ours} and {peer} were not in the same rounds"
    count = target or Target(1.0)
    rounds = [count.ratio(a.wall, b.wall) for a, b in zip(mine, theirs, strict=True)]
    ratio = count.ratio(median_wall(mine), median_wall(theirs))
    cpu = count.ratio(median_cpu(mine), median_cpu(theirs))
    return Comparison(
        part, ours, peer, round(ratio, 3), round(cpu, 3), (round(min(rounds), 3), round(max(rounds), 3)),
        len(rounds), str(target) if target else None, target.met(ratio) if target else None,
    )  # fmt: skip


def median_wall(runs: Sequence[Run]) -> float:
    """The median of the wall seconds."""
    return statistics.median(run.wall for run in runs)


def median_cpu(runs: Sequence[Run]) -> float:
    """The median of the CPU seconds; never 0, which a copy of a small file would have."""
    return max(statistics.median(run.cpu for run in runs), 1e-3)
