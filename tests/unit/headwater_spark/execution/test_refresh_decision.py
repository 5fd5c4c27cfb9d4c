"""What becomes of a decision when it is known how far changes reach."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.incremental.costs import Effort, Reach
from headwater.incremental.source_changes import ChangeKind, SourceChange
from headwater.incremental.techniques import Issue, IssueType, Planned, RefreshPolicy, Technique
from headwater_spark.execution import refresh_decision as module
from headwater_spark.execution.refresh_decision import Decision, RefreshDecision, other_query, reasons

CHOSEN = Decision(
    Planned(Technique.ROW_BASED), None, 2.0, 10.0, (), True, 0.05, Technique.ROW_BASED
)  # fmt: skip
NEAR, FAR = Effort(1, 100, 0, 0), Effort(95, 100, 0, 0)


@pytest.mark.parametrize(
    ("effort", "technique"), [(NEAR, Technique.ROW_BASED), (FAR, Technique.COMPLETE_RECOMPUTE)]
)
def test_what_was_seen_is_noted_whatever_follows(effort: Effort, technique: Technique) -> None:
    """A part that is nearly the whole is not worth it; both ways the next decision knows how far the change reached."""
    decision = CHOSEN.at(effort)
    assert decision.planned.chosen is technique
    assert decision.reach == Reach(effort.share, 0.05)


def test_a_policy_that_promises_is_kept() -> None:
    """Where the cost does not decide, no part is too large."""
    promised = Decision(
        Planned(Technique.ROW_BASED), None, 2.0, 10.0, (), False, 0.05, Technique.ROW_BASED
    ).at(FAR)
    assert promised.planned.chosen is Technique.ROW_BASED


def test_too_many_keys_are_as_far_as_can_be() -> None:
    """So that the next refresh does not look for them again."""
    assert CHOSEN.everywhere().reach == Reach(1.0, 0.05)
    assert CHOSEN.at(None) is CHOSEN


def test_chance_is_not_an_edit() -> None:
    """A query with `uuid()` has another plan each time: its view is said to be left to chance, not to have been edited."""
    edited = Issue(IssueType.QUERY_FINGERPRINT_CHANGED, "edited")
    chance, limit = (
        Issue(IssueType.PLAN_NOT_DETERMINISTIC, "uuid"),
        Issue(IssueType.PLAN_NOT_INCREMENTALIZABLE, "limit"),
    )
    assert reasons(edited, [chance]) == (chance,)
    assert reasons(edited, [limit]) == (edited, limit)
    assert reasons(edited, []) == (edited,)
    assert reasons(Issue(IssueType.CHANGE_SET_MISSING, "first"), [chance])[1:] == (chance,)
    assert reasons(None, [limit]) == (limit,)
    assert reasons(None, []) == ()


def test_a_source_that_made_another_query_is_named() -> None:
    """One with another column is named, one that was made anew is the reason itself; that its log was cut makes no other query."""
    column = other_query(Issue(IssueType.DATA_SCHEMA_CHANGED, "the column k of t is not what it was"))
    assert column.kind is IssueType.QUERY_FINGERPRINT_CHANGED
    assert column.reason.endswith("has changed: the column k of t is not what it was")
    anew = Issue(IssueType.CHANGE_SET_MISSING, "t is another table")
    assert other_query(anew) is anew
    assert other_query(Issue(IssueType.CDF_UNAVAILABLE, "cut")) == other_query(None)
    assert other_query(None).reason.endswith("has changed")


@pytest.mark.parametrize("moved", [True, False])
def test_a_subquery_counts_where_its_table_changed(monkeypatch: pytest.MonkeyPatch, moved: bool) -> None:
    """A view is recomputed for a table that a subquery of its expressions reads, but not while only other tables change."""
    run: Any = SimpleNamespace(
        dataset=SimpleNamespace(
            refresh_policy=RefreshPolicy.AUTO, partition_columns=(), cluster_columns=(), expectations=()
        ),
        context=SimpleNamespace(pipeline=SimpleNamespace(project=SimpleNamespace(configuration={}))),
        flow=SimpleNamespace(spark_conf={}),
        table=None,
    )
    query: Any = SimpleNamespace(noted={}, in_subqueries={"rates"})
    changes = {
        "rates": SourceChange(ChangeKind.APPENDED if moved else ChangeKind.UNCHANGED, 0, 1),
        "sales": SourceChange(ChangeKind.APPENDED, 0, 1),
    }
    for name in ("stored_types", "Techniques", "full_runs", "source_bytes", "predicted_full"):
        monkeypatch.setattr(module, name, lambda *_: 0)
    for name in ("_known", "_shared"):
        monkeypatch.setattr(RefreshDecision, name, None)
    monkeypatch.setattr(RefreshDecision, "_chosen", lambda *_: Technique.NO_OP)
    planned = (
        RefreshDecision(run, query, {}, {}, Issue(IssueType.CHANGE_SET_MISSING, "-"), changes)
        ._worth(query)
        .planned
    )
    assert planned.chosen is (Technique.COMPLETE_RECOMPUTE if moved else Technique.NO_OP)
    assert [issue.table for issue in planned.issues] == (["rates"] if moved else [])
