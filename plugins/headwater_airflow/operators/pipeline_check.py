"""What all checks of a pipeline's limits do: measure, notify, turn red."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow.sdk import BaseNotifier, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowTaskTimeout

from headwater.alerts.incidents import Breach, IncidentBook, IncidentChanges
from headwater.errors import HeadwaterError
from headwater.event_log.redaction import quoted, redact_text
from headwater_airflow.conditions.advice import read_advice
from headwater_airflow.notifications.alert import alert_of, send
from headwater_airflow.roots import pipeline_project

# The key of the incident that a check can't be made. No table, flow or rule has it: their names are not empty.
_ITSELF = ""


@dataclass(frozen=True)
class Measurement:
    """What a check found: the broken limits, a text for the log, plain values for whoever reads the task's result."""

    breaches: tuple[Breach, ...]
    text: str
    values: Mapping[str, Any] = field(default_factory=dict)


class PipelineCheckOperator(BaseOperator, ABC):  # type: ignore[misc]  # Airflow's types are not followed
    """Fails while a limit is broken; the notifiers are called once when it breaks, and once when it is met again.

    A check that can't be made is an incident, too: whoever hears nothing takes the pipeline for well (decision 0225).

    What has been announced is kept in storage, so that repeats are suppressed across runs and restarts. Where a notifier
    can't send, the task fails, and the next run sends it again. No JVM is started.

    Args:
        pipeline: the name of the pipeline's folder.
        notifiers: any of Airflow's; their templates see ``alert`` (title, text, state, lines).

    """

    template_fields: Sequence[str] = ()
    ui_color: ClassVar[str] = "#fdf3c8"
    check: ClassVar[str]
    # Whether findings of advice about the flows that are over go along with the message.
    advised: ClassVar[bool] = False

    def __init__(self, *, pipeline: str, notifiers: Sequence[BaseNotifier] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.notifiers = list(notifiers)

    @abstractmethod
    def measure(self) -> Measurement:
        """Compare the pipeline with the limits of this check."""

    def execute(self, context: Any) -> dict[str, Any]:
        """Measure, notify of changes, and fail if a limit is broken."""
        try:
            measurement = self._measured(context)
            advice = self._advice(measurement.breaches)
            self._tell(measurement.breaches, advice, context)
        except HeadwaterError as error:
            raise (AirflowException if error.transient else AirflowFailException)(str(error)) from error
        if measurement.breaches:
            raise AirflowFailException("\n".join([measurement.text, *advice]))
        self.log.info(measurement.text)
        return dict(measurement.values)

    def _measured(self, context: Any) -> Measurement:
        """What the check found; where it can't, that is an incident of its own, and those that are open stay open."""
        try:
            return self.measure()
        except (Exception, AirflowTaskTimeout) as error:  # which is none of the first
            why = redact_text(error.what) if isinstance(error, HeadwaterError) else quoted(error)
            known = [Breach(incident.key, incident.message) for incident in self._book().open_incidents()]
            self._tell([*known, Breach(_ITSELF, f"the check can't be made: {why}")], (), context)
            raise

    def _advice(self, breaches: Sequence[Breach]) -> list[str]:
        """A line for each finding about a table that is over; the message goes out without where they can't be read."""
        if not self.advised or not breaches:
            return []
        tables = {breach.key.partition("/")[0] for breach in breaches}
        try:
            return [
                finding.line
                for finding in read_advice(self.pipeline)
                if finding.flow and finding.dataset in tables
            ]
        except (HeadwaterError, OSError) as error:
            self.log.warning("There is no advice: %s", error)
            return []

    def _book(self) -> IncidentBook:
        folder = pipeline_project(self.pipeline).state_folder
        return IncidentBook(folder / "alerts" / f"{self.check}.json")

    def _tell(self, breaches: Sequence[Breach], advice: Sequence[str], context: Any) -> None:
        pipeline_id = pipeline_project(self.pipeline).pipeline_id
        book = self._book()
        changes = book.compare(breaches)
        _log_changes(self.log, changes)
        if changes.opened:
            alert = alert_of(pipeline_id, self.check, "open", changes.opened, advice)
            send(self.notifiers, alert, context)
            book.record_announced(opened=changes.opened)
        if changes.resolved:
            alert = alert_of(pipeline_id, self.check, "resolved", changes.resolved)
            send(self.notifiers, alert, context)
            book.record_announced(resolved=changes.resolved)


def _log_changes(log: Any, changes: IncidentChanges) -> None:
    for word, incidents in (("new", changes.opened), ("over", changes.resolved), ("known", changes.ongoing)):
        for incident in incidents:
            log.info("%s: %s", word, incident.message)
