"""What people did to a pipeline's tables and sinks, as the event log has it."""

from __future__ import annotations

from headwater.event_log.reader import events
from headwater.storage.place import Place

DROP = "DROP"


def sent_since_drop(state_folder: Place, flow: str, dataset: str) -> bool:
    """Whether a flow wrote batches since its dataset was dropped last, if it ever was: a dropped one begins anew."""
    actions = events(state_folder, dataset=dataset, event_type="user_action")
    drops = [record for record in actions if record["details"].get("user_action", {}).get("action") == DROP]
    after = drops[-1]["sequence"]["data_plane_id"]["seq_no"] if drops else None
    return bool(
        events(state_folder, flow=flow, event_type="flow_progress", level="METRICS", after=after, limit=1)
    )
