"""The task that submits an update: what it passes on, and what it makes of each end."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from tests.dags.airflow_home import CHECKOUT
from tests.dags.pipeline_folder import write_pipeline

from headwater.event_log.reader import flow_results, updates
from headwater.graph.manifest import read_manifest
from headwater.graph.pipeline_project import open_project
from headwater.updates.news import NewsVerdict
from headwater_airflow.dag import PipelineDag
from headwater_airflow.following.request import request_id

RUN = "scheduled__1"
ROWS = {"flow": "gold", "state": "COMPLETED", "input_rows": 3, "output_rows": 3}
FINE = {"flows": {"bronze": 3, "silver": 3, "gold": 3}, "report": {"state": "COMPLETED", "flows": [ROWS]}}
REQUEST = request_id("medallion", RUN)


def report_of(state, **error):
    """What a driver prints that was ended by an error."""
    return {"update_id": None, "state": state, "flows": [], "error": error}


@pytest.fixture
def run(medallion, driver, monkeypatch):
    """Run an attempt of the task `update`, which the tasks of all tables follow."""
    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", lambda **_: {})

    def attempt(number=1, retries=2, task_id="update", begun=None, run_id=RUN, **params):
        task = PipelineDag("medallion").get_task(task_id)
        instance = SimpleNamespace(dag_id="medallion", run_id=run_id, try_number=number, max_tries=retries)
        return task.execute({"ti": instance, "params": params, "dag_run": SimpleNamespace(start_date=begun)})

    return attempt


def failed(run, **named):
    with pytest.raises(AirflowException) as caught:
        run(**named)
    return caught.value


def test_the_driver_gets_what_the_command_line_promises(run, driver, roots):
    """Folder, roots, request, attempt and selection are arguments; the driver leads its own session in the checkout."""
    driver.will(FINE)
    project = open_project(roots / "pipelines" / "medallion")
    expected = {**FINE["report"], "spec_hash": project.source_hash()}
    assert run(tables=["silver"], full_refresh=["silver"]) == expected
    (call,) = driver.calls
    assert (call["folder"], call["storage"], call["warehouse"]) == (
        str(roots / "pipelines" / "medallion"),
        str(roots / "storage"),
        str(roots / "warehouse"),
    )
    assert (call["request_id"], call["attempt"], call["max_attempts"]) == (REQUEST, "1", "3")
    assert (call["tables"], call["full_refresh"], call["json"]) == ("silver", "silver", True)
    assert (call["cwd"], call["sid"]) == (str(CHECKOUT), True)
    assert "spark.test.local=True" in call["conf"]


def test_the_driver_is_given_the_start_of_the_run(run, driver, medallion):
    """It stands in the event log as the scheduler has it, to the microsecond."""
    driver.will(FINE)
    begun = datetime(2026, 1, 1, 3, 4, 5, 678901, UTC)
    run(begun=begun)
    assert driver.calls[0]["requested_at"] == begun.isoformat()
    assert updates(medallion)[-1].requested_at == begun


def test_flows_and_resets_reach_the_driver(run, driver):
    """What the form offers beside tables is passed on; what failed is chosen by the driver, which reads the log."""
    driver.will(FINE)
    run(flows=["silver"], reset_checkpoint=["bronze"])
    assert (driver.calls[0]["flows"], driver.calls[0]["reset_checkpoint"]) == ("silver", "bronze")
    driver.will({"exit": 1, "flows": {"silver": "terminal"}})
    failed(run)
    driver.will(FINE)
    run(refresh_failed=True)
    assert driver.calls[-1]["refresh_failed"] is True
    calls = len(driver.calls)
    run(refresh_failed=True)
    assert len(driver.calls) == calls + 1, "without a manifest in storage the driver decides"


PARAMETERS = """parameters:
  day: {type: date, default: 2026-01-01, description: Which day}
  limit: {type: integer, default: 10}
  token: {secret: true, default: "variable:shop_key"}
