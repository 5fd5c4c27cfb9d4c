"""The rows of a range: as an Arrow table, without a JVM, or as the options of a read in Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.change_feed.change_range import ChangeRange
from headwater.change_feed.far_times import refuse_far_times
from headwater.errors import ChangeFeedBroken, SourceUnreachable
from headwater.storage.delta_tables import delta_errors, delta_table
from headwater.storage.place import Place

_FEED = "delta.enableChangeDataFeed"


@dataclass(frozen=True)
class SparkRead:
    """How Spark reads the rows of a range: plain values, so that they can be passed to a job.

    The rows of a change feed have Delta's columns ``_change_type``, ``_commit_version`` and ``_commit_timestamp``; those of
    a snapshot do not, as all are inserts.
    """

    path: str
    options: Mapping[str, str]
    format: str = "delta"

    def load(self, spark: Any) -> Any:
        """The DataFrame in a session."""
        return spark.read.format(self.format).options(**self.options).load(self.path)


def spark_read(table: Place, changes: ChangeRange) -> SparkRead:
    """How Spark reads the range; raises ChangeFeedBroken where the table keeps no change feed."""
    if changes.snapshot:
        return SparkRead(str(table), {"versionAsOf": str(changes.end_version)})
    if not _keeps_feed(table):
        raise _no_feed(changes)
    options = {
        "readChangeFeed": "true",
        "startingVersion": str(changes.start_version),
        "endingVersion": str(changes.end_version),
    }
    return SparkRead(str(table), options)


def arrow_table(table: Place, changes: ChangeRange) -> Any:
    """The rows of the range as a ``pyarrow.Table`` with Delta's columns of the change feed.

    A table without a change feed can be read as long as rows were only added to it.

    Raises:
        ChangeFeedBroken: if rows were changed and the table kept no change feed of it, its files are gone, or they have times that
            delta-rs would read as others.
        SourceUnreachable: if they may not be read.
        StoreUnreachable, StoreRefused: the store does not answer, or denies access.

    """
    import pyarrow as pa
    from deltalake.exceptions import DeltaError

    counts = changes.counts
    if not changes.snapshot and not _keeps_feed(table) and (changes.rewrites or counts.delete != 0):
        raise _no_feed(changes)
    try:
        with delta_errors(table):
            refuse_far_times(table, changes)
            if changes.snapshot:
                return _snapshot(table, changes)
            feed = delta_table(table).load_cdf(
                starting_version=changes.start_version, ending_version=changes.end_version
            )
            return pa.table(feed.read_all())
    except PermissionError as error:
        raise SourceUnreachable(
            f"The files of {changes.table} may not be read: {error}", where=table
        ) from None
    except (DeltaError, OSError) as error:
        raise _unreadable(error, table, changes) from None
    except Exception as error:
        # delta-rs has no class for a data file that is gone or damaged.
        if type(error) is not Exception:
            raise
        raise _unreadable(error, table, changes) from None


def _unreadable(error: Exception, table: Place, changes: ChangeRange) -> ChangeFeedBroken:
    return ChangeFeedBroken(
        f"The versions {changes.start_version} to {changes.end_version} of {changes.table} can't be read: {error}",
        where=table,
        remedy="Read them with Spark where delta-rs can't. Where files are gone, the table was vacuumed too early.",
    )


def _snapshot(table: Place, changes: ChangeRange) -> Any:
    import pyarrow as pa
    from deltalake import QueryBuilder

    source = delta_table(table, version=changes.end_version)
    rows = pa.table(QueryBuilder().register("rows", source).execute("select * from rows").read_all())
    moment = pa.scalar(changes.committed_at).cast(pa.timestamp("ms", tz="UTC"))
    for name, value in (
        ("_change_type", pa.scalar("insert")),
        ("_commit_version", pa.scalar(changes.end_version, pa.int64())),
        ("_commit_timestamp", moment),
    ):
        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows


def _keeps_feed(table: Place) -> bool:
    configuration = delta_table(table).metadata().configuration
    return str(configuration.get(_FEED, "false")).lower() == "true"


def _no_feed(changes: ChangeRange) -> ChangeFeedBroken:
    return ChangeFeedBroken(
        f"{changes.table} keeps no change feed, so the changes of versions {changes.start_version} to "
        f"{changes.end_version} can't be read.",
        remedy=f"Set {_FEED}=true on the table (table_properties of its definition), and start again from its content.",
    )
