"""What people are told when a limit breaks, is met again, or a run ends."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG, BaseNotifier

from headwater.alerts.incidents import Incident
from headwater_airflow.notifications.alert import Alert, alert_of, send
from headwater_airflow.notifications.run_callback import RunCallback

LAG = Incident("bronze", "bronze: 9 records of lag", 0.0)


class Notes(BaseNotifier):
    """Keeps what it is told."""

    template_fields = ("text",)

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.text, self.error = "{{ alert.title }}", error
        self.alerts: list[Alert] = []
        self.texts: list[str] = []

    def notify(self, context: Any) -> None:
        if self.error is not None:
            raise self.error
        self.alerts.append(context["alert"])
        self.texts.append(self.text)


def test_the_words_of_an_alert():
    """One limit or several, broken or over; an end says since when, and advice follows the lines."""
    one = alert_of("shop", "lag", "open", [LAG], ["Give it more cores."])
    assert one.title == "[headwater] shop, lag: a limit broken"
    assert one.text.splitlines() == [
        one.title, "", "- bronze: 9 records of lag", "", "What to do:", "- Give it more cores.",
    ]  # fmt: skip
    assert alert_of("shop", "lag", "open", [LAG, LAG]).title == "[headwater] shop, lag: 2 limits broken"
    over = alert_of("shop", "lag", "resolved", [LAG])
    assert over.title == "[headwater] shop, lag: resolved"
    assert over.lines == ("over: bronze: 9 records of lag (since 1970-01-01 00:00 UTC)",)


def test_each_notifier_is_called_whatever_another_one_does():
    """One that can't send keeps nobody else from hearing, and the failure is not hidden."""
    first, last = Notes(), Notes()
    with pytest.raises(ConnectionError, match="away"):
        send([first, Notes(ConnectionError("away")), last], alert_of("shop", "lag", "open", [LAG]), {})
    assert first.texts == last.texts == ["[headwater] shop, lag: a limit broken"]
    assert first.text == "{{ alert.title }}", "it is rendered anew the next time"


@pytest.mark.parametrize(
    ("outcome", "state", "how"), [("failure", "open", "failed"), ("success", "resolved", "ended well")]
)
def test_the_end_of_a_run(outcome: str, state: str, how: str):
    """A failure opens an alert and a success ends one, in the name of the DAG that ran."""
    notes = Notes()
    callback = RunCallback("shop", outcome, (notes,))
    callback({"dag": DAG("shop_checks", schedule=None), "run_id": "r1", "reason": "a task failed"})
    (alert,) = notes.alerts
    assert (alert.pipeline, alert.check, alert.state, alert.lines) == (
        "shop_checks",
        "r1",
        state,
        ("a task failed",),
    )
    assert notes.texts == [f"[headwater] shop_checks: the run r1 {how}"]
    callback({})
    assert (notes.alerts[1].pipeline, notes.alerts[1].check, notes.alerts[1].lines) == (
        "shop",
        "unknown",
        (outcome,),
    )
