"""The steps of a view's refresh: what it goes on from, what fails it, and what its commit says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, run_of
from tests.unit.headwater_spark.written_table import commit

from headwater.definitions.dataset import DatasetKind
from headwater.errors import FlowInterrupted, LeaseLost
from headwater.incremental.conditions import NotIncrementalizable
from headwater.incremental.refresh_record import SEEN, RefreshRecord, SourceState
from headwater.incremental.techniques import Issue, IssueType, Planned, RefreshPolicy, Technique
from headwater_spark.execution import view_refresh as module
from headwater_spark.execution.refresh_decision import Decision
from headwater_spark.execution.view_refresh import _Refresh
from headwater_spark.rules.expectations import Quality
from headwater_spark.views.techniques import Increment

RECOMPUTED, NO_OP = Technique.COMPLETE_RECOMPUTE, Technique.NO_OP
CHANGED = Issue(IssueType.DATA_SCHEMA_CHANGED, "a column is another one")
FIRST = Issue(IssueType.CHANGE_SET_MISSING, "there is no earlier refresh to go on from")


def refresh(
    tmp_path: Path, *, policy: RefreshPolicy = RefreshPolicy.AUTO, whole: bool = False, others: Mapping[str, Any] | None = None,
    query: Any = None, version: int = 1, **of_flow: Any,
) -> _Refresh:  # fmt: skip
    """A refresh of a view that ends at a version."""
    table = dataset(kind=DatasetKind.MATERIALIZED_VIEW, refresh_policy=policy)
    one = flow(**of_flow)
    run = run_of(context_of(tmp_path, table, flows=(one,)), table, one)
    for _ in range(version + 1):
        commit(run.table, metadata={"pipeline": "p", "flow": "orders", "update": "u0"})
    rows: Any = None
    return _Refresh(run, rows, query, {}, others or {}, whole)


@pytest.mark.parametrize(
    ("policy", "whole", "chosen", "issues", "refused"),
    [
        (RefreshPolicy.INCREMENTAL_STRICT, False, RECOMPUTED, (CHANGED,), True),
        (RefreshPolicy.INCREMENTAL_STRICT, False, RECOMPUTED, (FIRST, CHANGED), True),
        (
            RefreshPolicy.INCREMENTAL_STRICT,
            False,
            RECOMPUTED,
            (FIRST,),
            False,
        ),  # its first refresh, as it were
        (RefreshPolicy.INCREMENTAL_STRICT, True, RECOMPUTED, (CHANGED,), False),  # it was asked for
        (RefreshPolicy.INCREMENTAL_STRICT, False, NO_OP, (CHANGED,), False),
        (RefreshPolicy.INCREMENTAL, False, RECOMPUTED, (CHANGED,), False),
    ],
)
def test_a_strict_policy(
    tmp_path: Path,
    policy: RefreshPolicy,
    whole: bool,
    chosen: Technique,
    issues: tuple[Issue, ...],
    refused: bool,
):
    """It refuses to recompute a view that has begun, unless a full refresh was asked for."""
    one = refresh(tmp_path, policy=policy, whole=whole)
    if refused:
        with pytest.raises(NotIncrementalizable):
            one._refuse_where_strict(Planned(chosen, issues))
    else:
        one._refuse_where_strict(Planned(chosen, issues))


def techniques(increment: Any) -> Any:
    """Techniques that give this, or fail by it."""

    def give(_: Technique) -> Any:
        if isinstance(increment, Exception):
            raise increment
        return increment

    return SimpleNamespace(increment=give)


PLANNED = Planned(Technique.ROW_BASED)


def test_what_fails_before_its_commit_is_recomputed(tmp_path: Path):
    """What fails after it, or while the update stops, is a failure of the flow: the commit may be there."""
    one = refresh(tmp_path)
    instead = one._increment(Decision(PLANNED, techniques(ValueError("no such class"))))
    assert instead is not None
    assert instead.chosen is RECOMPUTED
    assert "no such class" in instead.reason

    def commits(_: Technique) -> Any:
        commit(one.run.table)
        raise ValueError("after the commit")

    with pytest.raises(ValueError, match="after the commit"):
        one._increment(Decision(PLANNED, SimpleNamespace(increment=commits)))  # type: ignore[arg-type]
    one.run.context.stop_requested.set()
    with pytest.raises(ValueError, match="stopped"):
        one._increment(Decision(PLANNED, techniques(ValueError("stopped"))))


def test_without_the_lease_nothing_is_recomputed_instead(tmp_path: Path):
    """What is refused for safety stays refused."""
    with pytest.raises(LeaseLost):
        refresh(tmp_path)._increment(Decision(PLANNED, techniques(LeaseLost("gone"))))


def test_changes_that_come_to_nothing(tmp_path: Path):
    """Nothing is written, and the event says so; a part that can't be named is recomputed."""
    one = refresh(tmp_path)
    assert one._increment(Decision(PLANNED, techniques(Increment(NO_OP, None)))) is None
    assert one.done is NO_OP
    instead = one._increment(
        Decision(PLANNED, techniques(CHANGED), changed=0.5, followed=Technique.ROW_BASED)
    )
    assert instead is not None
    assert (instead.chosen, instead.issues) == (RECOMPUTED, (CHANGED,))
    assert one.reached is not None
    assert one.reached[1].share == 1.0


