"""What a kill leaves of a flow that is being removed is neither a checkpoint that has read less nor a copy that is not whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headwater.doctor.snapshots import remove_snapshot
from headwater.storage.place import Place
from headwater.storage.walking import in_order, remove_tree, unchecked


def remove_flow(folder: Place, check: Callable[[], None] = unchecked) -> None:
    """Remove a flow's checkpoint, or all copies of it.

    Files of a disk go in any order. So its epochs go before its state, which knows that there was a table: the next update is refused.
    And of a copy goes first what says that it is one.

    Args:
        folder: of the flow, below ``checkpoints`` or ``snapshots``.
        check: raises where the lease is lost; what is there then may be another update's.
    """
    if isinstance(folder, Path):
        for part in in_order(folder.glob("*/")):
            if not part.is_symlink():
                check()
                remove_snapshot(part)  # of an epoch nothing says that it is one
    check()
    remove_tree(folder, check=check)
