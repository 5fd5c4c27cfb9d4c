"""Limits of `pipeline.yml`, held by the check DAG, and told to people by mail."""

from __future__ import annotations

import json
import runpy
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
import yaml
from airflow.providers.smtp.notifications.smtp import SmtpNotifier
from airflow.sdk import BaseNotifier
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowTaskTimeout
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from tests.dags.mail_server import MailServer
from tests.dags.observed_pipeline import tell_batch, write_observed_pipeline
from tests.dags.pipeline_folder import UpdateLog
from tests.dags.web_hook import SECRET, WebHook

import headwater.commands
from headwater.definitions.source import SourceKind
from headwater.errors import UsageError
from headwater.event_log.details import UpdateState, create_update
from headwater.graph.manifest import FILE_NAME, SourceEntry, read_manifest
from headwater_airflow.conditions.freshness import FreshnessCondition
from headwater_airflow.dag import PipelineCheckDag, PipelineDag
from headwater_airflow.notifications.alert import Alert, send
from headwater_airflow.notifications.log import LogNotifier
from headwater_airflow.notifications.webhook import WebhookNotifier
from headwater_airflow.sensors.freshness import FreshnessSensor

CHECKOUT = Path(__file__).resolve().parents[2]


class Notes(BaseNotifier):
    """Keeps what it is told; fails while it is `away`."""

    template_fields = ("text",)

    def __init__(self, text="{{ alert.text }}"):
        super().__init__()
        self.text = text
        self.told = []
        self.away = []

    def notify(self, context):
        if self.away:
            raise ConnectionError("the network is away")
        self.told.append((context["alert"].state, self.text))


@pytest.fixture
def observed(roots):
    """The pipeline `medallion` after an update; its folder of state."""
    return write_observed_pipeline(roots)


@pytest.fixture
def check(observed, roots):
    """Run the checks of the DAG with these alerts; gives each task's end."""
    context = {"ti": SimpleNamespace(task_id="check"), "params": {}}

    def run(alerts, *notifiers, more=""):
        spec = roots / "pipelines" / "medallion" / "pipeline.yml"
        spec.write_text(f"name: medallion\nschema: shop\nairflow: {{alerts: {alerts}}}\n{more}")
        ends = {}
        for task in PipelineCheckDag("medallion", notifiers=notifiers).tasks:
            try:
                json.dumps(task.execute(dict(context)))
                ends[task.task_id] = "green"
            except AirflowFailException as error:
                ends[task.task_id] = str(error)
        return ends

    return run


def test_each_kind_of_limit_has_a_task(check):
    """Only what has a limit is checked, and checkpoints unless they are left out; within limits all are green."""
    assert check("{}") == {"lag": "green", "checkpoints": "green"}
    assert check("{checkpoint_health: false}") == {"lag": "green"}
    every = "{freshness_minutes: 10, failed_rules_percent: 50, batch_seconds: 10, retention_percent: 50}"
    assert check(every) == dict.fromkeys(
        ("lag", "freshness", "rules", "checkpoints", "pace", "retention"), "green"
    )


def test_a_batch_is_compared_with_the_interval_of_its_trigger(check):
    """With `processing_time` nobody has to repeat it as a limit; one that is given wins, and null takes it away (features A057)."""
    every = "trigger: {processing_time: 1 second, run_for: 1 minute}\n"
    ends = check("{}", more=every)
    assert (
        "gold: its newest 3 batches took 1.2 s (median), limit 1, the interval of its trigger" in ends["pace"]
    )
    assert check("{}", more=every.replace("1 second", "2 seconds"))["pace"] == "green"
    its_own = every + 'configuration: {pipelines.trigger.interval: "2 seconds"}\n'
    assert check("{}", more=its_own)["pace"] == "green"
    assert check("{batch_seconds: 5}", more=every)["pace"] == "green"
    assert "pace" not in check("{batch_seconds: null}", more=every)


