"""``quarantine``: rows that expectations kept out. Everything but a replay works without a JVM."""

from __future__ import annotations

import argparse
import getpass
import json
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from headwater.checkpoints.begun_action import BegunAction, begin_action, end_action
from headwater.checkpoints.table_move import refuse_old_names
from headwater.commands.run import become_program
from headwater.contract.known_values import check_row_filter
from headwater.contract.printing import print_json, print_table
from headwater.contract.quarantine_arguments import row_filter
from headwater.doctor.begun_actions import record_begun
from headwater.errors import UnknownQuarantinedRow, UsageError
from headwater.event_log.details import user_action
from headwater.event_log.redaction import redact_text
from headwater.event_log.user_actions import DISCARD, is_discard_recorded
from headwater.event_log.writer import EventLogWriter
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.spelled_names import declared_name
from headwater.graph.stored_manifest import stored_manifest
from headwater.graph.table_owners import refuse_foreign_tables
from headwater.quarantine import columns as c
from headwater.quarantine.columns import RowStatus
from headwater.quarantine.location import quarantine_location
from headwater.quarantine.table import Discarded, RowFilter, discard, rows, summaries
from headwater.storage.place import Place

_SHOWN = 160


def quarantine(project: PipelineProject, parsed: argparse.Namespace, argv: Sequence[str]) -> int:
    """Answer one action of the verb; ``argv``: what stands behind ``quarantine replay`` on the command line."""
    if parsed.action == "list":
        return _list(project, as_json=parsed.as_json)
    if parsed.action == "show":
        return _show(project, parsed)
    if parsed.action == "discard":
        return _discard(project, parsed)
    become_program("replay_quarantine.py", list(argv))
    return 1


def quarantine_of(project: PipelineProject, table: str) -> Place:
    """The folder of a table's quarantine; raises UnknownQuarantinedRow where the table has none, TableMoved where it has another name."""
    manifest = stored_manifest(project)
    places = {e.name: quarantine_location(manifest, project.warehouse, e.name) for e in manifest.tables}
    name = declared_name(manifest, table, places)
    path = places.get(name)
    if path is None:
        refuse_old_names(project.state_folder, {name: None})
        quarantining = [name for name, place in places.items() if place is not None]
        raise UnknownQuarantinedRow(
            f"{table!r} is not a table with a rule that quarantines.",
            where=project.folder,
            remedy=f"Those with one: {', '.join(quarantining) or 'none; use dp.expect_or_quarantine'}.",
        )
    return path


def _list(project: PipelineProject, *, as_json: bool) -> int:
    manifest = stored_manifest(project)
    groups: list[dict[str, Any]] = []
    for entry in manifest.tables:
        path = quarantine_location(manifest, project.warehouse, entry.name)
        groups += [{"table": entry.name, **vars(summary)} for summary in summaries(path)] if path else []
    if as_json:
        print_json({"pipeline_id": project.pipeline_id, "quarantine": groups})
        return 0
    names = ("table", "reason", "flow", "status", "rows", "first", "last")
    print_table(
        f"{project.pipeline_id}: quarantined rows",
        names,
        [tuple(_shown(row[name]) for name in names) for row in groups],
    )
    return 0


def _show(project: PipelineProject, parsed: argparse.Namespace) -> int:
    chosen = row_filter(parsed)
    status = RowStatus(parsed.status) if parsed.status else None
    path = quarantine_of(project, parsed.table)
    _check_names(project, path, parsed)
    quarantined = rows(path, RowFilter(chosen.ids, chosen.flow, chosen.rule, status), parsed.limit)
    if parsed.as_json:
        heading = {"pipeline_id": project.pipeline_id, "table": parsed.table}
        print_json({**heading, "rows": [_as_json(row) for row in quarantined]})
        return 0
    columns = ("id", "status", "broken rules", "flow", "batch", "source", "row")
    shown = [
        (
            *(row[c.ID][:8], row[c.STATUS], row[c.REASON], row[c.FLOW], row[c.BATCH], _position(row)),
            redact_text(row[c.ROW] or "")[:_SHOWN],
        )
        for row in quarantined
    ]
    print_table(f"{parsed.table}: quarantined rows", columns, shown)
    return 0


