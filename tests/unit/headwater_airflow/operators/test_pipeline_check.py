"""A limit that breaks is announced once at each end, and a check that can't be made is heard of, too."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from airflow.sdk import BaseNotifier
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowTaskTimeout

from headwater.alerts.incidents import Breach
from headwater.errors import InvalidSpec
from headwater.storage.conditions import StoreUnreachable
from headwater_airflow.operators import pipeline_check as module
from headwater_airflow.operators.pipeline_check import Measurement, PipelineCheckOperator

LATE = Breach("bronze/load", "load: 9 records of lag")


class Notes(BaseNotifier):
    """Keeps what it is told; away as long as ``error`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
        self.errors: list[Exception] = []

    def notify(self, context: Any) -> None:
        if self.errors:
            raise self.errors[0]
        alert = context["alert"]
        self.lines.append((alert.state, alert.lines, alert.advice))


class Check(PipelineCheckOperator):
    """Finds what the test says."""

    check: ClassVar[str] = "lag"
    advised: ClassVar[bool] = True
    answer: Any = ()

    def measure(self) -> Measurement:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return Measurement(tuple(self.answer), "late", {"flows": 1})


@pytest.fixture
def notes() -> Notes:
    """Somebody who is notified."""
    return Notes()


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notes: Notes) -> Any:
    """One run of the check, with what it finds."""
    project = SimpleNamespace(state_folder=tmp_path, pipeline_id="shop")
    monkeypatch.setattr(module, "pipeline_project", lambda _: project)
    advice = [
        SimpleNamespace(flow="load", dataset="bronze", line="More cores."),
        SimpleNamespace(flow=None, dataset="bronze", line="Of the table."),
        SimpleNamespace(flow="load", dataset="silver", line="Of another one."),
    ]
    monkeypatch.setattr(module, "read_advice", lambda _: advice)
    task = Check(task_id="check", pipeline="shop", notifiers=[notes])

    def once(answer: Any) -> Any:
        task.answer = answer
        return task.execute({})

    return once


def test_an_incident_is_announced_once_at_each_end(look: Any, notes: Notes):
    """The task is red as long as the limit is broken; the advice is that about flows of the table."""
    for _ in range(2):
        with pytest.raises(AirflowFailException, match="late\nMore cores"):
            look([LATE])
    assert notes.lines == [("open", (LATE.message,), ("More cores.",))]
    for _ in range(2):
        assert look([]) == {"flows": 1}
    assert [state for state, _, _ in notes.lines] == ["open", "resolved"]


def test_what_could_not_be_sent_is_sent_by_the_next_run(look: Any, notes: Notes):
    """An announcement counts when it has gone out, the end of an incident as well as its beginning."""
    notes.errors = [ConnectionError("away")]
    with pytest.raises(ConnectionError):
        look([LATE])
    notes.errors = []
    with pytest.raises(AirflowFailException):
        look([LATE])
    notes.errors = [ConnectionError("away")]
    with pytest.raises(ConnectionError):
        look([])
    notes.errors = []
    look([])
    assert [state for state, _, _ in notes.lines] == ["open", "resolved"]


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (StoreUnreachable("Away."), AirflowException),
        (InvalidSpec("No name."), AirflowFailException),
        (ValueError("odd"), ValueError),
        (AirflowTaskTimeout("too long"), AirflowTaskTimeout),
    ],
)
def test_a_check_that_cannot_be_made_is_an_incident(
    look: Any, notes: Notes, error: BaseException, raised: type[BaseException]
):
    """Whatever keeps it from being made; what was over before is not taken for well, and both end when it can be made."""
    with pytest.raises(AirflowFailException):
        look([LATE])
    for _ in range(2):
        with pytest.raises(raised):
            look(error)
    assert len(notes.lines) == 2
    assert notes.lines[1][0] == "open"
    assert notes.lines[1][1][0].startswith("the check can't be made: ")
    look([])
    state, lines, _ = notes.lines[2]
    assert (state, len(lines), len(notes.lines)) == ("resolved", 2, 3)
