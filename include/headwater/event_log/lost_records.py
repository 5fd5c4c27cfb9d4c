"""Records that the event log had, or was about to have, and that no commit of it names any more."""

from __future__ import annotations

from headwater.delta_log.commits import commit_file, newest_version
from headwater.delta_log.damaged_commits import damaged_commit
from headwater.event_log.event import event_table
from headwater.event_log.sequence import greatest_sequence
from headwater.storage.place import Place
from headwater.storage.walking import files_below, readable

# Stores keep the time of a file in whole seconds.
_SAME_MOMENT = 1.0


def lost_records(state_folder: Place) -> list[Place]:
    """Files with records that are newer than all that the log has: a commit that named them is gone, or never came.

    Nobody may write meanwhile. Only files that are at least as new as the newest commit are opened.
    """
    from deltalake.exceptions import DeltaError

    table = event_table(state_folder)
    newest = newest_version(table)
    if newest is None or damaged_commit(table) is not None:  # who reads the log says what is wrong with it
        return []
    since = commit_file(table, newest).stat().st_mtime - _SAME_MOMENT
    young = [
        file
        for file, about in files_below(table)
        if file.parent == table and file.name.endswith(".parquet") and about.st_mtime >= since
    ]
    try:
        known = greatest_sequence(table) if young else 0
    except DeltaError:
        return []
    return sorted((file for file in young if _first_sequence(file) > known), key=lambda file: file.name)


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
