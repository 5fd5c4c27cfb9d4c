"""What stands against going on from a view's last refresh: its query, its settings, its sources, and what they are now."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, run_of
from tests.unit.headwater_spark.written_table import commit

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.expectation import Expectation, ViolationAction
from headwater.delta_log.versions import TableHead, table_head
from headwater.incremental.refresh_record import RefreshRecord, SourceState
from headwater.incremental.techniques import Issue, IssueType, Planned, RefreshPolicy, Technique
from headwater_spark.execution import refresh_decision
from headwater_spark.execution.refresh_decision import RefreshDecision
from headwater_spark.views.deciding_settings import TIME_ZONE
from headwater_spark.views.examined_query import NotedTable
from headwater_spark.views.plan_shape import FILE_METADATA

KEY = "shop/sales"
SETTINGS = {TIME_ZONE: "UTC", "spark.sql.ansi.enabled": "true"}
BY_CHANCE = Issue(IssueType.PLAN_NOT_DETERMINISTIC, "now")
BY_PLACE = Issue(IssueType.PLAN_NOT_DETERMINISTIC, "a file", expression=FILE_METADATA)


class View:
    """A view over one table that has versions 0 and 1, refreshed last at version 1."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *lasting: Issue) -> None:
        monkeypatch.setattr(refresh_decision, "shape_issues", lambda *_: list(lasting))
        monkeypatch.setattr(refresh_decision, "clock_in_rules", lambda *_: None)
        self.table, self.folder = tmp_path / "sales", tmp_path
        for _ in range(2):
            commit(self.table)
        head = table_head(self.table)
        assert head is not None
        self.head = head
        self.record: dict[str, Any] = {
            "settings": SETTINGS,
            "sources": {KEY: SourceState(head.table_id, 1, 1_700_000_000_001)},
            "others": {"other:x": "1"},
        }
        self.query: dict[str, Any] = {"only_tables": True, "in_subqueries": frozenset(), "sources": {}}
        self.fingerprint, self.settings, self.others = "f", dict(SETTINGS), {"other:x": "1"}
        self.time_dependent = False
        self.declared: dict[str, Any] = {}

    def decision(self) -> RefreshDecision:
        noted = {KEY: NotedTable(KEY, self.table, self.head)}
        plan = SimpleNamespace(root=None, undetermined=lambda: (), frame=None)
        query: Any = SimpleNamespace(
            fingerprint="f", noted=noted, columns_of=lambda _: frozenset({"id"}), plan=plan, **self.query
        )
        view = dataset("orders", DatasetKind.MATERIALIZED_VIEW, **self.declared)
        run = run_of(context_of(self.folder, view), view)
        run.__dict__["entry"] = SimpleNamespace(time_dependent=self.time_dependent)
        previous = RefreshRecord("ROW_BASED", self.fingerprint, **self.record)
        return RefreshDecision(run, query, self.settings, self.others, previous)