def test_events_grow_old_though_commits_are_new(check, roots):
    """The limit is what the query over the events gives, beside the one by commits; a time that is not known is over (features A132)."""
    hours_ago = datetime.now(UTC) - timedelta(hours=2)
    table = roots / "warehouse" / "shop" / "bronze"
    rows = pa.table({"id": [1], "event_timestamp": [hours_ago]})
    write_deltalake(str(table), rows, mode="append", schema_mode="merge")
    (lag,) = pa.table(
        QueryBuilder()
        .register("user_events", DeltaTable(str(table)))
        .execute(
            "SELECT extract(epoch FROM now()) - extract(epoch FROM max(event_timestamp)) AS lag_seconds FROM user_events"
        )
        .read_all()
    ).to_pylist()
    limit = "{{freshness_minutes: 10, event_freshness: {{bronze: {{column: {}, minutes: {}}}}}}}"
    assert check(limit.format("event_timestamp", int(lag["lag_seconds"] / 60) + 1))["freshness"] == "green"
    ends = check(limit.format("event_timestamp", int(lag["lag_seconds"] / 60) - 1))
    assert ends["freshness"] == "bronze: the newest event_timestamp is 120 minutes ago, limit 119"
    assert "no file has statistics of arrived" in check(limit.format("arrived", 60))["freshness"]
    assert (
        "the pipeline has no such table"
        in check(limit.replace("bronze", "iron").format("at", 60))["freshness"]
    )
    assert FreshnessSensor(task_id="s", pipeline="medallion", dataset="bronze", event_time="event_timestamp", max_seconds=7300).condition().look().met  # fmt: skip
    sighting = FreshnessCondition("medallion", "bronze", 60, "event_timestamp").look()
    assert not sighting.met
    assert sighting.payload["datasets"][0]["newest"] == pytest.approx(hours_ago.timestamp(), abs=0.01)
    with pytest.raises(UsageError):
        FreshnessSensor(task_id="s", pipeline="medallion", event_time="at", max_seconds=1)


def test_every_shipped_dag_has_limits_and_somebody_to_tell(monkeypatch, caplog):
    """Lag, freshness by commit and by event, and a notifier: in the sample pipeline, what `init` writes, and the DAG over changes
    (features A058); the notifier that they name writes the alert into the log.
    """
    templates = Path(headwater.commands.__file__).parent / "templates" / "pipeline.yml.tmpl"
    for text in (CHECKOUT / "jobs/pipelines/orders/pipeline.yml", templates):
        airflow = yaml.safe_load(text.read_text())["airflow"]
        assert {"lag_seconds", "freshness_minutes"} <= set(airflow["alerts"])
        assert airflow["notifiers"] == [{"notifier": "headwater_airflow.notifications.log.LogNotifier"}]
    monkeypatch.setenv("HEADWATER_PIPELINES", str(CHECKOUT / "jobs" / "pipelines"))
    checks = PipelineCheckDag("orders")
    assert set(checks.task_ids) == {"lag", "freshness", "checkpoints"}
    assert checks.get_task("freshness").events == {"orders_bronze": {"column": "arrived_at", "minutes": 60}}
    assert all([type(n) for n in task.notifiers] == [LogNotifier] for task in checks.tasks)
    assert PipelineDag("orders").on_failure_callback
    assert runpy.run_path(str(CHECKOUT / "dags" / "revenue_changes.py"))["dag"].on_failure_callback
    alert = Alert("orders", "lag", "open", ("orders_bronze is behind",))
    with caplog.at_level("WARNING"):
        send([LogNotifier()], alert, {})
    assert "[headwater] orders, lag: a limit broken\n\n- orders_bronze is behind" in caplog.text


def test_a_message_says_what_to_do(check, observed, roots):
    """A line of advice for each finding about the flow that is over, in the log and in what notifiers see; with `advice: true`
    every warning turns a task of its own red.
    """
    spec = roots / "pipelines" / "medallion" / "pipeline.yml"
    log = UpdateLog(observed, "request-2", "update-2")
    log.writer.emit("create_update", "Requested.", details=create_update(source_hash="h"))
    for batch in range(3, 9):
        tell_batch(log, "silver", batch, rows=50_000 if batch == 5 else 50)
    log.close()
    manifest = read_manifest(spec.with_name(FILE_NAME))
    topic = SourceEntry(
        kind=SourceKind.KAFKA, streaming=True, name="sales", format="kafka", options={"subscribe": "sales"}
    )
    flows = tuple(
        f.model_copy(update={"sources": (topic,)}) if f.name == "silver" else f for f in manifest.flows
    )
    spec.with_name(FILE_NAME).write_text(manifest.model_copy(update={"flows": flows}).to_json())
    notes = Notes()
    ends = check("{batch_seconds: 1, advice: true, checkpoint_health: false}", notes)
    line = (
        "silver: batches differ much in size (batch 5 had 50,002 rows and took 1.20 s; the median of 6 batches is 52 rows). "
        'Bound batches of sales by what they weigh: the read of the source: .option("maxOffsetsPerTrigger", 110)'
    )
    assert line in ends["pace"]
    assert line in ends["advice"]
    assert "silver: rows that break its rules are dropped, and kept nowhere" in ends["advice"]
    assert "NO_RULES" not in ends["advice"]
    (text,) = [text for state, text in notes.told if "pace" in text]
    assert f"What to do:\n- {line}" in text


