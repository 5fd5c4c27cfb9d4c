"""Tells notifiers how a run of a DAG has ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from airflow.sdk import BaseNotifier

from headwater_airflow.notifications.alert import Alert, send


@dataclass(frozen=True)
class RunAlert(Alert):
    """The end of a run, in the form of an alert: ``check`` is the id of the run."""

    @property
    def title(self) -> str:
        """The alert in a line."""
        how = "failed" if self.state == "open" else "ended well"
        return f"[headwater] {self.pipeline}: the run {self.check} {how}"


@dataclass(frozen=True)
class RunCallback:
    """A callback of a DAG. Raises what the last notifier raised that could not send; Airflow writes it into its log."""

    dag_id: str
    outcome: str
    notifiers: tuple[BaseNotifier, ...]

    def __call__(self, context: Any) -> None:
        """Call every notifier; their templates see ``alert`` as those of a check do."""
        dag_id = getattr(context.get("dag"), "dag_id", self.dag_id)
        reason = str(context.get("reason") or self.outcome)
        state: Literal["open", "resolved"] = "open" if self.outcome == "failure" else "resolved"
        run = str(context.get("run_id") or "unknown")
        send(self.notifiers, RunAlert(dag_id, run, state, (reason,)), context)
