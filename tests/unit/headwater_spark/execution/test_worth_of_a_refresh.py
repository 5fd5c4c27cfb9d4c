"""What is chosen where a view could be refreshed incrementally: by its policy, its limits, its rules and the cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.execution.test_since_the_last_refresh import KEY, View

from headwater.definitions.expectation import Expectation, ViolationAction
from headwater.incremental.costs import Reach, SourceSize
from headwater.incremental.source_changes import ChangeKind
from headwater.incremental.techniques import Issue, IssueType, RefreshPolicy, Technique
from headwater_spark.execution import refresh_decision
from headwater_spark.execution.refresh_decision import Decision, RefreshDecision

OFF = {"headwater.incremental.enabled": "false"}
SMALL, LARGE = SourceSize(KEY, 100_000_000, 1_000_000), SourceSize(KEY, 100_000_000, 90_000_000)


@dataclass
class Choice:
    """Which technique the view's plan allows, and whether its changes come to nothing."""

    technique: Technique | Issue = Technique.ROW_BASED
    shares_look: bool = False
    nothing: bool = False
    judged: bool | None = None
    looks: int = 0
    without: Technique | None = None
    changed: tuple[str, ...] = (KEY,)
    declared: dict[str, Any] = field(default_factory=dict)

    def choose(self, *, judged: bool) -> Technique | Issue:
        """The technique; ``judged``: whether the view has rules."""
        self.judged = judged
        return self.technique

    def come_to_nothing(self) -> bool:
        """By a look at the rows that changed, which takes a job."""
        self.looks += 1
        return self.nothing

    def leave_out_unchanged(self) -> bool:
        """Whether some of its sources are out of it, so that another technique will do."""
        if self.without is None:
            return False
        self.technique = self.without
        return True

    def decided(self, folder: Path, monkeypatch: pytest.MonkeyPatch, size: SourceSize = SMALL) -> Decision:
        """The decision for a view of 100 MB of sources, of which some have changed."""
        view = View(folder, monkeypatch)
        view.declared = self.declared
        monkeypatch.setattr(refresh_decision, "Techniques", lambda *_: self)
        monkeypatch.setattr(refresh_decision, "stored_types", lambda *_: {})
        monkeypatch.setattr(refresh_decision, "source_size", lambda *_: size)
        monkeypatch.setattr(refresh_decision, "source_bytes", lambda *_: size.full_bytes)
        monkeypatch.setattr(RefreshDecision, "_shared", None)
        moved: Any = SimpleNamespace(kind=ChangeKind.CHANGED, bytes=1, change_feed=False)
        monkeypatch.setattr(RefreshDecision, "_since_last", lambda one: one._changes.update({KEY: moved}))
        return view.decision().decide()


@pytest.mark.parametrize(
    ("policy", "size", "chosen"),
    [
        (RefreshPolicy.AUTO, SMALL, Technique.ROW_BASED),
        (RefreshPolicy.AUTO, LARGE, Technique.COMPLETE_RECOMPUTE),
        (RefreshPolicy.INCREMENTAL, LARGE, Technique.ROW_BASED),
        (RefreshPolicy.INCREMENTAL_STRICT, LARGE, Technique.ROW_BASED),
        (RefreshPolicy.FULL, SMALL, Technique.COMPLETE_RECOMPUTE),
    ],
)
def test_policies(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    policy: RefreshPolicy,
    size: SourceSize,
    chosen: Technique,
):
    """The cost decides only where nothing else is declared: who asks for incremental, or for full, gets it."""
    decision = Choice(declared={"refresh_policy": policy}).decided(tmp_path, monkeypatch, size)
    assert decision.planned.chosen is chosen
    assert decision.by_cost is (policy is RefreshPolicy.AUTO and size is SMALL)


