"""An alert as Airflow's notifiers can send it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from airflow.sdk import BaseNotifier

from headwater.alerts.incidents import Incident


@dataclass(frozen=True)
class Alert:
    """What templates of a notifier see as ``alert``.

    Attributes:
        pipeline: the id of the pipeline.
        check: which limits: lag, freshness, rules, checkpoints ...
        state: ``open`` when limits have been broken, ``resolved`` when they are met again.
        lines: a sentence for each incident.
        advice: what to do about them, a line for each finding.

    """

    pipeline: str
    check: str
    state: Literal["open", "resolved"]
    lines: tuple[str, ...]
    advice: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The alert in a line."""
        count = f"{len(self.lines)} limits" if len(self.lines) > 1 else "a limit"
        what = f"{count} broken" if self.state == "open" else "resolved"
        return f"[headwater] {self.pipeline}, {self.check}: {what}"

    @property
    def text(self) -> str:
        """The alert in full, as plain text."""
        advice = ["", "What to do:", *(f"- {line}" for line in self.advice)] if self.advice else []
        return "\n".join([self.title, "", *(f"- {line}" for line in self.lines), *advice])


def alert_of(
    pipeline: str,
    check: str,
    state: Literal["open", "resolved"],
    incidents: Sequence[Incident],
    advice: Sequence[str] = (),
) -> Alert:
    """The alert about incidents that begin or end together. ``advice``: what to do about those that begin."""
    lines = [incident.message for incident in incidents]
    if state == "resolved":
        lines = [f"over: {incident.message} (since {_shown(incident.since)})" for incident in incidents]
    return Alert(pipeline, check, state, tuple(lines), tuple(advice))


def send(notifiers: Sequence[BaseNotifier], alert: Alert, context: Any) -> None:
    """Send an alert through every notifier; raises what the last of those raised that could not send it.

    Templates of a notifier see ``alert`` beside what every task's context has.
    """
    failure: Exception | None = None
    for notifier in notifiers:
        # Rendering writes into the notifier, and calling it would hide that it failed.
        mine = copy.copy(notifier)
        seen = {**context, "alert": alert}
        try:
            mine.render_template_fields(seen)
            mine.notify(seen)
        except Exception as error:  # the other notifiers must still be called
            failure = error
    if failure is not None:
        raise failure


def _shown(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
