from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

_TERMINAL = ("COMPLETED", "FAILED", "CANCELED")


@dataclass(frozen=True)
class UpdateSummary:
    """An update according to the event log. ``ended`` is None until the end is recorded (for a killed one, never).

    ``requested_at``: when its request was made, by the clock of whoever made it; None where that is not known.
    ``parameters``: the values that the run had, as they may be shown.
    """

    update_id: str
    request_id: str | None
    state: str
    started: datetime
    ended: datetime | None
    message: str
    requested_at: datetime | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def seconds(self) -> float | None:
        """How long it took, once ended."""
        return max(0.0, (self.ended - self.started).total_seconds()) if self.ended else None

    def as_dict(self) -> dict[str, Any]:
        """The summary as JSON values."""
        return {
            **asdict(self),
            "started": self.started.isoformat(),
            "ended": self.ended.isoformat() if self.ended else None,
            "requested_at": self.requested_at.isoformat() if self.requested_at else None,
            "seconds": self.seconds,
        }


def fold_updates(records: Iterable[Mapping[str, Any]]) -> list[UpdateSummary]:
    """Summaries from ``create_update`` and ``update_progress`` records (oldest first), oldest first."""
    summaries: dict[str, UpdateSummary] = {}
    for record in records:
        origin, details = record["origin"], record["details"]
        key, when = origin["update_id"], record["timestamp"]
        summary = summaries.get(key) or UpdateSummary(key, origin["request_id"], "QUEUED", when, None, "")
        state = details.get("update_progress", {}).get("state")
        state = state if isinstance(state, str) else summary.state
        ended = when if state in _TERMINAL else summary.ended
        requested = _moment(details.get("create_update", {}).get("requested_at")) or summary.requested_at
        parameters = details.get("create_update", {}).get("parameters", summary.parameters)
        summaries[key] = replace(
            summary,
            state=state,
            ended=ended,
            message=record["message"],
            requested_at=requested,
            parameters=_texts(parameters),
        )
    return list(summaries.values())


def _texts(parameters: object) -> Mapping[str, str]:
    """Values as they are shown; none for whatever another version may have there."""
    if not isinstance(parameters, Mapping):
        return {}
    return {str(name): str(value) for name, value in parameters.items()}


def _moment(value: object) -> datetime | None:
    """A time as ``create_update`` writes it; None for whatever another version may have there."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None
