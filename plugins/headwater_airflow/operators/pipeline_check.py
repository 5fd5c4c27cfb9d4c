"""What all checks of a pipeline's limits do: measure, tell, turn red."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow.sdk import BaseNotifier, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from headwater.alerts.incidents import Breach, IncidentBook, IncidentChanges
from headwater.errors import HeadwaterError
from headwater_airflow.notifications.alert import alert_of, send
from headwater_airflow.roots import pipeline_project


@dataclass(frozen=True)
class Measurement:
    """What a check found: the broken limits, a text for the log, plain values for whoever reads the task's result."""

    breaches: tuple[Breach, ...]
    text: str
    values: Mapping[str, Any] = field(default_factory=dict)


class PipelineCheckOperator(BaseOperator, ABC):  # type: ignore[misc]  # Airflow's types are not followed
    """Fails while a limit is broken; the notifiers are told once when it breaks, and once when it is met again.

    What has been told is kept in storage, so that repeats are suppressed over runs and restarts. Where a notifier
    can't send, the task fails for that, and the next run tells it again. No JVM is started.

    Args:
        pipeline: the name of the pipeline's folder.
        notifiers: any of Airflow's; their templates see ``alert`` (title, text, state, lines).

    """

    template_fields: Sequence[str] = ()
    ui_color: ClassVar[str] = "#fdf3c8"
    check: ClassVar[str]

    def __init__(self, *, pipeline: str, notifiers: Sequence[BaseNotifier] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.notifiers = list(notifiers)

    @abstractmethod
    def measure(self) -> Measurement:
        """Hold the pipeline to the limits of this check."""

    def execute(self, context: Any) -> dict[str, Any]:
        """Measure, tell what has changed, and judge."""
        try:
            found = self.measure()
            self._tell(found, context)
        except HeadwaterError as error:
            raise (AirflowException if error.transient else AirflowFailException)(str(error)) from error
        if found.breaches:
            raise AirflowFailException(found.text)
        self.log.info(found.text)
        return dict(found.values)

    def _tell(self, found: Measurement, context: Any) -> None:
        project = pipeline_project(self.pipeline)
        book = IncidentBook(project.state_folder / "alerts" / f"{self.check}.json")
        changes = book.compare(found.breaches)
        _log_changes(self.log, changes)
        if changes.opened:
            alert = alert_of(project.pipeline_id, self.check, "open", changes.opened)
            send(self.notifiers, alert, context)
            book.told(opened=changes.opened)
        if changes.resolved:
            alert = alert_of(project.pipeline_id, self.check, "resolved", changes.resolved)
            send(self.notifiers, alert, context)
            book.told(resolved=changes.resolved)


def _log_changes(log: Any, changes: IncidentChanges) -> None:
    for word, incidents in (("new", changes.opened), ("over", changes.resolved), ("known", changes.ongoing)):
        for incident in incidents:
            log.info("%s: %s", word, incident.message)
