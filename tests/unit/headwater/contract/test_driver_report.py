"""What drivers write is what Airflow reads."""

from __future__ import annotations

import json

import pytest

from headwater.contract.driver_report import ReportedError, read_report
from headwater.contract.failure_report import run_and_report
from headwater.contract.report import FlowReport, RunReport
from headwater.errors import (
    FlowFailed,
    FlowInterrupted,
    HeadwaterError,
    InvalidSpec,
    LeaseLost,
    MaintenanceFailed,
    SourceFileFailed,
    SourceMismatch,
    UpdateInProgress,
)
from headwater_airflow.driver.process import DriverReport as LineCatcher
from headwater_airflow.driver.verdict import judge


def caught(capsys):
    """The last line of what was printed, as the task catches it."""
    catcher = LineCatcher()
    list(catcher.without_report(capsys.readouterr().out.splitlines()))
    return catcher.content


def reported(*errors: HeadwaterError | None) -> RunReport:
    """The report of an update whose flows ended so."""
    flows = tuple(
        FlowReport(
            f"f{number}",
            "t",
            "FAILED" if error else "COMPLETED",
            error=ReportedError.of(error) if error else None,
        )
        for number, error in enumerate(errors)
    )
    return RunReport("u", "FAILED", flows, 1.0)


@pytest.mark.parametrize(
    ("errors", "transient"),
    [
        ([FlowInterrupted("Broker away.", remedy="Wait.")], True),
        ([FlowInterrupted("Broker away."), None, LeaseLost("Gone.")], True),
        ([FlowFailed("Bad cast.")], False),
        ([FlowInterrupted("Broker away."), FlowFailed("Bad cast.")], False),
        ([SourceMismatch("Another topic.")], False),
    ],
)
def test_flows_errors_decide_without_an_event_log(errors, transient, capsys):
    """A report that the real code printed, and no record in the event log: Airflow tries again what may pass, and nothing else."""
    report = reported(*errors)
    report.show(as_json=True)
    verdict = judge(report.exit_code, caught(capsys), [])
    assert verdict.transient is transient
    assert not verdict.silent
    for error in filter(None, errors):
        assert f"[{error.condition}] {error.what}" in verdict.message
    assert ("what to do: Wait." in verdict.message) is (errors[0].remedy == "Wait.")


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (UpdateInProgress("Another one runs."), True),
        (InvalidSpec("Unknown key.", where="pipeline.yml:3"), False),
        (MaintenanceFailed("silver"), False),
        (ValueError("x"), False),
        (KeyboardInterrupt(), True),
    ],
)
def test_an_error_that_ends_a_program(error, transient, capsys):
    """What updates, backfills and maintenance end with, through the one way in which all of them end."""

    def action() -> int:
        raise error

    code = run_and_report(action, as_json=True)
    verdict = judge(code, caught(capsys), [])
    assert (verdict.transient, verdict.silent) == (transient, False)


def test_reports_are_read_as_they_were_written():
    """Through JSON and back nothing of an error is lost."""
    error = ReportedError.of(FlowInterrupted("Away: ä.", where="a.py:3", remedy="Wait."))
    content = json.loads(
        RunReport("u", "FAILED", (FlowReport("f", "t", "FAILED", error=error),), 1.0, error=error).to_json()
    )
    report = read_report(content)
    assert report is not None
    assert (report.error, report.flows[0].error) == (error, error)
    assert report.error is not None
    assert report.error.help.endswith("#flow_interrupted")


@pytest.mark.parametrize("content", [None, {"flows": 3}, {"error": "text"}, {"flows": [{"error": "text"}]}])
def test_other_lines_are_no_report(content):
    """A line of another form is ignored: the driver counts as one that ended without a report."""
    assert read_report(content) is None
    assert judge(1, content, []).silent


def test_secrets_of_unexpected_errors(capsys, monkeypatch):
    """An exception that nobody expected may quote a secret; neither line shows it."""
    monkeypatch.setenv("HEADWATER_SECRET_A", "Hunter2Canary")

    def action() -> int:
        raise RuntimeError("can't log in with Hunter2Canary")

    run_and_report(action, as_json=True)
    printed = capsys.readouterr()
    assert "Hunter2" not in printed.out + printed.err


@pytest.mark.parametrize("kind", [SourceFileFailed, RuntimeError])
def test_an_error_that_quotes_a_secret(kind, capsys):
    """Standard error and the report show neither the value of a secret option nor one that the process knows."""
    said = (
        'kafka.sasl.jaas.config=Plain required password="Hunter2Canary";, and (awsSecretKey -> Hunter2Canary)'
    )

    def failing():
        raise kind(said)

    assert run_and_report(failing, as_json=True) in (1, 2)
    captured = capsys.readouterr()
    assert "[redacted]" in captured.err
    assert "[redacted]" in captured.out
    assert "Hunter2" not in captured.out + captured.err


def test_a_reported_error_keeps_the_rest(monkeypatch):
    """Of a flow's error only the secret goes: condition, place and advice stand as they were."""
    monkeypatch.setenv("HEADWATER_SECRET_KEY", "Hunter2Canary")
    error = FlowFailed("It said Hunter2Canary.", where="a.py:3", remedy="Not Hunter2Canary.")
    reported = ReportedError.of(error)
    assert (reported.message, reported.remedy) == ("It said [redacted].", "Not [redacted].")
    assert (reported.condition, reported.where, reported.transient) == (error.condition, "a.py:3", False)


def test_our_own_words_are_not_taken_for_secrets(monkeypatch):
    """Behind the name of a key stands what is wrong with it, and behind the name of a file its line."""
    monkeypatch.setenv("HEADWATER_SECRET_KEY", "Hunter2Canary")
    what = "`brokers.kafka:9092.password_env`: String should match (got 'Hunter2Canary')."
    error = InvalidSpec(what, where="/p/secrets.py:3", remedy="Give password_env: VARIABLE.")
    reported = ReportedError.of(error)
    assert reported.message == what.replace("Hunter2Canary", "[redacted]")
    assert (reported.where, reported.remedy) == (error.where, error.remedy)
    assert str(FlowFailed("a", where="/p/secrets.py:3")) == str(
        ReportedError.of(FlowFailed("a", where="/p/secrets.py:3"))
    )


@pytest.mark.parametrize(
    "line",
    [
        {"level": "info", "msg": "ready", "error": None},
        {"error": "timeout", "state": "open"},
        {"flows": 3, "state": "COMPLETED"},
        {"steps": ["a", "b"]},
        ["flows"],
    ],
)
def test_json_that_a_pipelines_code_prints_is_no_report(line):
    """It stays in the log, and a driver that is killed after it has ended without a word: Airflow tries again."""
    printed = json.dumps(line)
    catcher = LineCatcher()
    assert list(catcher.without_report([printed])) == [printed]
    assert judge(137, catcher.content, []).transient
    last = RunReport("u", "COMPLETED", (), 1.0).to_json()
    assert list(catcher.without_report([printed, last, printed])) == [printed, printed]
    assert catcher.content["update_id"] == "u"
