"""What an operator is about to do to a flow or a quarantine, written down before it is done: its record comes after it, and a kill between.

One is under way at a time, under the pipeline's lease. What came of it, and the record, is ``headwater.doctor.begun_actions``' matter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headwater.checkpoints.guarded_files import Guarded, GuardedKind, end_guarded, write_guarded
from headwater.storage.place import Place


@dataclass(frozen=True)
class BegunAction:
    """An action and its record. ``details``: of ``user_action``, as far as they are known before; ``message``: likewise.

    ``epoch``: of a repair, the flow's live epoch before it, None where it repairs in place.
    """

    action_id: str
    dataset: str
    message: str
    details: Mapping[str, Any]
    flow: str | None = None
    epoch: int | None = None


_ACTIONS: GuardedKind[BegunAction] = GuardedKind(
    lambda data: BegunAction(**data),
    {
        "what": "The file that says what an operator has begun",
        "unknown": "whether a repair or a discard lacks its record",
        "remedy": "Move it aside: all that depends on it is a record in the event log.",
    },
)


def begun_action(state_folder: Place) -> Guarded[BegunAction]:
    """What was begun and not ended; raises FlowStateDamaged where the file can't be read."""
    return _ACTIONS.seen(state_folder / "action.json")


def begin_action(state_folder: Place, action: BegunAction) -> None:
    """Write down, durably, what is about to be done; raises LeaseLost where another process has meanwhile."""
    write_guarded(begun_action(state_folder), json.dumps(asdict(action), indent=1) + "\n")


def end_action(state_folder: Place, action_id: str) -> None:
    """Say that an action is recorded, or came to nothing; where the file is another one's, that one stays."""
    seen = begun_action(state_folder)
    if seen.record is not None and seen.record.action_id == action_id:
        end_guarded(seen, action_id)