"""


@pytest.fixture
def with_parameters(roots, driver):
    """Run the task of a pipeline with parameters, as triggered with a conf."""
    folder = write_pipeline(roots / "pipelines" / "medallion")
    (folder / "pipeline.yml").write_text((folder / "pipeline.yml").read_text() + PARAMETERS)

    def attempt(**conf):
        dag = PipelineDag("medallion")
        params = {**dag.params.dump(), **conf}
        instance = SimpleNamespace(dag_id="medallion", run_id=RUN, try_number=1, max_tries=0)
        run = SimpleNamespace(start_date=None, conf=conf)
        task = dag.get_task("update")
        # The spec was edited: the task itself announces the tables of the manifest.
        events = {asset: SimpleNamespace(extra={}) for asset in task.outlets}
        return task.execute({"ti": instance, "params": params, "dag_run": run, "outlet_events": events})

    return attempt


def test_parameters_reach_the_driver_and_secrets_only_its_environment(with_parameters, driver, monkeypatch):
    """What differs from the defaults is an argument; the secret of a variable of Airflow is in no argument and no setting."""
    monkeypatch.setenv("AIRFLOW_VAR_SHOP_KEY", "hunter2-of-the-shop")
    driver.will(FINE)
    with_parameters(day="2026-02-02", limit=10)
    (call,) = driver.calls
    assert call["param"] == ["day=2026-02-02", "token=env:HEADWATER_PARAMETER_token"]
    assert call["variables"] == {"HEADWATER_PARAMETER_token": "hunter2-of-the-shop"}
    assert "hunter2" not in str({**call, "variables": None})


@pytest.mark.parametrize(
    ("conf", "says"),
    [
        ({"dya": "2026-01-01"}, "Did you mean 'day'"),
        ({"day": "soon"}, "must be a date"),
        ({"token": "hunter2-of-the-shop"}, "can't be given in plain text"),
        ({"token": "variable:nowhere"}, "has no variable of that name"),
    ],
)
def test_parameters_that_do_not_fit_start_no_driver(with_parameters, driver, monkeypatch, conf, says):
    """Whatever got past the form fails the task for good, and a secret is not repeated."""
    monkeypatch.setenv("AIRFLOW_VAR_SHOP_KEY", "hunter2-of-the-shop")
    with pytest.raises(AirflowFailException, match=says) as caught:
        with_parameters(**conf)
    assert "hunter2" not in str(caught.value)
    assert not driver.calls


def test_every_attempt_of_a_run_has_the_same_request(run, driver):
    """A retry passes the request of the first attempt, so that only what is not done is done."""
    driver.will({"exit": 1, "flows": {"bronze": "transient"}}, FINE)
    failed(run)
    run(number=2)
    assert [call["request_id"] for call in driver.calls] == [REQUEST, REQUEST]


def test_a_run_that_is_cleared_after_its_success_does_everything_again(run, driver):
    """The driver is told that it is the first attempt, so that it leaves nothing out as done before."""
    driver.will(FINE)
    run()
    run(number=2, retries=3)
    assert [(call["attempt"], call["max_attempts"]) for call in driver.calls] == [("1", "3"), ("1", "3")]


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (
            {"exit": 2, "report": report_of("INVALID", condition="X", message="No.", transient=False)},
            "[X] No.",
        ),
        ({"exit": 3}, "refused"),
        ({"exit": 1, "flows": {"bronze": 1, "silver": "terminal"}}, "silver: [FLOW_FAILED] Bad cast."),
    ],
    ids=["invalid", "refused", "a flow that failed for good"],
)
def test_what_a_retry_meets_again_fails_at_once(run, driver, attempt, words):
    """Terminal errors skip Airflow's retries, with the reason as the task's error."""
    driver.will(attempt)
    error = failed(run)
    assert isinstance(error, AirflowFailException)
    assert words in str(error)


@pytest.mark.parametrize(
    "attempt",
    [
        {"exit": 1, "flows": {"bronze": "transient"}},
        {
            "exit": 3,
            "report": report_of("REFUSED", condition="UPDATE_IN_PROGRESS", message="Busy.", transient=True),
        },
        {"killed": True, "flows": {"bronze": 3}},
    ],
    ids=["a flow that was interrupted", "another update at work", "killed"],
)
def test_what_a_retry_can_help_is_tried_again(run, driver, attempt):
    """Transient errors are left to Airflow's retries."""
    driver.will(attempt)
    assert not isinstance(failed(run), AirflowFailException)


def test_a_killed_driver_leaves_an_end_in_the_event_log(run, driver, medallion):
    """The operator writes the end that the driver could not, under the update that it had begun."""
    driver.will({"killed": True}, {"killed": True})
    failed(run, retries=1)
    failed(run, number=2, retries=1)
    states = updates(medallion)
    assert [(update.update_id, update.state) for update in states] == [
        ("update-1", "FAILED"),
        ("update-2", "FAILED"),
    ]
    assert "killed by signal 9" in states[-1].message


