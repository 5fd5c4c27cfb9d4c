"""The data files of a flow's table against its log: a stream appends beside files that are gone, and says nothing.

Decision 0241.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headwater.checkpoints.conditions import TableFilesGone
from headwater.checkpoints.flow_role import FlowRole
from headwater.delta_log.missing_files import missing_of_all, missing_of_newest
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.flow_start import FlowStart
from headwater.storage.place import Place

# So many files are the evidence of a finding at most.
MOST_NAMED = 10


def files_are_gone(start: FlowStart) -> Iterator[Damage]:
    """Files of the newest commit, in a deep check all: their rows count as read, and readers of the table fail."""
    if start.table is None or start.sink_id is None:
        return
    missing = missing_files(start.table, deep=start.deep)
    if missing:
        yield Damage(
            TableFilesGone(
                f"Files of {start.place} are gone or cut: {first_of(missing)}. Their rows were read before, and would be missing for good.",
                where=start.table,
                remedy="Restore them from a backup. If there is none, refill the table from its sources: "
                f"headwater run PIPELINE_DIR --full-refresh {start.dataset}",
            ),
            tuple(missing[:MOST_NAMED]),
            (Repair.FULL_REFRESH,),
            # The next refresh of a view computes it whole (``incremental.refresh_record``).
            blocks=start.role is not FlowRole.VIEW,
        )


def first_of(missing: Sequence[str]) -> str:
    """The first of some files, and how many more there are."""
    return missing[0] + (f", and {len(missing) - 1} more" if len(missing) > 1 else "")


def missing_files(table: Place, *, deep: bool) -> list[str]:
    """What is wrong with the files of the newest commit, or of the whole table; nothing where the log does not say which there are."""
    try:
        return missing_of_all(table) if deep else missing_of_newest(table)
    except (
        FileNotFoundError,
        ValueError,
        KeyError,
    ):  # cleaned away meanwhile; another check names a damaged commit
        return []
