"""What a table's own log says: whether there is a table, and which flows wrote to it. It outlives a lost checkpoint.

Decision 0141.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.delta_log.commits import (
    CommitHead,
    commit_file,
    commit_head,
    commit_versions,
)
from headwater.delta_log.conditions import log_unreadable
from headwater.errors import SourceUnreachable
from headwater.storage.delta_tables import table_log
from headwater.storage.place import Place

if TYPE_CHECKING:
    from deltalake import DeltaTable

# With this property Delta forgets which batches a table has, id by id, so that a repeated batch would look new.
TRANSACTION_RETENTION = "delta.setTransactionRetentionDuration"


def table_exists(table: Place) -> bool:
    """Whether a Delta table is there. A folder for its log alone is none: a driver killed in its first commit leaves it."""
    log = table / "_delta_log"
    return log.is_dir() and any(path.name[:20].isdigit() for path in log.iterdir())


def missing_versions(table: Place) -> list[int]:
    """Versions that are missing between others in a table's log; what retention takes at its beginning is not a hole."""
    there = commit_versions(table)
    return sorted(set(range(there[0], there[-1])) - set(there)) if there else []


@dataclass(frozen=True)
class FlowCommit:
    """A commit that a flow made. ``transaction``: id and batch; ``rows``: what it wrote, where the log says so.

    ``end_offsets``: where the batch ended at each source; only commits of batches that did not go through the
    Delta sink itself have it.
    """

    version: int
    epoch: int
    transaction: tuple[str, int] | None
    rows: int | None
    end_offsets: tuple[Any, ...] | None = None


def readable_table_id(table: Place) -> str | None:
    """The id that Delta gave the table when it was created; None where there is none.

    Raises:
        SourceUnreachable: the table's log can't be read.
    """
    opened = _opened(table)
    return str(opened.metadata().id) if opened is not None else None


def readable_log(table: Place) -> DeltaTable | None:
    """The table's newest version, for what its log says; None where there is none.

    Raises:
        SourceUnreachable: the table's log can't be read.
    """
    return _opened(table)


def table_id(table: Place) -> str | None:
    """As ``readable_table_id``, and None also where the log can't be read: for checks, one of which says so."""
    try:
        return readable_table_id(table)
    except SourceUnreachable:
        return None


def has_transaction(table: Place, application: str, batch_id: int) -> bool:
    """Whether a Delta table has a batch, or a later one, of this transaction id.

    Raises:
        SourceUnreachable: the table's log can't be read; taking that for "no" would write a batch twice.
    """
    opened = _opened(table)
    version = last_batch(opened, table, application) if opened is not None else None
    return version is not None and version >= batch_id


def transaction_version(table: Place, application: str) -> int | None:
    """The last batch that a Delta table has under a transaction id; None where it has none, or its log can't be read."""
    try:
        opened = _opened(table)
    except SourceUnreachable:
        return None  # other checks report a damaged log
    return last_batch(opened, table, application) if opened is not None else None


def _opened(table: Place) -> DeltaTable | None:
    """The table's newest version, None where there is no table."""
    if not table_exists(table):
        return None
    from deltalake.exceptions import DeltaError

    try:
        return table_log(table)
    except DeltaError as error:
        raise log_unreadable(error, table) from None


def last_batch(opened: Any, table: Place, application: str) -> int | None:
    """As ``transaction_version``, of a table that is open already (a delta-rs ``DeltaTable``).

    A table with the property TRANSACTION_RETENTION forgets ids after a time. Its commits still name the batch.
    """
    version: int | None = opened.transaction_version(application)
    if version is None and _retention(opened) is not None:
        batches = (
            commit_head(commit_file(table, number)).transactions.get(application)
            for number in reversed(commit_versions(table))
        )
        version = next((batch for batch in batches if batch is not None), None)
    return version


def transaction_retention(table: Place) -> str | None:
    """For how long a table remembers which batches it has, as its property says; None where it never forgets."""
    try:
        opened = _opened(table)
    except SourceUnreachable:
        return None
    return _retention(opened) if opened is not None else None