@pytest.mark.parametrize("whole", [True, False])
def test_a_commit_of_another_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool):
    """Delta leaves out a refresh whose number it has: the newest commit has to be this update's, under a number of its own."""
    one = refresh(tmp_path)
    steps: list[Any] = []

    def write(update: str) -> Any:
        def written(*given: Any, **_: Any) -> Quality:
            transaction = given[3]
            steps.append((transaction.application, transaction.batch_id))
            metadata = {**json.loads(transaction.user_metadata), "update": update}
            commit(
                one.run.table, transactions={transaction.application: transaction.batch_id}, metadata=metadata
            )
            return Quality(1, 0, ())

        return written

    monkeypatch.setattr(module, "overwritten_rows", lambda _: Quality(1, 0, ()))
    monkeypatch.setattr(
        one.run.context, "lease", SimpleNamespace(token=0, check=lambda: steps.append("lease"))
    )
    target: Any = None
    for update in ("u1", "u1", "another"):
        monkeypatch.setattr(module, "write_batch", write(update))
        monkeypatch.setattr(module, "write_rows", write(update))
        if update == "another":
            with pytest.raises(FlowInterrupted):
                one._write(one.rows, target, RECOMPUTED, whole=whole)
        else:
            one._write(one.rows, target, RECOMPUTED, whole=whole)
    name = "p.orders@refresh"
    assert steps == [(name, 1), "lease", (name, 2), "lease", (name, 3), "lease"]


def test_what_a_commit_says_it_read(tmp_path: Path):
    """Where each table stood; nothing where a source that is no table can't be compared later."""
    sources = {"t": SourceState("id", 4)}
    query = SimpleNamespace(sources=sources, fingerprint="f")
    record = refresh(tmp_path, query=query, others={"other:x": "1"})._record(RECOMPUTED)
    assert record == RefreshRecord("COMPLETE_RECOMPUTE", "f", {}, sources, {"other:x": "1"})
    unknown = refresh(tmp_path / "b", query=query, others={"other:x": "1", "other:y": None})._record(
        RECOMPUTED
    )
    assert unknown is not None
    assert (unknown.sources, unknown.others) == (None, {"other:x": "1"})
    assert refresh(tmp_path / "c")._record(RECOMPUTED) is None


