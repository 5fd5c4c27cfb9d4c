"""A secret of whatever way in is on no page, in no output of a command, in no file of state, and in no lineage."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowException
from tests.dags.observed_pipeline import write_observed_pipeline
from tests.dags.pipeline_folder import UpdateLog
from tests.dags.test_page import page

from headwater.checkpoints.layout import flow_checkpoint
from headwater.commands.command_line import main
from headwater.contract.driver_report import ReportedError
from headwater.contract.failure_report import run_and_report
from headwater.errors import FlowFailed, InvalidSpec, SourceFileFailed
from headwater.event_log.definition_details import flow_definition
from headwater.event_log.details import FlowStatus, UpdateState
from headwater.graph.lineage import lineage_edges
from headwater.graph.manifest import FILE_NAME, ExpectationEntry, SourceEntry, read_manifest
from headwater.kafka import times
from headwater.metrics import lag
from headwater.runtime import secret_values
from headwater_airflow.dag import PipelineDag
from headwater_airflow.notifications.alert import Alert
from headwater_airflow.notifications.webhook import WebhookNotifier

__all__ = ["page"]
CANARY = "Hunter2Canary"
SPEC = """
configuration: {hub: '${env:HUB_TOKEN}', jdbc_password: written-Hunter2Canary}
brokers:
  kafka:9092: {protocol: SASL_SSL, mechanism: PLAIN, username: me, password_env: BROKER}
"""
LOGIN = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{CANARY}";'
# What readStream.format(...).options(...) is given.
SOURCES = {
    "kafka": {"kafka.bootstrap.servers": "kafka:9092", "subscribe": "orders", "kafka.sasl.jaas.config": LOGIN, "kafka.ssl.truststore.password": CANARY},
    "eventhubs": {"eventhubs.connectionString": f"Endpoint=sb://ns/;SharedAccessKeyName=n;SharedAccessKey={CANARY}"},
    "kinesis": {"streamName": "s", "region": "eu", "endpoint": f"https://me:{CANARY}@kinesis:4567", "awsAccessKey": "AKIA", "awsSecretKey": CANARY},
    "jdbc": {"url": f"jdbc:postgresql://me:{CANARY}@db/shop?password={CANARY}", "dbtable": "orders", "password": CANARY},
    "json": {"path": f"s3a://AKIA:{CANARY}@bucket/landing", "fs.s3a.secret.key": CANARY},
    "csv": {"path": f"abfss://lot@lake.dfs.core.windows.net/in?sv=1&sig={CANARY}"},
    "delta": {"path": f"s3a://AKIA:{CANARY}@bucket/table"},
}  # fmt: skip
ERRORS = [
    *(f"{name}={value}" for options in SOURCES.values() for name, value in options.items()),
    f"HUB says {CANARY}",
]


_ENTRIES = """
import json, pathlib, sys
from headwater_spark.sources.plan_sources import TableNames, _entry
names = TableNames(pathlib.Path("/stubs"), pathlib.Path("/warehouse"), {})
found = [_entry(name, options, names, streaming=True) for name, options in json.load(sys.stdin).items()]
print(json.dumps([entry.model_dump(mode="json") for entry in found]))
"""


@pytest.fixture
def secretive(roots, monkeypatch):
    """A pipeline that has run, and has a secret at each of its ways in; its folder of state."""
    monkeypatch.setattr(secret_values, "_noted", set())
    for name in ("HUB_TOKEN", "BROKER", "HEADWATER_SECRET_SCOPE_KEY"):
        monkeypatch.setenv(name, CANARY)
    state = write_observed_pipeline(roots)
    folder = roots / "pipelines" / "medallion"
    spec = folder / "pipeline.yml"
    spec.write_text(spec.read_text() + SPEC)
    manifest = read_manifest(folder / FILE_NAME)
    sources = _sources()
    monkeypatch.setattr(lag, "broker_connection", lambda _: _no_broker)
    # Where a repair is planned, the doctor asks a broker that is not there.
    monkeypatch.setattr(times, "_TIMEOUT_SECONDS", 0.2)
    rule = ExpectationEntry(name="rule", constraint=f"password = '{CANARY}'", action="drop")
    manifest = manifest.model_copy(
        update={
            "datasets": tuple(
                entry.model_copy(update={"expectations": (rule,), "comment": f"of {CANARY}", "table_properties": {"x": CANARY}})
                for entry in manifest.datasets
            ),
            "flows": tuple(
                flow.model_copy(update={"sources": sources}) if flow.name == "bronze" else flow for flow in manifest.flows
            ),
        }
    )  # fmt: skip
    for place in (folder, state):
        (place / FILE_NAME).write_text(manifest.to_json())
    return state


def _sources() -> tuple[SourceEntry, ...]:
    """The sources as an update writes them, made by a process of its own: pyspark is not to be loaded here."""
    # Kinesis would be asked over the network.
    selected = {name: options for name, options in SOURCES.items() if name != "kinesis"}
    done = subprocess.run(
        [sys.executable, "-c", _ENTRIES],
        input=json.dumps(selected),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(map(SourceEntry.model_validate, json.loads(done.stdout)))


def _no_broker(servers):
    raise RuntimeError(f"{servers} says: sasl.password={CANARY}x, {CANARY}")


def record_failure(state) -> None:
    """What a failed update leaves in the log: definitions with Spark's plan, and errors that quote options."""
    log = UpdateLog(state, "request-2", "update-2")
    options = ",".join(f"{k}={v}" for source in SOURCES.values() for k, v in source.items())
    plan = f"StreamingRelationV2 org.apache.spark.sql.kafka010.KafkaSourceProvider@1, kafka, [{options},a=b], [key#1]"
    manifest = read_manifest(state / FILE_NAME)
    log.writer.emit(
        "flow_definition", "Flow bronze.", flow="bronze", dataset="bronze",
        details=flow_definition(manifest, manifest.flows_into("bronze")[0], explain_text=plan, spark_conf={"x.secret": CANARY}),
    )  # fmt: skip
    error = FlowFailed("\n".join(ERRORS), remedy=ERRORS[-1])
    error.__cause__ = ValueError(ERRORS[0])
    log.flow("bronze", FlowStatus.FAILED, error=error, will_retry=False)
    log.update(UpdateState.FAILED)
    log.close()