def test_a_continuous_driver_without_a_sign_of_life_is_ended(run, driver, medallion, roots, monkeypatch):
    """Its process is there, and nothing comes from it any more: the task fails, Airflow tries again, and the next one is not disturbed."""
    spec = roots / "pipelines" / "medallion" / "pipeline.yml"
    spec.write_text(spec.read_text() + "trigger: continuous\n")
    monkeypatch.setenv("HEADWATER_HEALTH_SECONDS", "0.2")
    monkeypatch.setenv("HEADWATER_SILENCE_SECONDS", "3")
    driver.will({"hangs": True}, FINE)
    began = time.monotonic()
    assert not isinstance(failed(run), AirflowFailException)
    assert time.monotonic() - began < 30
    assert updates(medallion)[-1].state == "FAILED"
    # A busy machine takes its time to start a process.
    monkeypatch.setenv("HEADWATER_SILENCE_SECONDS", "60")
    assert run(number=2)["state"] == "COMPLETED"


def test_a_driver_that_is_gone_before_its_first_word_is_recorded_too(run, driver, medallion, monkeypatch):
    """Without any event of the request, the end is recorded under a new update."""
    monkeypatch.setattr("headwater_airflow.driver.submission.spark_submit", lambda: "/bin/false")
    failed(run)
    (update,) = updates(medallion)
    assert (update.request_id, update.state) == (REQUEST, "FAILED")


@pytest.mark.parametrize("tables", [["--full-refresh-all"], ["a,b"], "silver", [{"x": 1}]])
def test_a_hostile_form_never_reaches_the_driver(run, driver, tables):
    """Whatever a run was triggered with is checked before anything is started."""
    driver.will(FINE)
    assert isinstance(failed(run, tables=tables), AirflowFailException)
    assert driver.calls == []


def test_a_missing_connection_is_told_instead_of_taking_yarn(run, driver, monkeypatch):
    """The provider would submit to YARN; the error says how to make the connection."""
    from airflow.sdk.exceptions import AirflowNotFoundException

    def missing(*_):
        raise AirflowNotFoundException

    monkeypatch.setattr("airflow.sdk.BaseHook.get_connection", missing)
    error = failed(run)
    assert isinstance(error, AirflowFailException)
    assert "AIRFLOW_CONN_SPARK_DEFAULT" in str(error)


def test_nothing_new_means_no_driver(run, driver, roots, medallion, monkeypatch):
    """Where no source has moved, nothing is started, and the log says so, unless somebody asked for something."""
    driver.will(FINE)
    manifest = read_manifest(roots / "pipelines" / "medallion" / "manifest.json")
    verdict = NewsVerdict(moved=False, manifest=manifest)
    monkeypatch.setattr("headwater.updates.news.has_news", lambda project: verdict)
    assert {flow["state"] for flow in run()["flows"]} == {"COMPLETED"}
    assert {result.flow for result in flow_results(medallion, request_id=REQUEST)} == {
        "bronze",
        "silver",
        "gold",
    }
    assert driver.calls == []
    run(full_refresh_all=True)
    assert len(driver.calls) == 1


def test_one_submit_per_table_tells_of_its_table_only(run, driver, roots):
    """With `per_table` each task passes its table, and is skipped where the form asks for others."""
    write_pipeline(roots / "pipelines" / "medallion", airflow="{tasks: per_table}")
    driver.will({"flows": {"silver": 3}})
    task = PipelineDag("medallion").get_task("silver")
    events = {task.outlets[0]: SimpleNamespace(extra={})}
    instance = SimpleNamespace(dag_id="medallion", run_id=RUN, try_number=1, max_tries=0)
    task.execute({"ti": instance, "params": {}, "outlet_events": events})
    assert driver.calls[0]["tables"] == "silver"
    assert events[task.outlets[0]].extra["rows"] == 3
    with pytest.raises(AirflowSkipException):
        run(task_id="silver", tables=["gold"])
    # Else every task would be skipped, or leave the refresh out, and the run be green.
    for field in ("tables", "full_refresh"):
        error = failed(run, task_id="silver", **{field: ["slver"]})
        assert isinstance(error, AirflowFailException)
        assert "Did you mean 'silver'" in str(error)


