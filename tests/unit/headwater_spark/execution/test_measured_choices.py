"""How often the cost chooses the faster way, over pairs of refreshes that were measured (decision 0199).

The pairs are the parts "choice of ..." of ``make bench ONLY=views``: one million rows, a thousandth of them new or changed, on
two cores with other work beside them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.incremental.costs import (
    Effort,
    FullRun,
    Limits,
    Reach,
    SourceSize,
    corrected,
    predicted_full,
    predicted_incremental,
    rejected,
)
from headwater.incremental.techniques import Planned, Technique
from headwater_spark.execution.refresh_decision import Decision

PAIRS = json.loads((Path(__file__).parent / "measured_choices.json").read_text())
# Two times that differ by less are no choice; of the others so many have to be right, and all choices together cost so little.
DIFFERENT, RIGHT, REGRET = 1.2, 0.9, 0.15
DIRECT = (Technique.APPEND_ONLY, Technique.GROUP_AGGREGATE)
SOURCE_BYTES = 9_100_000


@dataclass
class View:
    """A view of which the state remembers what it does after each refresh."""

    pair: Mapping[str, Any]
    full_runs: list[FullRun]
    runs: list[tuple[float, float]]
    reach: Reach | None = None

    def refreshed(self) -> bool:
        """Decide, take the time that was measured, and note what a refresh notes; whether it was incremental."""
        technique = Technique(self.pair["technique"])
        full = predicted_full(self.full_runs, SOURCE_BYTES)
        changed = SourceSize("sales", SOURCE_BYTES, int(SOURCE_BYTES * self.pair["changed"]))
        predicted = predicted_incremental(full, [changed], technique, self.reach)
        incremental = corrected(predicted, self.runs)
        if rejected(Limits(), [changed], full, incremental) is not None:
            self.reach = None if self.reach is None else self.reach.unseen
            return self._recomputed()
        decision = Decision(
            Planned(technique), None, predicted, full, self.runs, True, changed.share, technique
        )
        if technique not in DIRECT:
            decision = decision.at(Effort(*self.pair["effort"]))
            self.reach = decision.reach
            if decision.planned.chosen is Technique.COMPLETE_RECOMPUTE:
                return self._recomputed()
        self.runs = [*self.runs, (decision.predicted, self.pair["incremental"])][-5:]
        return True

    def _recomputed(self) -> bool:
        self.full_runs = [*self.full_runs, FullRun(self.pair["full"], SOURCE_BYTES)][-3:]
        return False


def choices(rounds: int) -> list[tuple[Mapping[str, Any], bool]]:
    """What is chosen in the last of so many refreshes of each view by the same change, after its first and one full one."""
    made = []
    for pair in PAIRS:
        first = FullRun(pair["full"] / 0.6, SOURCE_BYTES)
        view = View(pair, [first, FullRun(pair["full"], SOURCE_BYTES)], [])
        chosen = [view.refreshed() for _ in range(rounds)]
        made.append((pair, chosen[-1]))
    return made


def wrong(made: list[tuple[Mapping[str, Any], bool]]) -> tuple[list[str], int]:
    """The pairs for which the slower way was chosen, and how many differ at all."""
    differ = [
        (pair, chosen) for pair, chosen in made
        if max(pair["incremental"], pair["full"]) > DIFFERENT * min(pair["incremental"], pair["full"])
    ]  # fmt: skip
    return [
        f"{p['view']}, {p['what']}" for p, chosen in differ if chosen != (p["incremental"] < p["full"])
    ], len(differ)


def test_nine_of_ten_are_right() -> None:
    """At the first choice, and when the cost has learned from some refreshes."""
    for rounds in (1, 4):
        mistaken, differ = wrong(choices(rounds))
        assert differ >= 10
        assert len(mistaken) <= (1 - RIGHT) * differ, (rounds, mistaken)


def test_choices_cost_little() -> None:
    """All choices together take hardly longer than the best ones."""
    for rounds in (1, 4):
        made = choices(rounds)
        taken = sum(pair["incremental"] if chosen else pair["full"] for pair, chosen in made)
        assert taken <= (1 + REGRET) * sum(min(pair["incremental"], pair["full"]) for pair, _ in made)


def test_pairs_of_both_kinds_are_there() -> None:
    """A cost that always chose the same would fail."""
    faster = [pair["incremental"] < pair["full"] for pair in PAIRS]
    assert any(faster)
    assert not all(faster)
