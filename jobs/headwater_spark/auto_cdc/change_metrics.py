"""What happened to a batch's events, in the metadata of its commit: so it survives a crash.

Decision 0074.
"""

from __future__ import annotations

from typing import Any

from headwater_spark.auto_cdc.change_events import ChangeBatch
from headwater_spark.delta_writes.batch_commits import BatchCommit
from headwater_spark.delta_writes.batch_transaction import BatchTransaction

_KEY = "changes"


def with_counts(
    transaction: BatchTransaction, batch: ChangeBatch, *, upserts: int | None, tombstones: int
) -> BatchTransaction:
    """The transaction with a batch's counts.

    Args:
        upserts: rows that the batch would write if no newer ones were known; None where every event counts.
        tombstones: deletes that go to the side table.
    """
    superseded = batch.received - batch.remaining
    counts = {"superseded": superseded, "ties": batch.ties, "upserts": upserts, "tombstones": tombstones}
    return transaction.with_metadata(**{_KEY: counts})


def change_metrics(commit: BatchCommit | None) -> dict[str, Any]:
    """The counts of a commit, as metrics of the event log; empty where it is not one of AUTO CDC."""
    counts = commit.metadata.get(_KEY) if commit is not None else None
    if commit is None or not isinstance(counts, dict):
        return {}
    upserts = counts.get("upserts")
    late = 0 if upserts is None else max(0, upserts - (commit.upserted or 0))
    return {
        "num_late_events": late,
        "num_superseded_events": counts.get("superseded"),
        "num_tied_events": counts.get("ties"),
        "num_tombstones": counts.get("tombstones"),
    }


def engine_details(commit: BatchCommit | None) -> dict[str, Any]:
    """Which engine wrote a commit of AUTO CDC, and why it was not the fast path; empty where it does not say."""
    metadata = commit.metadata if commit is not None else {}
    return {name: str(metadata[name]) for name in ("engine", "engine_reason") if name in metadata}
