"""The rows that versions of a Delta table brought, as a stream of the table gives them."""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F

from headwater.backfills.conditions import InvalidRange
from headwater.delta_log.commits import commit_file, data_files, read_actions


def added_rows(
    session: SparkSession, table: Path, first: int, last: int, *, skip_changes: bool = False
) -> DataFrame:
    """The rows that the versions ``first`` to ``last`` appended, each file read as it was when it came.

    ``skip_changes``: leave out versions that took rows away.

    Raises:
        InvalidRange: a version is not in the log any more, or took rows away.
    """
    files: dict[str, int] = {}
    for version in range(first, last + 1):
        added, removed = _data_files(table, version)
        if removed and skip_changes:
            continue
        if removed:
            raise InvalidRange(
                f"Version {version} of the table took rows out: what a range with it brought is not a set of new rows.",
                where=table,
                remedy="Give a range of versions that only append, or read with skipChangeCommits, or backfill by event time.",
            )
        files |= dict.fromkeys(added, version)
    held = _files_at(table, last)
    by_version: dict[int, list[str]] = defaultdict(list)
    for name, version in files.items():
        # What a compaction has rewritten since is read in the version that brought it.
        by_version[last if name in held else version].append(name)
    parts = [_part(session, table, version, names) for version, names in sorted(by_version.items())]
    nothing = _part(session, table, last, [])
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts, nothing)


def rows_of_commit(session: SparkSession, table: Path, version: int) -> DataFrame:
    """The rows that one version added."""
    return _part(session, table, version, _data_files(table, version)[0])


def _part(session: SparkSession, table: Path, version: int, names: list[str]) -> DataFrame:
    frame = DataFrameReader(session).format("delta").option("versionAsOf", str(version)).load(str(table))
    columns = [F.col("`" + name.replace("`", "``") + "`") for name in frame.columns]
    if not names:
        return frame.where(F.lit(False))
    # A file's name is unique within its table; the folders before it are spelled in several ways.
    file = F.element_at(F.split(F.col("_metadata.file_path"), "/"), -1)
    return frame.where(file.isin([name.rpartition("/")[2] for name in names])).select(*columns)


def _data_files(table: Path, version: int) -> tuple[list[str], bool]:
    try:
        actions = read_actions(commit_file(table, version))
    except FileNotFoundError:
        raise InvalidRange(
            f"The log of the table does not have version {version} any more.",
            where=table,
            remedy="Give later versions, or backfill by event time.",
        ) from None
    added = [unquote(action["path"]) for action in data_files(actions, "add")]
    return added, bool(data_files(actions, "remove"))


def _files_at(table: Path, version: int) -> set[str]:
    from deltalake import DeltaTable

    # delta-rs gives paths below the table, or URIs.
    found = DeltaTable(str(table), version=version).file_uris()
    root = f"{table}/"
    return {unquote(uri.removeprefix("file://").removeprefix(root)) for uri in found}
