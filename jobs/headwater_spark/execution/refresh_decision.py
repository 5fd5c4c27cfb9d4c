"""Decide how a view is refreshed: what stands against an incremental refresh, and whether one is worth it.

Decisions 0162 to 0165.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headwater.definitions.expectation import needs_judgement
from headwater.incremental.costs import (
    Effort,
    Limits,
    Reach,
    SourceSize,
    changed_share,
    corrected,
    full_runs,
    known_reach,
    limits_from,
    not_faster,
    predicted_full,
    predicted_incremental,
    predicted_part,
    rejected,
    worth_a_look,
)
from headwater.incremental.refresh_record import RefreshRecord
from headwater.incremental.source_changes import ChangeKind, SourceChange, changes_between
from headwater.incremental.techniques import (
    Issue,
    IssueType,
    Planned,
    RefreshPolicy,
    TableInformation,
    Technique,
)
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.view_sources import source_size, table_bytes
from headwater_spark.views.clock_in_rules import clock_in_rules
from headwater_spark.views.deciding_settings import TIME_ZONE
from headwater_spark.views.examined_query import ExaminedQuery
from headwater_spark.views.plan_shape import FILE_METADATA, shape_issues
from headwater_spark.views.shared_changes import SharedChanges
from headwater_spark.views.stored_types import stored_types
from headwater_spark.views.techniques import Techniques

# After these nothing is known of what the view has: its first refresh, as it were.
BEGINNINGS = frozenset(
    {
        IssueType.CHANGE_SET_MISSING,
        IssueType.QUERY_FINGERPRINT_CHANGED,
        IssueType.SERIALIZATION_VERSION_CHANGED,
        IssueType.CONFIGURATION_CHANGED,
        IssueType.TIME_ZONE_CHANGED,
    }
)


@dataclass(frozen=True)
class Decision:
    """How a view is refreshed.

    Args:
        planned: the technique, with the reasons.
        techniques: what carries it out, where it is an incremental one.
        predicted: its seconds, before last runs correct them; ``full``: those of a full refresh.
        runs: of the last refreshes by it, what was predicted and what they took.
        by_cost: whether the cost decides.
        changed: the part of a source that changed.
        reach: how far changes reach, by the technique ``followed``, for the next decision.
        shared: whether the changed rows are looked for once for several views.
    """

    planned: Planned
    techniques: Techniques | None = None
    predicted: float = 0.0
    full: float = 0.0
    runs: Sequence[Sequence[float]] = ()
    by_cost: bool = False
    changed: float = 0.0
    followed: Technique | None = None
    reach: Reach | None = None
    shared: bool = False

    def everywhere(self) -> Decision:
        """The decision again, now that the changes reach too far to be named."""
        return replace(self, reach=Reach(1.0, self.changed))

    def at(self, effort: Effort | None) -> Decision:
        """The decision again, now that it is known what an affected part moves; nothing of it was read so far."""
        if effort is None:
            return self
        reach = Reach(round(effort.share, 4), self.changed)
        predicted = predicted_part(self.full, effort, shared=self.shared)
        incremental = corrected(predicted, self.runs)
        planned, chosen = self.planned, self.planned.chosen
        costs = {Technique.COMPLETE_RECOMPUTE: self.full, chosen: incremental}
        against = not_faster(self.full, incremental) if self.by_cost else None
        if against is not None:
            recomputed = Planned(Technique.COMPLETE_RECOMPUTE, (against,), chosen, costs, planned.sources)
            return replace(self, planned=recomputed, techniques=None, reach=reach)
        return replace(self, planned=replace(planned, costs=costs), predicted=predicted, reach=reach)


@dataclass
class RefreshDecision:
    """One decision.

    Args:
        query: what was found of the view's query; a text says why it can't be looked into.
        settings: of the session, that decide about rows.
        others: what the sources that are no tables are at.
        previous: the last refresh's record, or why there is none that counts.
    """

    run: FlowRun
    query: ExaminedQuery | str
    settings: Mapping[str, str]
    others: Mapping[str, str | None]
    previous: RefreshRecord | Issue
    _changes: dict[str, SourceChange] = field(default_factory=dict)

    def decide(self) -> Decision:
        """The technique, with the reasons against others."""
        planned = self._since_last()
        if isinstance(planned, Planned):
            return Decision(planned)
        query = self.query
        lasting = [] if isinstance(query, str) else self._lasting(query)
        issues = reasons(planned, lasting)
        if issues:
            return Decision(Planned(Technique.COMPLETE_RECOMPUTE, issues, sources=self._tables()))
        assert not isinstance(query, str)
        return self._worth(query)

    @property
    def limits(self) -> Limits:
        """The limits that the pipeline and the view set."""
        return limits_from({**self.run.context.pipeline.project.configuration, **self.run.flow.spark_conf})

    # -- since the last refresh ----------------------------------------------------------------------------------

    def _since_last(self) -> Planned | Issue | None:  # noqa: PLR0911 - one return a reason
        """NO_OP where the view has what its query gives, the reason where the last refresh can't be gone on from, else None."""
        query, previous = self.query, self.previous
        if isinstance(query, str):
            return Issue(
                IssueType.PLAN_NOT_INCREMENTALIZABLE,
                f"the query's plan can't be looked into: {query}",
                "OPERATOR_NOT_SUPPORTED",
            )
        if isinstance(previous, Issue):
            return previous
        issue = self._other_query(query, previous) or self._other_input(previous)
        if issue is not None:
            return issue
        if query.sources is None or previous.sources is None:
            reason = "the query reads a table at another version than its newest one, or a table that is no source of the graph"
            return Issue(IssueType.CHANGE_SET_MISSING, reason)
        issue = self._read_changes(query, previous)
        if issue is not None:
            return issue
        if not query.only_tables:
            reason = "it reads something that is neither a Delta table nor a file"
            return Issue(IssueType.INPUT_NOT_IN_DELTA, reason)
        kinds = {change.kind for change in self._changes.values()}
        if kinds <= {ChangeKind.UNCHANGED} and not self._differs_by_itself(query):
            return Planned(
                Technique.NO_OP, note="no source has changed since the last refresh", sources=self._tables()
            )
        return None

    def _differs_by_itself(self, query: ExaminedQuery) -> bool:
        """Whether the same rows of its sources may give a query another result than before."""
        chances = [issue for issue in self._lasting(query) if issue.kind is IssueType.PLAN_NOT_DETERMINISTIC]
        by_place = any(issue.expression == FILE_METADATA for issue in chances)
        return by_place or (bool(chances) and self.run.entry.time_dependent)

    def _other_query(self, query: ExaminedQuery, previous: RefreshRecord) -> Issue | None:
        if previous.fingerprint != query.fingerprint:
            known = previous.sources is not None
            return other_query(self._read_changes(query, previous) if known else None)
        before, now = dict(previous.settings), dict(self.settings)
        if before.pop(TIME_ZONE, None) != now.pop(TIME_ZONE, None):
            return Issue(IssueType.TIME_ZONE_CHANGED, "the session has another time zone")
        changed = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
        if changed:
            return Issue(IssueType.CONFIGURATION_CHANGED, f"{', '.join(changed)} changed")
        return None

    def _other_input(self, previous: RefreshRecord) -> Issue | None:
        for key, now in self.others.items():
            if now is None or previous.others.get(key) != now:
                state = "can't be compared with what it was" if now is None else "has changed"
                reason = f"{key.removeprefix('other:')} is no Delta table, and {state}"
                return Issue(IssueType.INPUT_NOT_IN_DELTA, reason, table=key)
        return None

    def _read_changes(self, query: ExaminedQuery, previous: RefreshRecord) -> Issue | None:
        assert previous.sources is not None
        for key, table in query.noted.items():
            before = previous.sources.get(key)
            if before is None:
                return Issue(IssueType.CHANGE_SET_MISSING, f"the last refresh did not read {key}", table=key)
            issue = before.break_before(table.head, table.folder, key)
            if issue is not None:
                return issue
            change = changes_between(
                table.folder, before.version, table.head.version, query.columns_of(key), key
            )
            if isinstance(change, Issue):
                return change
            self._changes[key] = change
        return None

    # -- what lies in the query and its declaration --------------------------------------------------------------

    def _lasting(self, query: ExaminedQuery) -> list[Issue]:
        run = self.run
        issues = shape_issues(query.plan.root, query.plan.undetermined())
        if (by_clock := clock_in_rules(query.plan.frame, run.dataset.expectations)) is not None:
            issues.append(by_clock)
        if needs_judgement(run.dataset.expectations):
            reason = "rules that quarantine rows, or look for duplicates, judge all rows together"
            issues.append(Issue(IssueType.EXPECTATIONS_NOT_SUPPORTED, reason, lasting=True))
        return issues

    # -- what is worth it ----------------------------------------------------------------------------------------

    def _worth(self, query: ExaminedQuery) -> Decision:
        tables = self._tables()
        policy = self.run.dataset.refresh_policy
        limits = self.limits
        if policy is RefreshPolicy.FULL or not limits.enabled:
            origin = (
                'refresh_policy="full"'
                if policy is RefreshPolicy.FULL
                else "headwater.incremental.enabled=false"
            )
            return Decision(
                Planned(Technique.COMPLETE_RECOMPUTE, note=f"{origin} asks for it", sources=tables)
            )
        moved = {key for key, change in self._changes.items() if change.kind is not ChangeKind.UNCHANGED}
        behind = sorted(moved & query.in_subqueries)
        if behind:
            issue = Issue(
                IssueType.PLAN_NOT_INCREMENTALIZABLE,
                f"{behind[0]} changed, and a subquery in an expression reads it",
                "SUBQUERY_EXPRESSION",
                table=behind[0],
            )
            return Decision(Planned(Technique.COMPLETE_RECOMPUTE, (issue,), sources=tables))
        stored = stored_types(self.run.table)
        dataset = self.run.dataset
        techniques = Techniques(
            query, self._changes, self.run.table, stored, dataset.partition_columns, dataset.cluster_columns or (), limits, self._shared,
        )  # fmt: skip
        by_cost = policy is RefreshPolicy.AUTO
        full = predicted_full(full_runs(self._known), source_bytes(query))
        chosen = self._chosen(query, techniques, full if by_cost else math.inf)
        if chosen is Technique.NO_OP:
            return Decision(Planned(chosen, note="the changes come to nothing", sources=tables))
        if isinstance(chosen, Issue):
            return Decision(Planned(Technique.COMPLETE_RECOMPUTE, (chosen,), sources=tables))
        reach = known_reach(self._known, chosen)
        shared = techniques.shares_look
        sizes = self._sizes(query, techniques.changed)
        predicted = predicted_incremental(full, sizes, chosen, reach, shared=shared)
        runs = self._known.get("runs", {}).get(str(chosen), ())
        incremental = corrected(predicted, runs)
        costs: dict[Technique, float] = {Technique.COMPLETE_RECOMPUTE: full, chosen: incremental}
        against = rejected(limits, sizes, full, incremental) if by_cost else None
        if against is not None:
            planned = Planned(Technique.COMPLETE_RECOMPUTE, (against,), chosen, costs, tables)
            return Decision(planned, followed=chosen, reach=None if reach is None else reach.unseen)
        planned = Planned(chosen, costs=costs, sources=tables)
        return Decision(
            planned, techniques, predicted, full, runs, by_cost, changed_share(sizes), chosen, shared=shared
        )

    def _chosen(self, query: ExaminedQuery, techniques: Techniques, full: float) -> Technique | Issue:
        """The technique for what changed; NO_OP where the changes come to nothing in the columns that the view uses."""
        judged = bool(self.run.dataset.expectations)
        chosen = techniques.choose(judged=judged)
        direct = isinstance(chosen, Technique) and chosen.direct
        if direct or not techniques.shares_look:
            return chosen
        if not worth_a_look(self.limits, self._sizes(query, techniques.changed), full):
            return chosen
        if techniques.come_to_nothing():
            return Technique.NO_OP
        return techniques.choose(judged=judged) if techniques.leave_out_unchanged() else chosen

    def _sizes(self, query: ExaminedQuery, changed: Collection[str]) -> list[SourceSize]:
        return [source_size(query.noted[key], self._changes[key]) for key in sorted(changed)]

    @property
    def _shared(self) -> SharedChanges:
        """What other views know of changed rows; a view with settings of its own may read them otherwise."""
        run = self.run
        return (
            SharedChanges() if run.context.pipeline.evaluation.settings_of(run.flow) else run.context.changes
        )

    @property
    def _known(self) -> Mapping[str, Any]:
        """What the flow's state says of refreshes before."""
        state = self.run.checkpoint.read_state()
        return state.refresh if state is not None else {}

    def _tables(self) -> list[TableInformation]:
        kinds = {
            ChangeKind.APPENDED: "TABLE_CHANGE_TYPE_APPEND_ONLY",
            ChangeKind.CHANGED: "TABLE_CHANGE_TYPE_GENERAL_CHANGE",
        }
        if isinstance(self.query, str):
            return []
        shown = []
        for key, table in self.query.noted.items():
            change = self._changes.get(key)
            kind = (
                kinds.get(change.kind, "TABLE_CHANGE_TYPE_UNKNOWN") if change else "TABLE_CHANGE_TYPE_UNKNOWN"
            )
            size = change.bytes if change else None
            feed = change.change_feed if change and change.kind is ChangeKind.CHANGED else None
            shown.append(TableInformation(key, table.head.table_id, kind, None, size, feed))
        return shown