def test_broken_limits_turn_their_task_red_with_the_numbers(check, observed, roots):
    """Data that is old, or not there; rows that fail; a checkpoint that is damaged."""
    shutil.rmtree(roots / "warehouse" / "shop" / "gold")
    ends = check("{freshness_minutes: 0, failed_rules_percent: 5, batch_seconds: 1}")
    assert "bronze: data is 0 minutes old, limit 0" in ends["freshness"]
    assert "gold has no data yet" in ends["freshness"]
    assert "bronze: 3 of 36 rows (8.3 %) failed positive, limit 5 %" in ends["rules"]
    assert "gold: its table is not there any more" in ends["checkpoints"]
    assert "silver: its newest 3 batches took 1.2 s (median), limit 1" in ends["pace"]


def test_one_alert_at_the_beginning_and_one_at_the_end(check, observed):
    """Repeats are suppressed, however the numbers move; every notifier is told, with its own templates."""
    notes, title = Notes(), Notes("{{ alert.title }}")
    limits = "{failed_rules_percent: 8, checkpoint_health: false}"

    def update(name, failed):
        log = UpdateLog(observed, name, name)
        tell_batch(log, "bronze", int(name), rows=100 - failed, failed=failed)
        log.close()

    check(limits, notes, title)
    update("10", 20)
    assert "20 of 100 rows" in check(limits, notes, title)["rules"]
    assert [state for state, _ in notes.told] == ["open"]
    assert title.told == [("open", "[headwater] medallion, rules: a limit broken")]
    assert "bronze: 3 of 36 rows (8.3 %) failed positive, limit 8 %" in notes.told[0][1]
    update("11", 0)
    for _ in range(2):
        assert check(limits, notes, title)["rules"] == "green"
    assert [state for state, _ in notes.told] == ["open", "resolved"]
    assert "over: bronze: 3 of 36 rows" in notes.told[1][1]
    update("12", 30)
    check(limits, notes, title)
    assert [state for state, _ in title.told] == ["open", "resolved", "open"]


def test_a_check_that_hangs_is_ended_and_announced(check, observed, monkeypatch):
    """Each check has a time after which Airflow ends it, else it would keep back all those after it; people hear of it."""
    tasks = PipelineCheckDag("medallion").tasks
    assert all(task.execution_timeout == timedelta(minutes=15) for task in tasks)
    notes = Notes()
    (lag,) = [
        task for task in PipelineCheckDag("medallion", notifiers=[notes]).tasks if task.task_id == "lag"
    ]

    def hang():
        raise AirflowTaskTimeout("Timeout")

    monkeypatch.setattr(lag, "measure", hang)
    with pytest.raises(AirflowTaskTimeout):
        lag.execute({"ti": SimpleNamespace(task_id="lag"), "params": {}})
    assert "the check can't be made: " in notes.told[0][1]


def test_a_check_that_cant_be_made_is_an_incident_and_closes_none(check, observed):
    """Said once, and once when it can be made again; what was open before stays open meanwhile. A secret in its error is not repeated."""
    notes, limits = Notes(), "{freshness_minutes: 0, checkpoint_health: false}"
    check(limits, notes)
    manifest = observed / FILE_NAME
    manifest.write_text('{"broken": ')
    for _ in range(2):
        assert "manifest" in check(limits, notes)["freshness"]
    manifest.unlink()
    assert "limit 0" in check(limits, notes)["freshness"]
    assert [state for state, _ in notes.told] == ["open", "open", "open", "resolved", "resolved"]
    assert "the check can't be made: " in notes.told[1][1]
    assert [text for _, text in notes.told if "over: bronze" in text] == []


