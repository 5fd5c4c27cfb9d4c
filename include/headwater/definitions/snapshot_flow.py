from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headwater.definitions.change_flow import ChangeFlow


@dataclass(frozen=True)
class SnapshotFlow:
    """How snapshots of a source change a target (AUTO CDC from snapshots).

    ``changes``: keys, type and tracked columns; what it says of events does not apply.
    Just one of the others is given. ``source``: a dataset or table, compared with the target by each update.
    ``following``: called with the latest version that was applied (None at first), it gives the next
    (DataFrame, version), or None. ``given``: one (DataFrame, version).
    """

    changes: ChangeFlow
    source: str | None = None
    following: Callable[[Any], Any] | None = None
    given: tuple[Any, Any] | None = None
