"""``events`` with its filters and ``--follow``, and ``quality``."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.headwater.commands.test_reading_verbs import call

from headwater.commands.command_line import main
from headwater.commands.events import follow_events
from headwater.commands.quality import percent, sparkline
from headwater.contract.moments import count, moment
from headwater.event_log import details
from headwater.event_log.details import FlowStatus
from headwater.event_log.writer import EventLogWriter


@pytest.fixture
def ruled(done):
    """A pipeline with two updates in which a rule was checked."""
    for update, passed, failed in (("u1", 5, 0), ("u2", 999_999, 1)):
        with EventLogWriter(done.project.state_folder, "orders", "orders", update) as log:
            rules = [
                {"name": "known", "dataset": "bronze", "passed_records": passed, "failed_records": failed}
            ]
            body = details.flow_progress(
                FlowStatus.RUNNING, dropped=failed, quarantined=0, expectations=rules
            )
            log.emit(
                "flow_progress", "a batch", flow="bronze", dataset="bronze", batch_id=passed, details=body
            )
            log.emit("user_action", "Look [here].", level="WARN")
    return done


def messages(ruled, capsys, *more):
    return [
        e["message"]
        for e in json.loads(call(ruled, capsys, "events", "--json", *more).splitlines()[-1])["events"]
    ]


def test_filters_of_events(ruled, capsys):
    """Type (several), flow, dataset, update, span and limit keep the right records."""
    assert messages(ruled, capsys, "--type=user_action") == ["Look [here]."] * 2
    assert len(messages(ruled, capsys, "--type=user_action,flow_progress")) == 4
    assert messages(ruled, capsys, "--update-id=u2", "--dataset=bronze") == ["a batch"]
    assert messages(ruled, capsys, "--since=1h", "--limit=1") == ["Look [here]."]
    assert messages(ruled, capsys, "--until=1h") == []
    assert messages(ruled, capsys, "--since=2020-01-01", "--until=2020-01-02T08:00") == []


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--limit=0", "whole number from 1"),
        ("--limit=many", "whole number from 1"),
        ("--since=soon", "neither a time"),
        ("--until=999999999999d", "neither a time"),
        ("--type=,", "at least one name"),
        ("--level=LOUD", "invalid choice"),
        ("--flow=bronce", "no such flow.\n  what to do: Did you mean 'bronze'?"),
        ("--dataset=tin", "There is: bronze, silver, gold"),
        ("--type=flow_progress,update_progres", "Did you mean 'update_progress'?"),
        ("--update-id=u", "2 update ids begin like this.\n  what to do: Give more of it: u1, u2."),
        ("--update-id=x", "The newest is u2"),
    ],
)
def test_bad_filters_are_refused(ruled, capsys, argument, said):
    """An argument that means nothing ends with code 2 and a sentence."""
    roots = [f"--storage={ruled.project.storage}", f"--warehouse={ruled.project.warehouse}"]
    assert main(["events", str(ruled.project.folder), *roots, argument]) == 2
    assert said in capsys.readouterr().err


def test_filters_that_find_nothing(ruled, capsys):
    """The beginning of an id is enough; a request may come yet."""
    assert len(messages(ruled, capsys, "--update-id=u1")) == 2
    assert json.loads(call(ruled, capsys, "events", "--json", "--request-id=later"))["events"] == []
    assert json.loads(call(ruled, capsys, "events", "--json", "--flow=gold"))["events"] == []


@pytest.mark.parametrize(
    "arguments",
    [["--sql=SELECT 1", "--level=WARN"], ["--follow", "--until=1h"], ["--sql=SELECT 1", "--follow"]],
)
def test_what_can_not_be_honoured_is_refused(ruled, capsys, arguments):
    """Filters beside a query, and an end beside --follow, are refused, not ignored."""
    assert main(["events", str(ruled.project.folder), *arguments]) == 2
    assert "can't be given beside" in capsys.readouterr().err


def test_follow_prints_what_comes(ruled, capsys):
    """With --follow new records are printed as they are written, each once, until Ctrl-C."""
    waits = []

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 1:
            with EventLogWriter(ruled.project.state_folder, "orders", "orders", "u3") as log:
                log.emit("user_action", "something new")
        if len(waits) == 3:
            raise KeyboardInterrupt

    assert follow_events(ruled.project, {"limit": 1}, as_json=False, wait=wait) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].endswith("Look [here].")
    assert lines[1].endswith("something new")


def test_quality_as_json(ruled, capsys):
    """Each rule has its points by update, and each dataset the rows kept out."""
    answer = json.loads(call(ruled, capsys, "quality", "--json").splitlines()[-1])
    (rule,) = answer["rules"]
    assert [(p["update_id"], p["failed"]) for p in rule["updates"]] == [("u1", 0), ("u2", 1)]
    assert answer["datasets"] == [{"dataset": "bronze", "dropped": 1, "quarantined": 0, "updates": 2}]
    (rule,) = json.loads(call(ruled, capsys, "quality", "--updates=1", "--json"))["rules"]
    assert len(rule["updates"]) == 1


def test_quality_for_people(ruled, capsys):
    """A rate that is not whole is not shown as 100, and the bars fall where the rate fell."""
    shown = call(ruled, capsys, "quality")
    assert "> 99.99" in shown
    assert "█▁" in shown
    assert "no rule has been checked in that time" in call(ruled, capsys, "quality", "--since=2999-01-01")


def test_quality_without_a_log(pipeline, capsys):
    """A pipeline that never ran says so, and knows no id that could be wrong."""
    assert "no rule has been checked yet" in call(pipeline, capsys, "quality")
    assert json.loads(call(pipeline, capsys, "events", "--json", "--update-id=x"))["events"] == []


def test_quality_of_a_dataset_without_rules(ruled, capsys):
    """A dataset that has no rules is distinguished from one whose rules have not been checked."""
    roots = [f"--storage={ruled.project.storage}", f"--warehouse={ruled.project.warehouse}"]
    assert main(["quality", str(ruled.project.folder), *roots, "--dataset=bronse"]) == 2
    assert (
        "no dataset of that name has rules.\n  what to do: Did you mean 'bronze'?" in capsys.readouterr().err
    )


def test_percent_and_bars():
    """Shares near the ends keep their side of them; bars span from the lowest rate to 100 percent."""
    assert [percent(r) for r in (None, 0.0, 1e-9, 0.5, 0.98765, 0.9999999, 1.0)] == [
        *("", "0", "< 0.01", "50", "98.77", "> 99.99", "100"),
    ]
    assert sparkline([1.0, 1.0]) == "██"
    assert sparkline([0.0, 0.5, None, 1.0]) == "▁▅·█"
    assert sparkline([]) == ""


def test_moments_and_counts():
    """Times are UTC unless they say otherwise; durations count back from now."""
    now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert moment("90 minutes", now) == now - timedelta(minutes=90)
    assert moment("7d", now) == now - timedelta(days=7)
    assert moment("2026-01-31T08:00") == datetime(2026, 1, 31, 8, tzinfo=UTC)
    assert moment("2026-01-31T08:00+02:00") == datetime(2026, 1, 31, 6, tzinfo=UTC)
    assert count("3") == 3
    with pytest.raises(argparse.ArgumentTypeError):
        moment("yesterday")


def test_metrics_of_streams(ruled, capsys):
    """`status --metrics` shows the five measures of each stream's newest batch; without it they are not there."""
    with EventLogWriter(ruled.project.state_folder, "orders", "orders", "u3") as log:
        log.emit("create_update", "", details=details.create_update())
        for batch, rate in ((7, 1.5), (8, 1234.5)):
            metrics = {
                "batch_duration_ms": 2500,
                "input_rows_per_second": rate,
                "state_bytes": 4000,
                "state_rows": 12,
            }
            body = details.flow_progress(
                FlowStatus.RUNNING, metrics={**metrics, "watermark_lag_seconds": 90.0}
            )
            log.emit(
                "flow_progress",
                "",
                level="METRICS",
                flow="silver",
                dataset="silver",
                batch_id=batch,
                details=body,
            )
    assert "streams" not in json.loads(call(ruled, capsys, "status", "--json").splitlines()[-1])
    (stream,) = json.loads(call(ruled, capsys, "status", "--metrics", "--json").splitlines()[-1])["streams"]
    assert (stream["batch_id"], stream["input_rows_per_second"], stream["state_rows"]) == (8, 1234.5, 12)
    shown = call(ruled, capsys, "status", "--metrics")
    assert [text for text in ("1234.5", "2.5 s", "4 kB", "90 s") if text not in shown] == [], shown


def test_sql_becomes_the_program_that_starts_spark(ruled, monkeypatch):
    """`events --sql` hands roots, parameters, limit and the text to the program under jobs, as they were given."""
    became = []
    monkeypatch.setattr(
        "headwater.commands.run.become_program", lambda name, argv: became.append((name, argv))
    )
    folder = str(ruled.project.folder)
    arguments = ["--storage=/s", "--param=a=b", "--json", "--limit=5", "--sql=SELECT 1"]
    assert main(["events", folder, *arguments]) == 1
    expected = [folder, "--storage=/s", "--param=a=b", "--limit=5", "--json", "--sql=SELECT 1"]
    assert became == [("query_events.py", expected)]