def test_an_edited_source_does_not_stop_who_waits_for_its_tables(run, driver, roots):
    """With a manifest older than the sources the one task makes an event for each table that changed, and for no other."""
    folder = write_pipeline(roots / "pipelines" / "medallion")
    (folder / "transformations" / "tables.py").write_text("# changed since\n")
    driver.will({"flows": {"bronze": 4, "silver": 3, "gold": 0}})
    task = PipelineDag("medallion").get_task("update")
    assert [asset.name for asset in task.outlets] == [
        "medallion.bronze",
        "medallion.silver",
        "medallion.gold",
    ]
    events = {asset: SimpleNamespace(extra={}) for asset in task.outlets}
    instance = SimpleNamespace(dag_id="medallion", run_id=RUN, try_number=1, max_tries=0)
    task.execute({"ti": instance, "params": {}, "outlet_events": events})
    assert {asset.name: events[asset].extra["rows"] for asset in task.outlets} == {
        "medallion.bronze": 4,
        "medallion.silver": 3,
    }


def test_a_table_that_changed_in_a_failed_update_wakes_with_the_next(run, driver, roots):
    """One task announces all tables, and it was red: who waits for the table that was written is woken by the next run."""
    folder = roots / "pipelines" / "medallion"
    (folder / "transformations" / "tables.py").write_text("# changed since\n")
    driver.will(
        {"exit": 1, "flows": {"bronze": 4, "silver": "terminal", "gold": "skipped"}, "update": "former"}
    )
    failed(run, run_id="scheduled__0", retries=0)
    assert driver.calls[0]["announced_together"] is True
    driver.will({"flows": {"bronze": 0, "silver": 2, "gold": 0}})
    task = PipelineDag("medallion").get_task("update")
    events = {asset: SimpleNamespace(extra={}) for asset in task.outlets}
    instance = SimpleNamespace(dag_id="medallion", run_id=RUN, try_number=1, max_tries=0)
    task.execute({"ti": instance, "params": {}, "outlet_events": events})
    assert {asset.name: events[asset].extra["rows"] for asset in task.outlets} == {
        "medallion.bronze": 4,
        "medallion.silver": 2,
    }


def test_a_try_that_airflow_does_not_count_is_the_first(run, driver):
    """Under `airflow tasks test` the number of the try is 0, which the driver would refuse."""
    driver.will(FINE)
    run(number=0)
    assert driver.calls[0]["attempt"] == "1"


def test_a_driver_that_says_nothing_has_not_succeeded(run, monkeypatch, roots):
    """It ends with 0, and neither its report nor the event log says that there was an update: the task is not green."""
    monkeypatch.setattr("headwater_airflow.driver.submission.spark_submit", lambda: "/bin/true")
    error = failed(run)
    assert not isinstance(error, AirflowFailException)
    assert "without a report" in str(error)


def test_an_event_that_airflow_did_not_get_is_made_by_the_next_attempt(run, driver, roots, monkeypatch):
    """The table was written, and the task ended before its event was made: nothing is left to do, and the event is made all the same."""
    write_pipeline(roots / "pipelines" / "medallion", airflow="{tasks: per_table}")
    driver.will({"flows": {"silver": 3}})
    begun = datetime(2026, 1, 1, tzinfo=UTC)

    def attempt(number, begun):
        task = PipelineDag("medallion").get_task("silver")
        events = {task.outlets[0]: SimpleNamespace(extra={})}
        instance = SimpleNamespace(dag_id="medallion", run_id=RUN, try_number=number, max_tries=1)
        given = {
            "ti": instance,
            "params": {},
            "outlet_events": events,
            "dag_run": SimpleNamespace(start_date=begun),
        }
        task.execute(given)
        return [events[asset].extra["rows"] for asset in task.outlets]

    with monkeypatch.context() as away:
        away.setattr("headwater_airflow.operators.announcement.update_quality", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            attempt(1, begun)
    manifest = read_manifest(roots / "pipelines" / "medallion" / "manifest.json")
    verdict = NewsVerdict(moved=False, manifest=manifest)
    monkeypatch.setattr("headwater.updates.news.has_news", lambda project: verdict)
    assert attempt(2, begun) == [3]
    # Cleared later, it has another start: what was told is not told again.
    assert attempt(3, datetime(2026, 1, 2, tzinfo=UTC)) == []
    assert len(driver.calls) == 1
