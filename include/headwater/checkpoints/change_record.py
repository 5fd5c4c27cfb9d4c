"""The record beside a table of changes that says by which keys, sequence and columns its rows were made."""

from __future__ import annotations

from typing import Any

from headwater.checkpoints.record_files import recorded
from headwater.storage.place import Place


def change_record_file(memory: Place) -> Place:
    """Where it lies in the folder of what is remembered beside the table."""
    return memory / "made_with.json"


def change_record(memory: Place) -> dict[str, Any] | None:
    """What it says; None where it is not there.

    Raises:
        FlowStateDamaged: it is not what was written.
        StorageNotReadable: it may not be read, or its disk is away.
    """
    return recorded(
        change_record_file(memory),
        dict[str, Any],
        what=f"The record of how the rows of {memory.name!r} were made",
        unknown="by which keys and columns the rows of the table were made",
        remedy="Restore the file from a backup. Or, if keys, sequence and tracked columns are those of the last run, move it away: "
        f"the next update writes it again. Or refill the table: headwater run PIPELINE_DIR --full-refresh {memory.name}",
    )
