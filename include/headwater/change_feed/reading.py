"""The rows of a range: as an Arrow table, without a JVM, or as what Spark has to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.change_feed.change_range import ChangeRange
from headwater.errors import ChangeFeedBroken, SourceUnreachable

_FEED = "delta.enableChangeDataFeed"


@dataclass(frozen=True)
class SparkRead:
    """What gives the rows of a range in Spark: plain values, so that they can be handed to a job.

    The rows of a change feed have Delta's columns ``_change_type``, ``_commit_version`` and ``_commit_timestamp``; those of
    a snapshot do not, as all are inserts.
    """

    path: str
    options: Mapping[str, str]
    format: str = "delta"

    def load(self, spark: Any) -> Any:
        """The DataFrame in a session."""
        return spark.read.format(self.format).options(**self.options).load(self.path)


def spark_read(table: Path, wanted: ChangeRange) -> SparkRead:
    """How Spark reads the range; raises ChangeFeedBroken where the table keeps no change feed."""
    if wanted.snapshot:
        return SparkRead(str(table), {"versionAsOf": str(wanted.end_version)})
    if not _keeps_feed(table):
        raise _no_feed(wanted)
    options = {
        "readChangeFeed": "true",
        "startingVersion": str(wanted.start_version),
        "endingVersion": str(wanted.end_version),
    }
    return SparkRead(str(table), options)


def arrow_table(table: Path, wanted: ChangeRange) -> Any:
    """The rows of the range as a ``pyarrow.Table`` with Delta's columns of the change feed.

    A table without a change feed can be read as long as rows were only added to it.

    Raises:
        ChangeFeedBroken: if rows were changed and the table kept no change feed of it, or its files are gone.
        SourceUnreachable: if they may not be read.

    """
    import pyarrow as pa
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    counts = wanted.counts
    if not wanted.snapshot and not _keeps_feed(table) and (wanted.rewrites or counts.delete != 0):
        raise _no_feed(wanted)
    try:
        if wanted.snapshot:
            return _snapshot(table, wanted)
        feed = DeltaTable(str(table)).load_cdf(
            starting_version=wanted.start_version, ending_version=wanted.end_version
        )
        return pa.table(feed.read_all())
    except PermissionError as error:
        raise SourceUnreachable(
            f"The files of {wanted.table} may not be read: {error}", where=table
        ) from None
    except (DeltaError, OSError) as error:
        raise ChangeFeedBroken(
            f"The versions {wanted.start_version} to {wanted.end_version} of {wanted.table} can't be read: {error}",
            where=table,
            remedy="Read them with Spark where delta-rs can't. Where files are gone, the table was vacuumed too early.",
        ) from None


def _snapshot(table: Path, wanted: ChangeRange) -> Any:
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder

    source = DeltaTable(str(table), version=wanted.end_version)
    rows = pa.table(QueryBuilder().register("rows", source).execute("select * from rows").read_all())
    moment = pa.scalar(wanted.committed_at).cast(pa.timestamp("ms", tz="UTC"))
    for name, value in (
        ("_change_type", pa.scalar("insert")),
        ("_commit_version", pa.scalar(wanted.end_version, pa.int64())),
        ("_commit_timestamp", moment),
    ):
        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows


def _keeps_feed(table: Path) -> bool:
    from deltalake import DeltaTable

    configuration = DeltaTable(str(table)).metadata().configuration
    return str(configuration.get(_FEED, "false")).lower() == "true"


def _no_feed(wanted: ChangeRange) -> ChangeFeedBroken:
    return ChangeFeedBroken(
        f"{wanted.table} keeps no change feed, so the changes of versions {wanted.start_version} to "
        f"{wanted.end_version} can't be read.",
        remedy=f"Set {_FEED}=true on the table (table_properties of its definition), and begin anew with its content.",
    )
