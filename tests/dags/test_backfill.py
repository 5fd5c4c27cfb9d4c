"""The backfill DAG of a pipeline: its form, what it passes on, and what it refuses to."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from headwater.contract.backfill_arguments import parse_backfill_arguments
from headwater.errors import UsageError
from headwater.event_log.details import operation_progress
from headwater.event_log.writer import EventLogWriter
from headwater_airflow.dag import PipelineBackfillDag
from headwater_airflow.following.request import request_id
from headwater_airflow.forms.backfill_form import read_backfill

RANGE = {"from": "2026-01-01", "to": "2026-02-01", "column": "at"}
DAY = (datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC))
PROGRAM = """#!{python}
import json, os, sys
script = next(i for i, a in enumerate(sys.argv) if a.endswith("run_backfill.py"))
open(os.environ["CALLS"], "a").write(json.dumps(sys.argv[script + 1:]) + "\\n")
state = os.environ.get("STATE", "PLANNED")
flow = dict(dataset="gold", flow="gold", state=state, input_rows=3, output_rows=2, dropped_rows=1, quarantined_rows=0, mode="append",
            replaced_rows=2, source_bytes=10, replaced_bytes=10, output_bytes=10, version=7)
print(json.dumps(dict(state=state, backfill_id="b1", flows=[flow])))
"""


@pytest.fixture
def run(medallion, driver, roots, monkeypatch):
    """Run the task `backfill` with a form, and give what its driver was called with."""
    program, calls = roots / "spark-submit", roots / "calls"
    program.write_text(PROGRAM.format(python=sys.executable))
    monkeypatch.setenv("CALLS", str(calls))

    def attempt(kind="manual", interval=None, scheduled=False, tries=(1, 2), **form):
        dag = PipelineBackfillDag(
            "medallion", interval="@daily", tables=["gold"], column="at", scheduled=scheduled
        )
        params = {name: param.value for name, param in dag.params.items()} | form
        task = dag.get_task("backfill")
        attempt.events = {asset.name: SimpleNamespace(extra={}) for asset in task.outlets}
        context = {
            "outlet_events": {asset: attempt.events[asset.name] for asset in task.outlets},
            "ti": SimpleNamespace(dag_id=dag.dag_id, run_id="r", try_number=tries[0], max_tries=tries[1]),
            "dag_run": SimpleNamespace(run_type=SimpleNamespace(value=kind)),
            "params": params,
        }
        if interval is not None:
            context |= {"data_interval_start": interval[0], "data_interval_end": interval[1]}
        report = task.execute(context)
        attempt.announced = [asset.name for asset in task.outlets]
        assert report["flows"][0]["output_rows"] == 2
        return json.loads(calls.read_text().splitlines()[-1])

    attempt.calls = calls
    return attempt


def test_the_form_becomes_the_command_line(run, roots):
    """What is chosen is passed on as the command line has it, under the run's request; a dry run unless it is unticked."""
    arguments = run(**RANGE)
    parsed = parse_backfill_arguments(arguments)
    assert (parsed.tables, parsed.dry_run, parsed.mode, parsed.as_json) == (("gold",), True, None, True)
    assert parsed.request_id == request_id("medallion_backfill", "r")
    assert (parsed.storage, parsed.warehouse) == (str(roots / "storage"), str(roots / "warehouse"))
    assert str(parsed.chosen) == "at from 2026-01-01 00:00:00Z to before 2026-02-01 00:00:00Z"
    form = {
        "range": "offset",
        "from": '{"t": {"0": 1}}',
        "to": '{"t": {"0": 2}}',
        "mode": "merge",
        "keys": ["id"],
    }
    parsed = parse_backfill_arguments(run(**form, dry_run=False, again=True))
    assert (str(parsed.mode), parsed.keys, parsed.again, parsed.dry_run) == ("merge", ("id",), True, False)
    assert parsed.chosen is not None
    assert parsed.chosen.end == {"t": {"0": 2}}
    assert parse_backfill_arguments(run(then_stream=True, dry_run=False)).then_stream


def test_a_backfill_of_airflow_fills_its_interval(run):
    """The data interval is the range where the form names none; a scheduled run does nothing, unless it is asked to."""
    parsed = parse_backfill_arguments(run(kind="backfill", interval=DAY, dry_run=False))
    assert str(parsed.chosen) == "at from 2026-01-05 00:00:00Z to before 2026-01-06 00:00:00Z"
    with pytest.raises(AirflowSkipException):
        run(kind="scheduled", interval=DAY)
    by_schedule = parse_backfill_arguments(run(kind="scheduled", interval=DAY, scheduled=True))
    assert (by_schedule.chosen, by_schedule.dry_run) == (parsed.chosen, False)
    assert parse_backfill_arguments(run(kind="backfill", interval=DAY)).dry_run