def _discard(project: PipelineProject, parsed: argparse.Namespace) -> int:
    path = quarantine_of(project, parsed.table)
    chosen = row_filter(parsed)
    if chosen == RowFilter() and not parsed.everything:
        raise UsageError("Say which rows.", remedy="Give --id, --rule or --flow, or --all for all held rows.")
    _check_names(project, path, parsed)
    manifest = stored_manifest(project)
    names = [entry.name for entry in manifest.tables if entry.name.lower() == parsed.table.lower()]
    refuse_foreign_tables(project, manifest, names)
    action_id = str(uuid.uuid4())
    # A running update might quarantine rows again that are marked here.
    with project.lease(action_id):
        record_begun(project)
        moment = datetime.now(UTC)
        begin_action(project.state_folder, _begun(action_id, parsed, next(iter(names), parsed.table), moment))
        done = discard(path, chosen, parsed.reason, moment)
        at = done.at.isoformat()
        if not (done.before and is_discard_recorded(project.state_folder, at)):
            _record_discard(project, action_id, parsed, done)
        end_action(project.state_folder, action_id)
    count = 0 if done.before else done.rows
    if parsed.as_json:
        print_json({"pipeline_id": project.pipeline_id, "table": parsed.table, "discarded": count})
    else:
        before = "" if count else " Those that match were discarded before, for the same reason."
        print(f"{count} rows of {parsed.table} are marked as discarded.{before}")
    return 0


def _begun(action_id: str, parsed: argparse.Namespace, table: str, moment: datetime) -> BegunAction:
    reason = redact_text(parsed.reason)
    details = {"reason": reason, "where": row_filter(parsed).where, "at": moment.isoformat()}
    message = f"quarantined rows of {table} were discarded: {reason}"
    return BegunAction(action_id, table, message, user_action(DISCARD, _user(), **details)["user_action"])


def _record_discard(
    project: PipelineProject, action_id: str, parsed: argparse.Namespace, done: Discarded
) -> None:
    where = row_filter(parsed).where
    details = {"rows": done.rows, "reason": parsed.reason, "where": where, "at": done.at.isoformat()}
    with EventLogWriter(project.state_folder, project.pipeline_id, project.spec.name, action_id) as events:
        events.emit(
            "user_action",
            f"{done.rows} quarantined rows of {parsed.table} were discarded: {parsed.reason}",
            dataset=parsed.table,
            details=user_action(DISCARD, _user(), **details),
        )


def _check_names(project: PipelineProject, path: Place, parsed: argparse.Namespace) -> None:
    """Raise UsageError for a flow or a rule that neither the pipeline nor the quarantine knows."""
    manifest = stored_manifest(project)
    entry = next(entry for entry in manifest.tables if entry.name.lower() == parsed.table.lower())
    flows = [flow.name for flow in manifest.flows_into(entry.name)]
    check_row_filter(row_filter(parsed), path, flows, [rule.name for rule in entry.expectations])


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run under a number that has no name
        return "unknown"


def _as_json(row: dict[str, Any]) -> dict[str, Any]:
    """A row as JSON values: what JSON texts hold as such, bytes as text."""
    values = {name.removeprefix("_"): value for name, value in row.items()}
    for name in ("row", "source_record"):
        values[name] = json.loads(values[name]) if values[name] is not None else None
    value = values["source_value"]
    return {**values, "source_value": value.decode("utf-8", "replace") if value is not None else None}


def _position(row: dict[str, Any]) -> str:
    if row[c.TOPIC] is not None:
        return f"{row[c.TOPIC]}[{row[c.PARTITION]}] {row[c.OFFSET]}"
    return (row[c.FILE] or "").rpartition("/")[2]


def _shown(value: Any) -> Any:
    return f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else value