def test_a_refresh_that_did_not_look_expects_less_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Where the view is recomputed by its cost, how far changes reached before counts for less: at some time it looks again."""
    monkeypatch.setattr(RefreshDecision, "_known", {"reach": {"ROW_BASED": [0.5, 0.1, 2]}})
    decision = Choice().decided(tmp_path, monkeypatch, LARGE)
    assert decision.planned.chosen is Technique.COMPLETE_RECOMPUTE
    assert (decision.followed, decision.reach) == (Technique.ROW_BASED, Reach(0.5, 0.1, 3))


@pytest.mark.parametrize("policy", [RefreshPolicy.AUTO, RefreshPolicy.INCREMENTAL])
def test_incremental_refreshes_can_be_turned_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: RefreshPolicy
):
    """By a setting of the pipeline, for all of its views whatever they declare; the note says so."""
    monkeypatch.setattr(RefreshDecision, "limits", refresh_decision.limits_from(OFF))
    planned = Choice(declared={"refresh_policy": policy}).decided(tmp_path, monkeypatch).planned
    assert (planned.chosen, planned.note) == (
        Technique.COMPLETE_RECOMPUTE,
        "headwater.incremental.enabled=false asks for it",
    )


@pytest.mark.parametrize("rules", [(), (Expectation("r", "id > 0", ViolationAction.DROP),)])
def test_the_choice_knows_whether_rows_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rules: tuple[Expectation, ...]
):
    """Groups whose totals are added up can't be judged: the technique is another one where the view has rules."""
    choice = Choice(declared={"expectations": rules})
    choice.decided(tmp_path, monkeypatch)
    assert choice.judged is bool(rules)


def test_a_plan_that_no_technique_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The view is recomputed, with the reason."""
    issue = Issue(IssueType.PLAN_NOT_INCREMENTALIZABLE, "a window")
    planned = Choice(issue).decided(tmp_path, monkeypatch).planned
    assert (planned.chosen, planned.issues) == (Technique.COMPLETE_RECOMPUTE, (issue,))


@pytest.mark.parametrize("policy", [RefreshPolicy.AUTO, RefreshPolicy.INCREMENTAL_STRICT])
def test_a_source_that_changed_in_other_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: RefreshPolicy
):
    """A view is refreshed by what else changed: such a source neither makes it recompute nor decides about the technique."""
    dimension = SourceSize(KEY, 1_000, 1_000)
    issue = Issue(IssueType.PLAN_NOT_INCREMENTALIZABLE, "no column says which rows")
    choice = Choice(
        issue, shares_look=True, without=Technique.APPEND_ONLY, declared={"refresh_policy": policy}
    )
    monkeypatch.setattr(refresh_decision, "predicted_full", lambda *_: 60.0)
    sizes = iter([dimension])
    monkeypatch.setattr(RefreshDecision, "_sizes", lambda *_: [next(sizes, SMALL)])
    planned = choice.decided(tmp_path, monkeypatch, dimension).planned
    assert (choice.looks, planned.chosen) == (1, Technique.APPEND_ONLY)


def test_no_technique_is_needed_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A view of which no technique finds the changed part is left alone where its changes come to nothing."""
    issue = Issue(IssueType.PLAN_NOT_INCREMENTALIZABLE, "no column says which rows")
    planned = Choice(issue, shares_look=True, nothing=True).decided(tmp_path, monkeypatch).planned
    assert planned.chosen is Technique.NO_OP


@pytest.mark.parametrize(
    ("technique", "shared", "size", "looks"),
    [
        (Technique.ROW_BASED, True, SMALL, 1),
        (Technique.ROW_BASED, False, SMALL, 0),
        (Technique.ROW_BASED, True, LARGE, 0),
        (Technique.APPEND_ONLY, True, SMALL, 0),
    ],
)
def test_changes_that_come_to_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    technique: Technique,
    shared: bool,
    size: SourceSize,
    looks: int,
):
    """Are looked for before the cost is weighed only where the look is shared, the change small, and a look is needed at all."""
    choice = Choice(technique, shared, nothing=True)
    planned = choice.decided(tmp_path, monkeypatch, size).planned
    assert choice.looks == looks
    assert (planned.chosen is Technique.NO_OP) is bool(looks)