def test_a_run_that_was_done_and_is_cleared_is_done_again(run, medallion):
    """As any task of Airflow; a retry is no clear, a run that failed goes on where it stood, and the next clear is another request."""
    form = {**RANGE, "tables": ["gold", "silver"], "dry_run": False}
    cleared = (2, 3)  # after its first attempt, of a task with two retries

    def done(table, status="COMPLETED"):
        with EventLogWriter(
            medallion, "medallion", "medallion", "b1", request_id("medallion_backfill", "r")
        ) as log:
            log.emit(
                "operation_progress",
                "done",
                dataset=table,
                details=operation_progress("BACKFILL", status, None),
            )

    first = parse_backfill_arguments(run(**form))
    done("Gold")
    done("silver", "FAILED")
    after_failure = parse_backfill_arguments(run(**form, tries=cleared))
    assert after_failure == first
    done("silver")
    assert parse_backfill_arguments(run(**form, tries=(2, 2))) == first
    again, retry, once_more = (
        parse_backfill_arguments(run(**form, tries=tries)) for tries in (cleared, (3, 3), (4, 5))
    )
    assert again == retry
    assert (first.again, again.again, once_more.again) == (False, True, True)
    assert len({first.request_id, again.request_id, once_more.request_id}) == 3
    assert not parse_backfill_arguments(run(**{**form, "dry_run": True}, tries=cleared)).again


@pytest.mark.parametrize(
    ("state", "tries", "announced"),
    [
        ("COMPLETED", (1, 2), ["medallion.gold"]),
        ("PLANNED", (1, 2), []),
        ("DONE_BEFORE", (1, 2), []),
        ("DONE_BEFORE", (2, 2), ["medallion.gold"]),
    ],
)
def test_a_table_that_was_filled_wakes_its_readers(run, monkeypatch, state, tries, announced):
    """Its asset has an event, also where an attempt before wrote the rows and Airflow did not have its event; a dry run, what
    another run has done and tables that were not filled have none.
    """
    monkeypatch.setenv("STATE", state)
    run(**RANGE, dry_run=False, tries=tries)
    assert set(run.events) == {"medallion.bronze", "medallion.silver", "medallion.gold"}
    assert run.announced == announced
    if announced:
        extra = run.events["medallion.gold"].extra
        assert (extra["rows"], extra["dropped_rows"], extra["version"], extra["backfill_id"]) == (
            2,
            1,
            7,
            "b1",
        )


@pytest.mark.parametrize("kind", ["manual", "operator_triggered"])
def test_a_run_that_somebody_triggers_names_its_range(run, kind):
    """Airflow gives it an interval, too, where it has a logical date: the last one that is over. Nobody has asked to fill that."""
    with pytest.raises(AirflowFailException, match="The range has no ends"):
        run(kind=kind, interval=DAY, dry_run=False)
    assert not run.calls.exists()


@pytest.mark.parametrize(
    "form",
    [
        {},
        {**RANGE, "tables": []},
        {**RANGE, "tables": ["--again"]},
        {**RANGE, "tables": "gold"},
        {**RANGE, "tables": [{"a": 1}]},
        {**RANGE, "column": "at` OR 1=1"},
        {**RANGE, "column": 3},
        {**RANGE, "from": "x; rm"},
        {**RANGE, "from": ["2026-01-01"]},
        {**RANGE, "to": "2025-01-01"},
        {**RANGE, "to": None},
        {**RANGE, "mode": "drop"},
        {**RANGE, "range": "all"},
        {**RANGE, "range": ["event-time"]},
        {**RANGE, "mode": "merge", "keys": ["id, x"]},
        {**RANGE, "dry_run": "false"},
        {**RANGE, "then_stream": True},
        {"range": "version", "from": "1", "to": "9" * 200_000},
        {"range": "offset", "from": "{", "to": "}"},
    ],
)
def test_a_hostile_form_starts_nothing(run, form):
    """Whatever is not of its kind fails at once, and no driver is started."""
    with pytest.raises(AirflowFailException):
        run(**form)
    assert not run.calls.exists()


def test_rows_of_a_condition():
    """It stands in for the ends and the column, whose defaults are passed over; beside another kind of range it is refused."""
    form = {"tables": ["a"], "range": "where", "where": "x = '-1'", "column": "at", "dry_run": False}
    assert read_backfill(form, DAY).arguments() == ["--tables=a", "--where=x = '-1'"]
    for wrong in ({"range": "event-time"}, {"where": None}, {"from": "2026-01-01"}):
        with pytest.raises(UsageError):
            read_backfill({**form, **wrong}, DAY)


def test_half_a_form_is_a_dry_run():
    """Who posts without the form's defaults writes nothing by leaving something out."""
    assert read_backfill({"tables": ["a"], **RANGE}, None).switches == ("dry_run",)


def test_the_dag_has_a_form_and_an_interval_if_it_is_given_one(medallion):
    """Airflow's own backfill needs a schedule whose runs have intervals; their number at once is bounded."""
    dag = PipelineBackfillDag("medallion")
    assert (dag.dag_id, dag.schedule, dag.max_active_runs) == ("medallion_backfill", None, 1)
    assert set(dag.params) >= {"tables", "range", "column", "from", "to", "mode", "keys", "dry_run"}
    dag = PipelineBackfillDag("medallion", interval="0 0 * * *", max_active_runs=4)
    assert (type(dag.schedule).__name__, dag.max_active_runs) == ("CronDataIntervalTimetable", 4)
    assert dag.get_task("backfill").max_active_tis_per_dag == 2
    with pytest.raises(UsageError):
        PipelineBackfillDag("medallion", scheduled=True)


def test_an_interval_before_there_are_tables(medallion, roots):
    """Airflow refuses a schedule where a form has no valid value: before its first manifest a pipeline would have no DAG at all."""
    (roots / "pipelines" / "medallion" / "manifest.json").unlink()
    dag = PipelineBackfillDag("medallion", interval="@daily")
    dag.validate()
    assert dag.params["tables"] == []
    with pytest.raises(UsageError, match="No table is chosen"):
        read_backfill(dict(dag.params), DAY)
