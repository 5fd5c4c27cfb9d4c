"""Filters with unknown names: refused with the nearest name, not answered with an empty list."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

from headwater.errors import ManifestNotFound, UsageError
from headwater.event_log.details import EVENT_TYPES
from headwater.event_log.reader import LogNames, log_names
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.spelled_names import declared_name
from headwater.graph.stored_manifest import stored_manifest
from headwater.quarantine.columns import UNREADABLE_FILE
from headwater.quarantine.table import RowFilter, known_names
from headwater.storage.place import Place
from headwater.suggestions import did_you_mean, nearest

_log = logging.getLogger(__name__)
# How many names are listed where none is similar.
_LISTED = 12


def check_known(option: str, given: str | None, known: Collection[str], what: str) -> None:
    """Raise UsageError where ``given`` is not ``known``; where nothing is known, anything is accepted.

    Args:
        option: as it is typed, ``--flow``.
        what: what is wrong then, ``the pipeline has no such flow``.
    """
    if given is None or not known or given in known:
        return
    listed = ", ".join(list(known)[:_LISTED]) + (", ..." if len(known) > _LISTED else "")
    raise UsageError(
        f"{option} {given}: {what}.",
        remedy=did_you_mean(nearest(given, known), f"There is: {listed}."),
    )


def checked_filters(project: PipelineProject, filters: Mapping[str, Any]) -> dict[str, Any]:
    """The filters of ``events``, an update's id in full where only its beginning was given.

    Raises:
        UsageError: a flow, a dataset, a type or an update that neither the pipeline nor its log knows; a span that ends
            before it begins.
    """
    if filters.get("since") and filters.get("until") and filters["since"] >= filters["until"]:
        raise UsageError("--since is not before --until: the span is empty.", remedy="Turn them round.")
    names = ("flow", "dataset", "update_id", "request_id", "event_type")
    if not any(filters.get(name) for name in names):
        return dict(filters)
    logged = log_names(project.state_folder)
    flows, datasets = _defined(project)
    flows, datasets = [*flows, *logged.flows], [*datasets, *logged.datasets]
    filters = {
        **filters,
        "flow": as_declared(project, filters.get("flow"), flows),
        "dataset": as_declared(project, filters.get("dataset"), datasets),
    }
    check_known("--flow", filters["flow"], flows, "the pipeline has no such flow")
    check_known("--dataset", filters["dataset"], datasets, "the pipeline has no such dataset")
    for name in filters.get("event_type") or ():
        check_known("--type", name, sorted({*EVENT_TYPES, *logged.types}), "there is no such type of event")
    if (request := filters.get("request_id")) and request not in logged.requests:
        # Not an error: a script that waits for a run asks before it has begun.
        about = {"pipeline": project.pipeline_id}
        _log.warning("The log has no record of the request %s (yet).", request, extra=about)
    given = filters.get("update_id")
    return {**filters, "update_id": _whole_id(given, logged) if given else None}


def check_dataset_with_rules(project: PipelineProject, dataset: str, seen: Collection[str]) -> None:
    """Raise UsageError for a dataset that has no rule, neither now nor in the log (``seen``)."""
    try:
        entries = stored_manifest(project).datasets
    except ManifestNotFound:
        entries = ()
    known = [*(entry.name for entry in entries if entry.expectations), *seen]
    check_known("--dataset", dataset, list(dict.fromkeys(known)), "no dataset of that name has rules")


def check_row_filter(chosen: RowFilter, path: Place, flows: Collection[str], rules: Collection[str]) -> None:
    """Raise UsageError for a flow or a rule that neither a table (``flows``, ``rules``) nor its quarantine knows."""
    if chosen.flow is None and chosen.rule is None:
        return
    held_flows, held_rules = known_names(path)
    known = list(dict.fromkeys([*flows, *held_flows]))
    check_known("--flow", chosen.flow, known, "neither the table nor its quarantine knows such a flow")
    known = list(dict.fromkeys([*rules, *held_rules, UNREADABLE_FILE]))
    check_known("--rule", chosen.rule, known, "neither the table nor its quarantine knows such a rule")


def _whole_id(prefix: str, logged: LogNames) -> str:
    matches = [update for update in logged.updates if update.startswith(prefix)]
    if prefix in matches or not logged.updates:
        return prefix
    if len(matches) == 1:
        return matches[0]
    raise UsageError(
        f"--update-id {prefix}: {f'{len(matches)} update ids begin like this' if matches else 'the log knows no such update'}.",
        remedy=f"Give more of it: {', '.join(matches[:_LISTED])}." if matches
        else f"The newest is {logged.updates[-1]}; `headwater events --type create_update` lists them.",
    )  # fmt: skip


def as_declared(
    project: PipelineProject, given: str | None, known: Collection[str] | None = None
) -> str | None:
    """A name as the pipeline or its log spells it, where letter case, schema or ``LIVE.`` are all that differs."""
    try:
        manifest = stored_manifest(project)
    except ManifestNotFound:
        return given
    return None if given is None else declared_name(manifest, given, known)


def _defined(project: PipelineProject) -> tuple[list[str], list[str]]:
    try:
        manifest = stored_manifest(project)
    except ManifestNotFound:
        return [], []
    return [flow.name for flow in manifest.flows], [entry.name for entry in manifest.datasets]
