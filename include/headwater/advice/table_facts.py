"""Tables on disk, from their logs: files, partitions, the newest commits, how their columns changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from headwater.advice.facts import CommitFact, TableFact
from headwater.definitions.dataset import DatasetKind
from headwater.definitions.expectation import ViolationAction
from headwater.definitions.platform_settings import is_platform_setting
from headwater.definitions.source import ANY_FILE_AGE
from headwater.delta_log.listed_files import listed_files
from headwater.delta_log.versions import read_commit, table_head
from headwater.errors import SourceUnreachable
from headwater.graph.manifest import DatasetEntry, Manifest
from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place

_COMMITS = 5
_STEPS_BACK = 50
_MANAGED = "pipelines.autooptimize.managed"
Record = Mapping[str, Any]


def table_fact(
    manifest: Manifest,
    warehouse: Place,
    entry: DatasetEntry,
    dropped: int,
    changes: Sequence[Mapping[str, str]],
) -> TableFact | None:
    """A table as it is; None where it is not there yet or its log can't be read.

    Args:
        dropped: rows that its rules kept out in the newest batches.
        changes: its columns at the updates of today's definition, oldest first.
    """
    table = manifest.table_path(warehouse, entry.name)
    opened = _opened(table)
    if opened is None:
        return None
    sizes, partitions = opened
    drift, added = _drift(changes)
    flows = manifest.flows_into(entry.name)
    properties = {
        key.lower(): value for key, value in entry.table_properties.items() if is_platform_setting(key)
    }
    return TableFact(
        entry.name,
        entry.kind is DatasetKind.STREAMING_TABLE,
        tuple((rule.name, rule.constraint, ViolationAction(rule.action)) for rule in entry.expectations),
        _guarded(manifest, entry.name),
        len(sizes),
        sum(sizes),
        partitions,
        entry.partition_columns,
        entry.cluster_columns,
        _commits(table),
        properties.get(_MANAGED, "true").lower() != "false",
        dict(entry.table_properties),
        {column.name: column.type for column in entry.columns},
        drift,
        added,
        dropped,
        any(is_cloud_files(source.options) for flow in flows for source in flow.sources),
        any(not flow.output_mode.only_adds_rows for flow in flows),
        entry.comment,
    )


def is_cloud_files(options: Mapping[str, str]) -> bool:
    """Whether a read of files is one by ``cloudFiles``: it always says both of these to Spark."""
    lowered = {key.lower(): value for key, value in options.items()}
    return "recursivefilelookup" in lowered and lowered.get("maxfileage", ANY_FILE_AGE) != ANY_FILE_AGE


def bytes_per_row(table: Place) -> float | None:
    """How many bytes a row takes in the newest commit that added some; None where that is not known."""
    head = _head(table)
    for version in range(head, max(-1, head - _STEPS_BACK), -1):
        commit = read_commit(table, version)
        if commit is None:
            return None
        rows = sum(file.records or 0 for file in commit.added)
        if rows:
            return sum(file.bytes for file in commit.added) / rows
    return None


def schemas_over_time(
    records: Iterable[Record], updates: frozenset[str] | None
) -> dict[str, list[dict[str, str]]]:
    """The columns of each dataset at each update of today's definition, from ``dataset_definition`` records."""
    schemas: dict[str, list[dict[str, str]]] = {}
    for record in records:
        body = record["details"].get("dataset_definition")
        if body and (updates is None or record["origin"]["update_id"] in updates):
            columns = {column["name"]: column["type"] for column in body.get("schema") or ()}
            schemas.setdefault(record["origin"]["dataset_name"], []).append(columns)
    return schemas


def _opened(table: Place) -> tuple[list[int], int] | None:
    """Sizes of the files, and how many partitions have some."""
    from deltalake.exceptions import DeltaError

    try:
        rows = listed_files(delta_table(table))
    except (DeltaError, OSError):
        return None
    names = [name for name in (rows[0] if rows else {}) if name.startswith("partition.")]
    return [int(row["size_bytes"]) for row in rows], len(
        {tuple(str(row[name]) for name in names) for row in rows}
    )


def _head(table: Place) -> int:
    try:
        head = table_head(table)
    except SourceUnreachable:
        return -1
    return head.version if head else -1


def _commits(table: Place) -> tuple[CommitFact, ...]:
    head = _head(table)
    commits: list[CommitFact] = []
    for version in range(head, max(-1, head - _STEPS_BACK), -1):
        commit = read_commit(table, version)
        if commit is None or len(commits) == _COMMITS:
            break
        if commit.added:
            commits.append(CommitFact(len(commit.added), sum(file.bytes for file in commit.added)))
    return tuple(commits[::-1])


def _guarded(manifest: Manifest, dataset: str) -> bool:
    """Whether a rule stands on the dataset, on what it is made of, or on what reads it directly."""
    above, waiting = set(), [dataset]
    while waiting:
        name = waiting.pop()
        if name not in above:
            above.add(name)
            waiting += [each for flow in manifest.flows_into(name) for each in flow.inputs]
    readers = {flow.target for flow in manifest.flows if dataset in flow.inputs}
    return any(entry.expectations for entry in manifest.datasets if entry.name in above | readers)


def _drift(changes: Sequence[Mapping[str, str]]) -> tuple[tuple[str, ...], dict[str, str]]:
    """How the columns changed, as sentences, and the columns that came."""
    lines: list[str] = []
    added: dict[str, str] = {}
    for number, (before, after) in enumerate(pairwise(changes), start=2):
        came = {name: kind for name, kind in after.items() if name not in before}
        gone = [name for name in before if name not in after]
        other = [
            f"{name} from {before[name]} to {kind}"
            for name, kind in after.items()
            if before.get(name, kind) != kind
        ]
        parts = [
            *([f"{', '.join(came)} came"] if came else []),
            *([f"{', '.join(gone)} went"] if gone else []),
            *([f"{', '.join(other)} changed"] if other else []),
        ]
        added |= came
        if parts:
            lines.append(f"update {number} of {len(changes)}: {'; '.join(parts)}")
    return tuple(lines), added