@pytest.mark.parametrize(
    ("lost", "part", "decided", "chosen"),
    [
        (False, None, PLANNED, Technique.ROW_BASED),
        (True, None, PLANNED, RECOMPUTED),
        (False, "day = 1", PLANNED, Technique.PARTITION_OVERWRITE),
        (False, "day = 1", Planned(NO_OP), NO_OP),
    ],
)
def test_what_a_refresh_goes_on_from(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lost: bool,
    part: str | None,
    decided: Planned,
    chosen: Technique,
):
    """The view's own newest refresh, unless files of it are gone; a part that the declaration names is written where anything is."""
    one = refresh(tmp_path, replace_where=part)
    gone = Issue(IssueType.DATA_FILE_MISSING, "files of the view are gone")
    monkeypatch.setattr(module, "lost_files", lambda _: gone if lost else None)
    monkeypatch.setattr(module, "last_record", lambda *_: "its record")

    class Deciding:
        def __init__(self, *given: Any) -> None:
            self.previous = given[4]

        def decide(self) -> Decision:
            return Decision(
                decided if self.previous == "its record" else Planned(RECOMPUTED, (self.previous,))
            )

    monkeypatch.setattr(module, "RefreshDecision", Deciding)
    assert one._decision().planned.chosen is chosen


def test_a_view_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """There is nothing to go on from; a full refresh asks nothing."""
    previous: list[Any] = []

    def deciding(*given: Any) -> Any:
        previous.append(given[4])
        return SimpleNamespace(decide=lambda: Decision(PLANNED))

    monkeypatch.setattr(module, "RefreshDecision", deciding)
    assert refresh(tmp_path, version=-1)._decision().planned is PLANNED
    (issue,) = previous
    assert issue.kind is IssueType.CHANGE_SET_MISSING
    assert refresh(tmp_path / "b", whole=True)._decision().planned.chosen is RECOMPUTED
    assert len(previous) == 1


@pytest.mark.parametrize(
    ("done", "predicted", "full", "runs", "follows"),
    [
        (RECOMPUTED, None, [[1.0, 5], [2.5, 0]], [[3.0, 4.0]], False),
        (Technique.ROW_BASED, 2.0, [[1.0, 5]], [[3.0, 4.0], [2.0, 2.5]], False),
        (Technique.ROW_BASED, None, [[1.0, 5]], [[3.0, 4.0]], False),
        (NO_OP, 2.0, [[1.0, 5]], [[3.0, 4.0]], True),
    ],
)
def test_what_is_kept_of_a_refresh(
    tmp_path: Path, done: Technique, predicted: float | None, full: Any, runs: Any, follows: bool
):
    """Each full run, and each incremental one that was predicted, beside those before; one that did nothing leaves all as it was."""
    one = refresh(tmp_path)
    known = {"full_runs": [[1.0, 5]], "runs": {"ROW_BASED": [[3.0, 4.0]]}, "follows": True, "of tomorrow": 1}
    one.run.checkpoint.update_state(refresh=known)
    one.done, one.reason, one.seconds, one.predicted, one.planned = done, "why", 2.5, predicted, "ROW_BASED"
    one.follows = False
    stored = one.stored()
    assert (stored["full_runs"], stored["runs"]["ROW_BASED"]) == (full, runs)
    assert (stored["technique"], stored["reason"], stored["follows"]) == (str(done), "why", follows)
    assert stored["of tomorrow"] == 1


@pytest.mark.parametrize("done", [NO_OP, Technique.ROW_BASED, RECOMPUTED])
def test_where_changes_came_to_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: Technique
):
    """The view's log has no commit of that; a commit that comes later says itself where the sources stood."""
    record = RefreshRecord("NO_OP", "f", {}, {"shop/sales": SourceState("t", 7)})
    one = refresh(tmp_path)
    one.run.checkpoint.update_state(refresh={SEEN: {"of": "before"}})
    monkeypatch.setattr(one, "_record", lambda _: record)
    one.done = done
    assert one.stored()[SEEN] == (record.seen if done is NO_OP else None)
