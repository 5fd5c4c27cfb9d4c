"""What people did to a pipeline's tables and sinks, as the event log has it."""

from __future__ import annotations

from headwater.event_log.reader import events
from headwater.storage.place import Place

DROP = "DROP"
DISCARD = "DISCARD_QUARANTINE"


def sent_since_drop(state_folder: Place, flow: str, dataset: str) -> bool:
    """Whether a flow wrote batches since its dataset was dropped last, if it ever was: a dropped one begins anew."""
    after = _last_drop(state_folder, dataset)
    return bool(
        events(state_folder, flow=flow, event_type="flow_progress", level="METRICS", after=after, limit=1)
    )


def is_dropped(state_folder: Place, dataset: str) -> bool:
    """Whether a drop of a dataset is recorded, and nothing that a flow did with it since."""
    after = _last_drop(state_folder, dataset)
    return after is not None and not events(
        state_folder, dataset=dataset, event_type="flow_progress", after=after, limit=1
    )


def is_discard_recorded(state_folder: Place, at: str) -> bool:
    """Whether the discard that marked quarantined rows at a moment is recorded: a kill may have come between the two."""
    actions = events(state_folder, event_type="user_action")
    about = [record["details"].get("user_action", {}) for record in actions]
    return any(each.get("action") == DISCARD and each.get("at") == at for each in about)


def _last_drop(state_folder: Place, dataset: str) -> int | None:
    """The number of the newest record of a drop."""
    actions = events(state_folder, dataset=dataset, event_type="user_action")
    drops = [record for record in actions if record["details"].get("user_action", {}).get("action") == DROP]
    return drops[-1]["sequence"]["data_plane_id"]["seq_no"] if drops else None