def other_query(issue: Issue | None) -> Issue:
    """Why a view with another query than at its last refresh is recomputed.

    Args:
        issue: why changes of a source can't be followed, None where they can: another column, or another table of the same name,
            makes another query of one that nobody has edited.
    """
    if issue is not None and issue.kind is IssueType.CHANGE_SET_MISSING:
        return issue
    reason = "the view's query, its rules, or what it is stored as has changed"
    by_source = issue is not None and issue.kind is IssueType.DATA_SCHEMA_CHANGED
    more = f": {issue.reason}" if issue is not None and by_source else ""
    return Issue(IssueType.QUERY_FINGERPRINT_CHANGED, reason + more)


def reasons(since_last: Issue | None, lasting: Sequence[Issue]) -> tuple[Issue, ...]:
    """Why a view is recomputed: what is new since its last refresh, and what lies in its query.

    The plan of a query with chance in it has another seed each time: that says nothing of an edit.
    """
    by_chance = any(issue.kind is IssueType.PLAN_NOT_DETERMINISTIC for issue in lasting)
    if since_last is None or (by_chance and since_last.kind is IssueType.QUERY_FINGERPRINT_CHANGED):
        return tuple(lasting)
    return since_last, *lasting


def source_bytes(query: ExaminedQuery) -> int:
    """The size of all tables that a query reads."""
    return sum(table_bytes(table) or 0 for table in query.noted.values())
