"""The task `update`, cleared alone: the tasks of its tables are over, and it says what they can't say any more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from headwater.graph.manifest import read_manifest
from headwater.updates.news import NewsVerdict
from headwater_airflow.dag import PipelineDag

RUN = "scheduled__1"
TABLES = ("bronze", "silver", "gold")
FINE = {"flows": dict.fromkeys(TABLES, 3), "report": {"state": "COMPLETED", "flows": []}}
AGAIN = {"update": "again", "report": {"state": "COMPLETED", "flows": []}}


@pytest.fixture
def start(medallion, driver, monkeypatch):
    """Run a try of `update`, whose other tasks are in a state before and after; gives the rows of each event that it makes."""

    def run(number: int, *others: str, said: Mapping[str, Any] | None = None) -> dict[str, int]:
        task = PipelineDag("medallion").get_task("update")
        states = [{RUN: dict.fromkeys(TABLES, state)} for state in others] or [{}]
        monkeypatch.setattr(
            RuntimeTaskInstance, "get_task_states", lambda **_: states.pop(0) if states[1:] else states[0]
        )
        events = defaultdict(lambda: SimpleNamespace(extra={}))
        instance = SimpleNamespace(
            dag_id="medallion", run_id=RUN, try_number=number, max_tries=3, xcom_pull=lambda **_: said
        )
        begun = SimpleNamespace(start_date=datetime(2026, 1, 1, number, tzinfo=UTC))
        task.execute({"ti": instance, "params": {}, "outlet_events": events, "dag_run": begun})
        return {asset.name: events[asset].extra["rows"] for asset in task.outlets}

    return run


@pytest.mark.parametrize("over", ["success", "deferred"])
def test_update_cleared_alone_wakes_who_waits_for_its_tables(start, driver, over):
    """The tasks of its tables are over, and say nothing more; those that were cleared along with it announce theirs themselves."""
    driver.will(FINE)
    assert start(1) == {}
    driver.will({"flows": {"bronze": 2, "silver": 0, "gold": 0}, **AGAIN})
    assert start(2, over) == ({"medallion.bronze": 2} if over == "success" else {})


@pytest.mark.parametrize("looked_at", ["update-1", "again"])
def test_a_table_that_ended_meanwhile_without_a_look_at_it_is_spoken_for(start, driver, looked_at):
    """`update` was cleared while its run went on: the task of a table ended with the former update, or with this one."""
    driver.will(FINE)
    start(1)
    driver.will({"flows": {"bronze": 2, "silver": 0, "gold": 0}, **AGAIN})
    woken = start(2, "queued", "success", said={"rows": 3, "of_updates": [looked_at]})
    assert woken == ({} if looked_at == "again" else {"medallion.bronze": 2})


@pytest.mark.parametrize("quiet", [False, True], ids=["with a driver", "without"])
def test_update_cleared_alone_announces_what_its_failed_try_wrote(start, driver, monkeypatch, roots, quiet):
    """The task of the table is red and stays so; nothing new is left to do, with or without a driver, and who waits is woken."""
    driver.will({"exit": 1, "flows": {"bronze": "cut off", "silver": "skipped", "gold": "skipped"}})
    with pytest.raises(AirflowException):
        start(1)
    if quiet:
        verdict = NewsVerdict(False, (), read_manifest(roots / "pipelines" / "medallion" / "manifest.json"))
        monkeypatch.setattr("headwater.updates.news.has_news", lambda _: verdict)
    none = {"flows": dict.fromkeys(TABLES, 0), **AGAIN}
    driver.will(none, none)
    assert start(2, "failed") == {"medallion.bronze": 3}
    # What it writes itself counts as announced once all has ended well: nobody else says anything.
    assert [call["announced_together"] for call in driver.calls] == [False, *([] if quiet else [True])]
