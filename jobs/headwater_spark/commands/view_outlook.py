"""What the next refresh of a materialized view would meet: how its sources have changed since the last one, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

from headwater.checkpoints.flow_identity import flow_identity
from headwater.delta_log.versions import snapshot_files, table_head
from headwater.errors import SourceUnreachable
from headwater.graph.manifest import SourceEntry
from headwater.incremental.column_shapes import types_by_name
from headwater.incremental.costs import (
    Limits,
    Reach,
    SourceSize,
    expected_part,
    full_runs,
    known_reach,
    predicted_full,
    predicted_incremental,
    rejected,
)
from headwater.incremental.refresh_record import RefreshRecord, last_record, lost_files
from headwater.incremental.source_changes import (
    ChangeKind,
    SourceChange,
    changes_between,
    gone_with_its_files,
    metadata_at,
)
from headwater.incremental.source_needs import CHANGE_FEED, SourceNeeds
from headwater.incremental.techniques import Issue, IssueType, Technique
from headwater.metrics.fingerprint import source_table
from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place
from headwater_spark.execution.refresh_decision import BEGINNINGS, other_query
from headwater_spark.resolution.graph_resolution import ResolvedPipeline
from headwater_spark.resolution.incremental_views import RECOMPUTED, named_in

NO_TABLE = SourceNeeds(is_table=False, in_query=True, grown=False, changed=False)

# Says how what happened to some sources, by their names, would be followed.
FollowedBy: TypeAlias = Callable[[Mapping[str, ChangeKind]], Technique | Issue | None]


def outlook(
    pipeline: ResolvedPipeline,
    view: str,
    sources: Sequence[Mapping[str, Any]],
    refresh: Mapping[str, Any],
    limits: Limits,
    columns: Mapping[str, frozenset[str] | None],
    technique: FollowedBy,
) -> dict[str, Any]:
    """Bytes of each source and what changed of it, and the predicted seconds of both ways; nothing is read but logs.

    Args:
        view: the view's name, and its flow's.
        sources: what each source allows, as ``explain`` shows it.
        refresh: what the flow's state says of refreshes.
        limits: that the pipeline and the view set.
        columns: of each source, those that matter; None where a subquery reads it.
        technique: says how changes of some sources would be followed.
    """
    project, entry = pipeline.project, pipeline.manifest.flow(view)
    table = pipeline.manifest.table_path(project.warehouse, view)
    names = flow_identity(project.state_folder, project.pipeline_id, view, view).names
    record: RefreshRecord | Issue = lost_files(table) or last_record(table, *names)
    if isinstance(record, RefreshRecord):
        record = record.going_on_from(refresh)
    shown: dict[str, dict[str, Any]] = {}
    known: dict[str, SourceChange | Issue | None] = {}
    for source in entry.sources:
        folder = source_table(source, project.warehouse)
        if folder is None:
            shown[source.name or source.path or str(source.kind)] = {"bytes": None, "needs": NO_TABLE.text}
            continue
        name = source.name or named_in(project.warehouse, str(folder))
        known[name] = change_since(source, folder, record, columns.get(name, frozenset()), name)
        shown[name] = {"bytes": _bytes(folder), "needs": _needs(name, folder, sources), **_facts(known[name])}
    changes = {
        name: one
        for name, one in known.items()
        if isinstance(one, SourceChange) and one.kind is not ChangeKind.UNCHANGED
    }
    moved = {name: one.kind for name, one in changes.items()}
    sizes = [
        SourceSize(name, shown[name]["bytes"] or one.changed_bytes, one.changed_bytes)
        for name, one in changes.items()
    ]
    total = sum(facts["bytes"] or 0 for facts in shown.values())
    full_seconds = predicted_full(full_runs(refresh), total)
    candidates = [_candidate(Technique.COMPLETE_RECOMPUTE, full_seconds, total)]
    body: dict[str, Any] = {
        "sources": shown,
        "full_seconds": round(full_seconds, 1),
        "candidates": candidates,
    }
    reasons = (record, _other_query(pipeline, view, table, record), *known.values())
    issues = sorted((one for one in reasons if isinstance(one, Issue)), key=_looked_at)
    issues = issues or behind_subqueries(sizes, columns)
    if issues:
        reason = f"{issues[0].reason} [{issues[0].name}]"
        return body | {"not_incremental": reason, "begins": issues[0].kind in BEGINNINGS}
    return body | followed(technique(moved), sizes, full_seconds, total, refresh, candidates, limits)


def _looked_at(issue: Issue) -> int:
    """When a refresh meets an issue: what it has no longer, then its query, then what changed."""
    order = (IssueType.CHANGE_SET_MISSING, IssueType.QUERY_FINGERPRINT_CHANGED)
    return order.index(issue.kind) if issue.kind in order else len(order)


def _other_query(
    pipeline: ResolvedPipeline, view: str, table: Place, record: RefreshRecord | Issue
) -> Issue | None:
    if isinstance(record, Issue) or pipeline.dataset(view).schema is not None:
        return None
    return other_columns(table, pipeline.evaluation.frames[view].schema.names)


def other_columns(table: Place, names: Sequence[str]) -> Issue | None:
    """Why a view's query is another one than at its last refresh, as far as its columns say so; None where they are the same.

    Args:
        table: the view's.
        names: of the columns that its query has now.
    """
    stored = [field.name for field in delta_table(table).schema().fields]
    gone, new = _missing(stored, names), _missing(names, stored)
    if not gone and not new:
        return None
    said = [f"without {', '.join(gone)}"] * bool(gone) + [f"with {', '.join(new)}"] * bool(new)
    reason = f"the view's query has other columns than at the last refresh: {', '.join(said)}"
    return Issue(IssueType.QUERY_FINGERPRINT_CHANGED, reason)


def _missing(names: Sequence[str], others: Sequence[str]) -> list[str]:
    known = {name.lower() for name in others}
    return [name for name in names if name.lower() not in known]


def _facts(change: SourceChange | Issue | None) -> dict[str, Any]:
    if isinstance(change, SourceChange):
        commits, size = change.last - change.first, change.changed_bytes
        return {"since_last_refresh": str(change.kind), "changed_bytes": size, "commits": commits}
    return {} if change is None else {"since_last_refresh": change.reason}


def followed(
    technique: Technique | Issue | None, sizes: Sequence[SourceSize], full: float, total: int, refresh: Mapping[str, Any],
    candidates: list[dict[str, Any]], limits: Limits,
) -> dict[str, Any]:  # fmt: skip
    """What would become of the changes, with one more candidate where they can be followed."""
    if technique is None or not sizes:
        return {}
    if isinstance(technique, Issue):
        changed = ", ".join(sorted(one.name for one in sizes))
        return {"not_incremental": f"{changed} changed, and {technique.reason} [{technique.name}]"}
    way = _by_what_changed(technique, sizes, full, total, known_reach(refresh, technique))
    candidates.append(way)
    known = {"technique": str(technique), "incremental_seconds": way["seconds"]}
    against = rejected(limits, sizes, full, way["seconds"])
    return known if against is None else known | {"rejected": f"{against.reason} [{against.name}]"}


def _by_what_changed(
    technique: Technique, sizes: Sequence[SourceSize], full: float, total: int, reach: Reach | None
) -> dict[str, Any]:
    seconds = predicted_incremental(full, sizes, technique, reach)
    affected = int(total * expected_part(sizes, technique, reach))
    return _candidate(technique, seconds, sum(one.changed_bytes for one in sizes) + affected)


def _candidate(technique: Technique, seconds: float, read: int) -> dict[str, Any]:
    return {"technique": str(technique), "seconds": round(seconds, 1), "bytes_read": read}


def _needs(name: str, folder: Place, sources: Sequence[Mapping[str, Any]]) -> str:
    if not sources:
        return "nothing: what is in the way lies in the query"
    reads = [one for one in sources if one["source"] == name]
    feed = None
    if table_head(folder) is not None:
        feed = delta_table(folder).metadata().configuration.get(CHANGE_FEED, "").lower() == "true"
    grown, changed = (all(one[key] != RECOMPUTED for one in reads) for key in ("rows_added", "rows_changed"))
    return SourceNeeds(True, bool(reads), grown=grown, changed=changed, change_feed=feed).text


def _bytes(folder: Place) -> int | None:
    try:
        return sum(file.bytes for file in snapshot_files(folder)) if table_head(folder) else None
    except SourceUnreachable:
        return None


def behind_subqueries(
    sizes: Sequence[SourceSize], columns: Mapping[str, frozenset[str] | None]
) -> list[Issue]:
    """The changes that can't be followed since a subquery reads their source."""
    return [
        Issue(
            IssueType.PLAN_NOT_INCREMENTALIZABLE,
            f"{one.name} changed, and a subquery in an expression reads it",
            "SUBQUERY_EXPRESSION",
        )
        for one in sizes
        if columns.get(one.name, frozenset()) is None
    ]


