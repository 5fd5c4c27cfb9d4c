"""The rows that versions of a Delta table added, as a stream of the table reads them."""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from urllib.parse import unquote

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F

from headwater.backfills.conditions import InvalidRange
from headwater.delta_log.commits import commit_file, data_files, read_actions
from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place
from headwater_spark.plans.names import quoted


def added_rows(
    session: SparkSession, table: Place, first: int, last: int, *, skip_changes: bool = False
) -> DataFrame:
    """The rows that the versions ``first`` to ``last`` appended, each file read as it was when it was added.

    ``skip_changes``: skip versions that removed rows.

    Raises:
        InvalidRange: a version is no longer in the log, or removed rows.
    """
    files: dict[str, int] = {}
    for version in range(first, last + 1):
        added, removed = _data_files(table, version)
        if removed and skip_changes:
            continue
        if removed:
            raise InvalidRange(
                f"Version {version} of the table removed rows: a range that includes it did not only add rows.",
                where=table,
                remedy="Give a range of versions that only append, or read with skipChangeCommits, or backfill by event time.",
            )
        files |= dict.fromkeys(added, version)
    current = _files_at(table, last)
    by_version: dict[int, list[str]] = defaultdict(list)
    for name, version in files.items():
        # A file that was compacted since is read in the version that added it.
        by_version[last if name in current else version].append(name)
    parts = [_part(session, table, version, names) for version, names in sorted(by_version.items())]
    nothing = _part(session, table, last, [])
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts, nothing)


def rows_of_commit(session: SparkSession, table: Place, version: int) -> DataFrame:
    """The rows that one version added."""
    return _part(session, table, version, _data_files(table, version)[0])


def _part(session: SparkSession, table: Place, version: int, names: list[str]) -> DataFrame:
    frame = DataFrameReader(session).format("delta").option("versionAsOf", str(version)).load(str(table))
    columns = [F.col(quoted(name)) for name in frame.columns]
    if not names:
        return frame.where(F.lit(False))
    # A file's name is unique within its table; its path has several spellings.
    file = F.element_at(F.split(F.col("_metadata.file_path"), "/"), -1)
    return frame.where(file.isin([name.rpartition("/")[2] for name in names])).select(*columns)


def _data_files(table: Place, version: int) -> tuple[list[str], bool]:
    try:
        actions = read_actions(commit_file(table, version))
    except FileNotFoundError:
        raise InvalidRange(
            f"The log of the table no longer has version {version}.",
            where=table,
            remedy="Give later versions, or backfill by event time.",
        ) from None
    added = [unquote(action["path"]) for action in data_files(actions, "add")]
    return added, bool(data_files(actions, "remove"))


def _files_at(table: Place, version: int) -> set[str]:
    # delta-rs returns paths below the table, or URIs.
    uris = delta_table(table, version=version).file_uris()
    return {unquote(uri.removeprefix("file://").removeprefix(f"{table}/")) for uri in uris}