def test_nothing_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Same query, same settings, same versions: the view is left as it is."""
    planned = View(tmp_path, monkeypatch).decision().decide().planned
    assert planned.chosen is Technique.NO_OP


def another_query(view: View) -> None:
    view.fingerprint = "g"


def another_zone(view: View) -> None:
    view.settings[TIME_ZONE] = "Asia/Tokyo"


def another_setting(view: View) -> None:
    view.settings["spark.sql.ansi.enabled"] = "false"


def a_setting_that_is_gone(view: View) -> None:
    del view.settings["spark.sql.ansi.enabled"]


def another_file(view: View) -> None:
    view.others = {"other:x": "2"}


def a_new_file(view: View) -> None:
    view.others = {"other:y": "1"}


def a_file_of_unknown_state(view: View) -> None:
    view.others = {"other:x": None}  # type: ignore[dict-item]


def a_new_file_of_unknown_state(view: View) -> None:
    view.others = {"other:y": None}  # type: ignore[dict-item]


def a_table_of_unknown_version(view: View) -> None:
    view.query["sources"] = None


def rows_of_unknown_version(view: View) -> None:
    view.record["sources"] = None


def a_new_source(view: View) -> None:
    view.record["sources"] = {}


def a_table_made_anew(view: View) -> None:
    view.head = TableHead("another", 1)


def a_table_that_went_back(view: View) -> None:
    view.head = TableHead(view.head.table_id, 0)


def a_table_from_a_copy(view: View) -> None:
    view.record["sources"] = {KEY: SourceState(view.head.table_id, 1, 1_600_000_000_000)}


def a_source_that_is_no_table(view: View) -> None:
    view.query["only_tables"] = False


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (another_query, IssueType.QUERY_FINGERPRINT_CHANGED),
        (another_zone, IssueType.TIME_ZONE_CHANGED),
        (another_setting, IssueType.CONFIGURATION_CHANGED),
        (a_setting_that_is_gone, IssueType.CONFIGURATION_CHANGED),
        (another_file, IssueType.INPUT_NOT_IN_DELTA),
        (a_new_file, IssueType.INPUT_NOT_IN_DELTA),
        (a_file_of_unknown_state, IssueType.INPUT_NOT_IN_DELTA),
        (a_new_file_of_unknown_state, IssueType.INPUT_NOT_IN_DELTA),
        (a_table_of_unknown_version, IssueType.CHANGE_SET_MISSING),
        (rows_of_unknown_version, IssueType.CHANGE_SET_MISSING),
        (a_new_source, IssueType.CHANGE_SET_MISSING),
        (a_table_made_anew, IssueType.CHANGE_SET_MISSING),
        (a_table_that_went_back, IssueType.CHANGE_SET_MISSING),
        (a_table_from_a_copy, IssueType.CHANGE_SET_MISSING),
        (a_source_that_is_no_table, IssueType.INPUT_NOT_IN_DELTA),
    ],
)
def test_what_can_not_be_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any, kind: IssueType
):
    """The view is recomputed, and told why: its rows may be of something else than what is there now."""
    view = View(tmp_path, monkeypatch)
    change(view)
    planned = view.decision().decide().planned
    assert (planned.chosen, [issue.kind for issue in planned.issues]) == (
        Technique.COMPLETE_RECOMPUTE,
        [kind],
    )


def test_another_query_by_a_column_of_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A column that widened makes another query of the same text: the reason names it, so that nobody looks for an edit."""
    view = View(tmp_path, monkeypatch)
    column = Issue(IssueType.DATA_SCHEMA_CHANGED, "the column id is not what it was")
    monkeypatch.setattr(refresh_decision, "changes_between", lambda *_: column)
    another_query(view)
    (issue,) = view.decision().decide().planned.issues
    assert issue.kind is IssueType.QUERY_FINGERPRINT_CHANGED
    assert issue.reason.endswith(f"has changed: {column.reason}")


@pytest.mark.parametrize(
    ("lasting", "time_dependent", "chosen"),
    [
        ((BY_CHANCE,), False, Technique.NO_OP),
        ((BY_CHANCE,), True, Technique.COMPLETE_RECOMPUTE),
        ((BY_PLACE,), False, Technique.COMPLETE_RECOMPUTE),
        ((), True, Technique.NO_OP),
    ],
)
def test_a_result_that_changes_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lasting: Any, time_dependent: bool, chosen: Technique
):
    """By the clock, or by where a file lies: such a view is computed again though no source has moved."""
    view = View(tmp_path, monkeypatch, *lasting)
    view.time_dependent = time_dependent
    assert view.decision().decide().planned.chosen is chosen


def test_rules_that_judge_all_rows_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A view that quarantines is never refreshed by a part of its rows."""
    view = View(tmp_path, monkeypatch)
    view.declared["expectations"] = (Expectation("r", "id > 0", ViolationAction.QUARANTINE),)
    one = view.decision()
    assert [issue.kind for issue in one._lasting(one.query)] == [IssueType.EXPECTATIONS_NOT_SUPPORTED]  # type: ignore[arg-type]


def test_a_table_behind_a_subquery_that_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Any row of the view may depend on it: what changed elsewhere says nothing."""
    view = View(tmp_path, monkeypatch)
    view.query["in_subqueries"] = frozenset({KEY})
    view.declared["refresh_policy"] = RefreshPolicy.INCREMENTAL
    moved: Any = SimpleNamespace(kind="CHANGED", bytes=1, change_feed=False)
    one = view.decision()
    monkeypatch.setattr(RefreshDecision, "_since_last", lambda self: self._changes.update({KEY: moved}))
    planned = one.decide().planned
    assert isinstance(planned, Planned)
    assert [issue.sub_type for issue in planned.issues] == ["SUBQUERY_EXPRESSION"]