def test_tables_that_are_gone_are_not_fresh(check, roots):
    """All of them removed: that is no pipeline that has not run yet, and nothing is resolved by it."""
    notes, limits = Notes(), "{freshness_minutes: 0, checkpoint_health: false}"
    check(limits, notes)
    shutil.rmtree(roots / "warehouse" / "shop")
    refused = UpdateLog(roots / "storage" / "pipelines" / "medallion", "request-2", "update-2")
    refused.update(UpdateState.FAILED)
    refused.close()
    assert "bronze has no data yet" in check(limits, notes)["freshness"]
    assert [state for state, _ in notes.told] == ["open"]


def test_an_alert_that_could_not_be_sent_is_sent_by_the_next_run(check):
    """The others are told all the same; the task fails for it, and nothing is lost."""
    broken, notes = Notes(), Notes()
    broken.away.append(True)
    limits = "{freshness_minutes: 0, checkpoint_health: false}"
    for _ in range(2):
        with pytest.raises(ConnectionError, match="the network is away"):
            check(limits, broken, notes)
    broken.away.clear()
    assert "limit 0" in check(limits, broken, notes)["freshness"]
    assert [state for state, _ in broken.told] == ["open"]
    assert "bronze" in broken.told[0][1]
    assert "3 limits broken" in broken.told[0][1]


def test_alerts_go_out_by_mail(check, observed, monkeypatch):
    """Through Airflow's own notifier and a connection, over real SMTP: one mail when it breaks, one when it is over."""
    offsets = observed / "checkpoints" / "silver" / "silver" / "0" / "offsets" / "0"
    whole = offsets.read_text()
    with MailServer() as server:
        connection = {
            "conn_type": "smtp",
            "host": "127.0.0.1",
            "port": server.port,
            "extra": {"disable_ssl": True, "disable_tls": True, "retry_limit": 1},
        }
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(connection))
        by_mail = SmtpNotifier(
            to=["oncall@example.org"],
            from_email="headwater@example.org",
            subject="{{ alert.title }}",
            html_content="<pre>{{ alert.text | e }}</pre>",
        )
        check("{}", by_mail)
        offsets.write_text("")
        for _ in range(3):
            assert "found nothing" in check("{}", by_mail)["checkpoints"]
        offsets.write_text(whole)
        for _ in range(2):
            assert check("{}", by_mail)["checkpoints"] == "green"
    subjects = [str(mail["Subject"]) for mail in server.mails]
    assert subjects == [
        "[headwater] medallion, checkpoints: a limit broken",
        "[headwater] medallion, checkpoints: resolved",
    ]
    assert {mail["To"] for mail in server.mails} == {"oncall@example.org"}
    body = server.mails[0].get_payload()[0].get_payload(decode=True).decode()
    assert "silver: Expected &#39;v1&#39; at the start" in body


@pytest.fixture
def web_hook(monkeypatch):
    """A web hook on loopback, with a connection."""
    with WebHook() as server:
        monkeypatch.setenv("AIRFLOW_CONN_HEADWATER_WEBHOOK", server.connection)
        yield server


def test_alerts_go_out_to_a_web_hook(check, web_hook):
    """As JSON with a text; a hook that refuses fails the task without telling its secret, and is told again."""
    web_hook.status = 500
    with pytest.raises(AirflowException) as refused:
        check("{batch_seconds: 1, checkpoint_health: false}", WebhookNotifier())
    assert str(refused.value) == "The web hook of the connection headwater_webhook answered 500."
    web_hook.status = 200
    for _ in range(2):
        check("{batch_seconds: 1, checkpoint_health: false}", WebhookNotifier())
    assert [path for path, _ in web_hook.requests] == [f"/{SECRET}"] * 2
    body = web_hook.requests[-1][1]
    assert (body["pipeline"], body["check"], body["state"]) == ("medallion", "pace", "open")
    assert body["text"].startswith("[headwater] medallion, pace: 3 limits broken")
    assert len(body["lines"]) == 3


def test_a_web_hook_that_is_away_tells_no_secret(check, monkeypatch):
    """Neither address nor path are in the error."""
    connection = {"conn_type": "http", "host": "127.0.0.1", "port": 1, "password": "canary-secret"}
    monkeypatch.setenv("AIRFLOW_CONN_HEADWATER_WEBHOOK", json.dumps(connection))
    with pytest.raises(AirflowException, match="can't be reached: ConnectError") as failed:
        check("{batch_seconds: 1, checkpoint_health: false}", WebhookNotifier())
    assert "canary" not in str(failed.value)