def change_since(
    source: SourceEntry,
    folder: Place,
    record: RefreshRecord | Issue,
    columns: frozenset[str] | None,
    name: str,
) -> SourceChange | Issue | None:
    """What happened to a source since the last refresh; None where that is not known.

    Args:
        folder: its table's.
        record: of the last refresh, or why there is none.
        columns: of the source, those that matter; None: all.
        name: what to call it.
    """
    head = table_head(folder)
    if isinstance(record, Issue) or head is None:
        return None
    before = (record.sources or {}).get(str(source.location))
    if before is None:
        return Issue(IssueType.CHANGE_SET_MISSING, f"the last refresh did not note a version of {name}")
    issue = before.break_before(head, folder, name)
    if issue is not None:
        return issue
    used = columns is not None
    if columns is None:
        columns = frozenset(field.name for field in delta_table(folder).schema().fields)
    change = changes_between(folder, before.version, head.version, columns, name)
    if used and isinstance(change, Issue) and _has_other_types(folder, before.version, columns):
        return other_query(change)
    gone = gone_with_its_files(folder, change, name) if isinstance(change, SourceChange) else None
    return gone or change


def _has_other_types(folder: Place, version: int, columns: Collection[str]) -> bool:
    """Whether one of the columns has another type than at a version: the same text is another query then."""
    before = metadata_at(folder, version)
    if before is None:
        return False
    was, now = (
        types_by_name(text) for text in (before["schemaString"], delta_table(folder).schema().to_json())
    )
    return any(was.get(name.lower()) != now.get(name.lower()) for name in columns)
