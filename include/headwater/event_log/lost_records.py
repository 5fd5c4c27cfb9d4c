"""Records that the event log had, or was about to have, and that no commit of it names any more."""

from __future__ import annotations

from headwater.delta_log.commits import is_commit, log_folder
from headwater.delta_log.damaged_commits import damaged_commit
from headwater.delta_log.listed_files import listed_files
from headwater.event_log.event import event_table
from headwater.event_log.sequence import greatest_sequence
from headwater.storage.delta_tables import table_log
from headwater.storage.place import Place
from headwater.storage.walking import files_below, readable

# Stores keep the time of a file in whole seconds.
_SAME_MOMENT = 1.0


def lost_records(state_folder: Place) -> list[Place]:
    """Files with records that are newer than all that the log has: a commit that named them is gone, or never came.

    Nobody may write meanwhile. Only files that are at least as new as the newest commit, and that the log does not have, are opened.
    """
    table = event_table(state_folder)
    files = dict(files_below(table))
    commits = [file for file in files if file.parent == log_folder(table) and is_commit(file.name)]
    if not commits:
        return []
    since = files[max(commits, key=lambda file: file.name)].st_mtime - _SAME_MOMENT
    young = [
        file
        for file, about in files.items()
        if file.parent == table and file.name.endswith(".parquet") and about.st_mtime >= since
    ]
    unnamed = _unnamed(table, young) if young else []
    known = greatest_sequence(table) if unnamed else 0
    return sorted((file for file in unnamed if _first_sequence(file) > known), key=lambda file: file.name)


def _unnamed(table: Place, files: list[Place]) -> list[Place]:
    """Those that the log does not have; none where the log can't be read, which is said by who reads it."""
    from deltalake.exceptions import DeltaError

    try:
        named = {str(row["path"]) for row in listed_files(table_log(table))}
    except DeltaError:
        return []
    unnamed = [file for file in files if file.name not in named]
    return unnamed if unnamed and damaged_commit(table) is None else []


def _first_sequence(file: Place) -> int:
    """The number of a file's first record; 0 where it has none, or can't be read: then its writer did not come to its end."""
    import pyarrow as pa
    from pyarrow import compute, parquet

    try:
        rows = parquet.read_table(readable(file), columns=["sequence"])
    except (FileNotFoundError, pa.ArrowInvalid):
        return 0
    numbers = compute.struct_field(rows["sequence"], ["data_plane_id", "seq_no"])
    return int(compute.min(numbers).as_py() or 0)