def outputs(capsys) -> Iterator[str]:
    """What each command prints."""
    for verb in (
        ("status",), ("graph",), ("events",), ("lag",), ("quality",), ("maintenance",), ("checkpoints", "list"), ("checkpoints", "diagnose"),
    ):  # fmt: skip
        for shape in ((), ("--json",)):
            main([*verb, "pipelines/medallion", *shape])
            output = capsys.readouterr()
            yield output.out + output.err
    for known in ({}, {"--param": f"api_token={CANARY}"}):
        main(["status", "pipelines/medallion", "--json", *(f"{k}={v}" for k, v in known.items())])
        output = capsys.readouterr()
        yield output.out + output.err


def test_commands_state_and_lineage(secretive, roots, monkeypatch, capsys, caplog):
    """Output of commands as text and as JSON, every file of the state, both manifests, the DAG, lineage, logs."""
    monkeypatch.chdir(roots)
    record_failure(secretive)
    with caplog.at_level(logging.DEBUG):
        texts = list(outputs(capsys))
    assert any("[redacted]" in text for text in texts)
    for text in texts:
        assert CANARY not in text
    for path in [*secretive.rglob("*"), roots / "pipelines" / "medallion" / FILE_NAME]:
        if path.is_file():
            assert CANARY.encode() not in path.read_bytes(), path
    manifest = read_manifest(secretive / FILE_NAME)
    assert CANARY not in repr(lineage_edges(manifest, roots / "warehouse"))
    assert CANARY not in caplog.text
    from airflow.serialization.serialized_objects import DagSerialization

    assert CANARY not in json.dumps(DagSerialization.to_dict(PipelineDag("medallion")), default=str)


def test_the_page(secretive, page):
    """Every page, after a failed update, with a sick checkpoint."""
    record_failure(secretive)
    checkpoint = flow_checkpoint(secretive, "silver", "silver").epoch_folder(0)
    (checkpoint / "offsets" / "0").write_text(f"v1\n{{}}\npassword={CANARY}")
    for address in ("", "/flows/bronze", "/checkpoints"):
        text = page(f"/pipelines/medallion{address}")
        assert "medallion" in text
        assert CANARY not in text
    assert CANARY not in page("/")


def test_a_spec_that_is_wrong(secretive, page, roots, monkeypatch, capsys):
    """The error of a value from the environment shows the value as it is written, wherever the error is shown."""
    spec = roots / "pipelines" / "medallion" / "pipeline.yml"
    spec.write_text(
        spec.read_text() + "event_log: {retention_days: '${env:ODD}'}\nmaintenance: {keep: 'x ${env:ODD}'}\n"
    )
    monkeypatch.setenv("ODD", CANARY)
    with pytest.raises(InvalidSpec) as caught:
        PipelineDag("medallion")
    shown = [str(caught.value), page("/"), page("/pipelines/medallion")]
    assert main(["status", str(spec.parent), "--json"]) == 2
    shown += ["".join(capsys.readouterr())]
    for text in shown:
        assert "${env:ODD}" in text
        assert CANARY not in text


@pytest.mark.parametrize("error", [SourceFileFailed, RuntimeError])
def test_the_end_of_a_driver(secretive, error, capsys):
    """Whatever ends it: standard error, and the report as the last line."""

    def failing():
        raise error("\n".join(ERRORS))

    run_and_report(failing, as_json=True)
    output = "".join(capsys.readouterr())
    assert "[redacted]" in output
    assert CANARY not in output
    if error is SourceFileFailed:
        assert CANARY not in str(
            ReportedError.of(SourceFileFailed(ERRORS[0], where=ERRORS[1], remedy=ERRORS[-1]))
        )


def test_a_web_hook(monkeypatch, caplog):
    """Its address is in no error and no log."""
    hook = Connection(
        conn_id="hook",
        conn_type="http",
        host="localhost",
        port=9,
        schema="http",
        password=f"services/{CANARY}",
    )
    monkeypatch.setattr("headwater_airflow.notifications.webhook.BaseHook.get_connection", lambda _: hook)
    notifier = WebhookNotifier("hook")
    alert = Alert("p", "lag", "open", ("a line",))
    for post in (httpx.post, lambda url, **_: httpx.Response(500, request=httpx.Request("POST", url))):
        monkeypatch.setattr(httpx, "post", post)
        with caplog.at_level(logging.INFO), pytest.raises(AirflowException) as caught:
            notifier.notify({"alert": alert})
        assert CANARY not in repr(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert CANARY not in caplog.text
    assert CANARY not in repr({name: getattr(notifier, name) for name in notifier.template_fields})
