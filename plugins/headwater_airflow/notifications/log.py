"""Alerts in the log of the task: what a pipeline has until somebody names who is to be notified."""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk import BaseNotifier

_LOG = logging.getLogger(__name__)


class LogNotifier(BaseNotifier):  # type: ignore[misc]  # Airflow's types are not followed
    """Writes the alert into the log: as a warning when a limit breaks or a run fails, as information when it is over."""

    def notify(self, context: Any) -> None:
        """Write the alert's text."""
        alert = context["alert"]
        _LOG.log(logging.WARNING if alert.state == "open" else logging.INFO, "%s", alert.text)
