"""Where batches ended, as it is kept outside the checkpoint: in the event log, and in the table's own commits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from headwater.checkpoints.flow_identity import FlowIdentity
from headwater.delta_log.table_history import flow_commits
from headwater.event_log.reader import events
from headwater.preflight.flow_start import Positions
from headwater.storage.place import Place


def known_positions(
    state_folder: Place, identity: FlowIdentity, flow: str, table: Place | None, epoch: int
) -> dict[int, Positions]:
    """The end offsets of an epoch's batches, one text a source, by batch.

    A commit of the Delta sink itself does not say where its batch ended; the event log does.
    """
    positions: dict[int, Positions] = {}
    for record in _batch_records(state_folder, identity, flow, epoch):
        ends = record["details"]["flow_progress"].get("end_offsets")
        position = _texts(ends)
        if position is not None:
            positions[int(record["origin"]["batch_id"])] = position
    for commit in flow_commits(table, *identity.names) if table is not None else ():
        if commit.epoch == epoch and commit.transaction is not None and commit.end_offsets is not None:
            position = _texts(commit.end_offsets)
            if position is not None:
                positions[commit.transaction[1]] = position
    return positions


def rows_by_batch(
    state_folder: Place, identity: FlowIdentity, flow: str, table: Place | None, epoch: int
) -> dict[int, int]:
    """How many rows each batch of an epoch wrote, as far as it is known."""
    counts: dict[int, int] = {}
    for record in _batch_records(state_folder, identity, flow, epoch):
        rows = record["details"]["flow_progress"].get("metrics", {}).get("num_output_rows")
        if rows is not None:
            counts[int(record["origin"]["batch_id"])] = int(rows)
    for commit in flow_commits(table, *identity.names) if table is not None else ():
        if commit.epoch == epoch and commit.transaction is not None and commit.rows is not None:
            counts.setdefault(commit.transaction[1], commit.rows)
    return counts


def _batch_records(
    state_folder: Place, identity: FlowIdentity, flow: str, epoch: int
) -> Iterable[Mapping[str, Any]]:
    # Before its table was renamed, the flow was recorded under another name.
    former = [identity.flow] if identity.pipeline == state_folder.name and identity.flow != flow else []
    for name in (*former, flow):
        yield from _records_of(state_folder, name, epoch)


def _records_of(state_folder: Place, flow: str, epoch: int) -> Iterable[Mapping[str, Any]]:
    for record in events(state_folder, flow=flow, level="METRICS", event_type="flow_progress"):
        origin = record["origin"]
        if (
            origin["batch_id"] is not None
            and (origin["epoch"] or 0) == epoch
            and "flow_progress" in record["details"]
        ):
            yield record


def _texts(ends: Any) -> Positions | None:
    if not isinstance(ends, list | tuple) or not ends:
        return None
    return tuple(_text(end) for end in ends)


def _text(end: Any) -> str | None:
    if end is None or end in ("-", "null", "None"):
        return None
    return end if isinstance(end, str) else json.dumps(end, separators=(",", ":"))
