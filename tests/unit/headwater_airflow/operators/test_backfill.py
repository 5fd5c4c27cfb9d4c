"""Which attempt of a backfill is the first, and which interval it fills."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from headwater.errors import InvalidSpec
from headwater_airflow.operators import backfill as module
from headwater_airflow.operators.backfill import BackfillOperator

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("retries", "max_tries", "attempt", "first"),
    [
        # Two retries: the attempts 1 to 3; cleared after the third or the second, Airflow allows for as many again.
        (2, 2, 1, 1),
        (2, 2, 3, 1),
        (2, 5, 4, 4),
        (2, 5, 6, 4),
        (2, 4, 3, 3),
        (0, 0, 1, 1),
        (0, 1, 2, 2),
        (None, None, 1, 1),
        # A number of retries that was changed in between.
        (5, 2, 2, 1),
        (0, 5, 3, 1),
    ],
)
def test_the_first_attempt_since_a_run_was_cleared(
    retries: int | None, max_tries: int | None, attempt: int, first: int
):
    """By the number of attempts that Airflow allows for; where it says nothing that could be, the first of all."""
    task: Any = SimpleNamespace(retries=retries)
    instance = SimpleNamespace(max_tries=max_tries, try_number=attempt)
    assert BackfillOperator._first_attempt_of(task, instance) == first


@pytest.mark.parametrize(
    ("start", "end", "is_one"),
    [
        (NOON, NOON + timedelta(hours=1), True),
        (NOON, NOON, False),
        (NOON, None, False),
        (None, NOON, False),
    ],
)
def test_an_interval_has_some_length(start: datetime | None, end: datetime | None, is_one: bool):
    """A run that was triggered by hand may have an empty one, or none."""
    interval = module._interval({"data_interval_start": start, "data_interval_end": end})
    assert interval == ((start, end) if is_one else None)


class Submitted(BackfillOperator):
    """Keeps what it would submit."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.submissions: list[tuple[Any, str, bool]] = []

    def _parameters(self, context: Any) -> Any:
        return SimpleNamespace(environment={}, values={}, variables={})

    def _prepare_backfill(self, project: Any, backfill: Any, request: str, secrets: Any) -> None:
        self.submissions.append((backfill, request, False))

    def _submit(self, context: Any, project: Any, request: str, *, last: bool) -> Any:
        backfill, request, _ = self.submissions.pop()
        self.submissions.append((backfill, request, last))
        return {"tables": []}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the task in a run of a kind; what it was read from, and whether it is the last attempt."""
    reads: list[tuple[Any, Any]] = []

    def read(params: Any, interval: Any) -> Any:
        reads.append((params, interval))
        if params.get("wrong"):
            raise InvalidSpec("There is no such table.")
        return SimpleNamespace(tables=("orders",), chosen=None)

    project = SimpleNamespace(check_parameters=lambda: None)
    monkeypatch.setattr(module, "pipeline_project", lambda *_, **__: project)
    monkeypatch.setattr(module, "read_backfill", read)
    monkeypatch.setattr(module, "cleared_backfill", lambda _, backfill, *more: (backfill, f"from {more[-1]}"))
    monkeypatch.setattr(module, "lines_of", lambda _: [])
    monkeypatch.setattr(
        module, "announce_backfill", lambda *_, retried, **__: reads.append(("retried", retried))
    )

    def ran(kind: str, attempt: int = 1, *, scheduled: bool = False, **params: Any) -> Any:
        reads.clear()
        task = Submitted(task_id="fill", pipeline="shop", scheduled=scheduled, retries=2)
        instance = SimpleNamespace(max_tries=2, try_number=attempt, dag_id="d", run_id="r")
        task.execute(
            {
                "ti": instance, "params": {"dry_run": True, **params}, "dag_run": SimpleNamespace(run_type=kind),
                "data_interval_start": NOON, "data_interval_end": NOON + timedelta(hours=1),
            }
        )  # fmt: skip
        return reads, task.submissions[0]

    return ran


def test_runs_of_the_schedule_write_only_where_they_are_to(run: Any):
    """Without ``scheduled`` they cut time into intervals; with it they fill theirs, and not as a dry run."""
    with pytest.raises(AirflowSkipException):
        run("scheduled")
    (params, interval), _ = run("scheduled", scheduled=True)[0]
    assert params["dry_run"] is False
    assert interval == (NOON, NOON + timedelta(hours=1))


def test_whose_interval_counts(run: Any):
    """Airflow's own backfill has one for each run; that of a run by hand is the last that was over, and none of its own."""
    for kind, has_one in (("backfill", True), ("manual", False)):
        (params, interval), _ = run(kind)[0]
        assert (params["dry_run"], interval is not None) == (True, has_one)


def test_attempts_are_counted(run: Any):
    """The last one says that nobody tries again; an attempt after the first is a retry to those who announce."""
    for attempt, last in ((1, False), (2, False), (3, True)):
        reads, (_, request, is_last) = run("manual", attempt)
        assert (request, is_last, reads[1]) == ("from 1", last, ("retried", attempt > 1))


def test_what_no_retry_helps_fails_at_once(run: Any):
    """A form with a table that there is not is not tried again."""
    with pytest.raises(AirflowFailException, match="no such table"):
        run("manual", wrong=True)