def _retention(opened: Any) -> str | None:
    configuration: Mapping[str, str] = opened.metadata().configuration
    return configuration.get(TRANSACTION_RETENTION)


def head_version(table: Place) -> int:
    """The newest version in a table's log, -1 where there is none; a checkpoint whose commit is gone counts."""
    log = table / "_delta_log"
    names = [path.name for path in log.iterdir()] if log.is_dir() else []
    return max(
        (int(n[:20]) for n in names if n[:20].isdigit() and n.endswith((".json", ".parquet"))), default=-1
    )


def flow_commits(table: Place, pipeline_id: str, flow: str) -> list[FlowCommit]:
    """The commits of a flow that the table's log still has, oldest first."""
    commits = []
    for version, head in _heads(table, commit_versions(table)):
        metadata = head.metadata
        epoch = metadata.get("epoch")
        if (
            metadata.get("pipeline") != pipeline_id
            or metadata.get("flow") != flow
            or not isinstance(epoch, int)
        ):
            continue
        ends = metadata.get("end_offsets")
        rows = head.info.get("operationMetrics", {}).get("numOutputRows")
        commits.append(
            FlowCommit(
                version,
                epoch,
                next(reversed(head.transactions.items()), None),
                int(rows) if rows is not None else None,
                tuple(ends) if isinstance(ends, list) else None,
            )
        )
    return commits


def epochs_written(table: Place, pipeline_id: str, flow: str) -> list[int]:
    """The epochs under which a flow has committed to a table, ascending, as far back as the log reaches."""
    return sorted({commit.epoch for commit in flow_commits(table, pipeline_id, flow)})


def commits_of(table: Place, pipeline_id: str, flow: str) -> list[Mapping[str, Any]]:
    """The user metadata of a flow's commits to a table, oldest first, as far back as the log reaches."""
    metadata = [head.metadata for _, head in _heads(table, commit_versions(table))]
    return [m for m in metadata if m.get("pipeline") == pipeline_id and m.get("flow") == flow]


def kept_out_since(table: Place, pipeline_id: str, flow: str, epoch: int, version: int) -> bool:
    """Whether commits of a flow's epoch behind a version say that rows, or files, of their batches were quarantined."""
    counts = _counts_since(table, pipeline_id, flow, epoch, version, "quality")
    return any(count.get("quarantined") or count.get("files") for count in counts)


def deletes_kept_since(table: Place, pipeline_id: str, flow: str, epoch: int, version: int) -> bool:
    """Whether commits of a flow's epoch behind a version say that deletes of their change events were remembered beside the table."""
    counts = _counts_since(table, pipeline_id, flow, epoch, version, "changes")
    return any(count.get("tombstones") for count in counts)


def _counts_since(
    table: Place, pipeline_id: str, flow: str, epoch: int, version: int, name: str
) -> Iterator[Mapping[str, Any]]:
    for _, head in _heads(table, (number for number in commit_versions(table) if number > version)):
        about, counts = head.metadata, head.metadata.get(name)
        whose = (about.get("pipeline"), about.get("flow"), about.get("epoch"))
        if whose == (pipeline_id, flow, epoch) and isinstance(counts, dict):
            yield counts


def last_pipeline(table: Place) -> str | None:
    """The pipeline that made the newest commit with a pipeline's id in the table's log; None where there is none."""
    for _, head in _heads(table, reversed(commit_versions(table))):
        pipeline = head.metadata.get("pipeline")
        if isinstance(pipeline, str):
            return pipeline
    return None


def _heads(table: Place, versions: Iterable[int]) -> Iterator[tuple[int, CommitHead]]:
    for version in versions:
        # Delta cleans old commits away while others read. What a damaged one said is not known: the checks before a start name it.
        with suppress(FileNotFoundError, ValueError):
            yield version, commit_head(commit_file(table, version))
