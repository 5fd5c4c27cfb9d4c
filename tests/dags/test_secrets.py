"""A secret of a pipeline is in no argument, no log, no field and no report of its tasks."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowException
from tests.dags.pipeline_folder import UpdateLog, write_pipeline

from headwater.errors import FlowFailed
from headwater.event_log.details import FlowStatus, UpdateState
from headwater.event_log.reader import events
from headwater.graph.pipeline_project import open_project
from headwater.runtime import submit
from headwater_airflow.dag import PipelineDag
from headwater_airflow.driver import submission
from headwater_airflow.driver.target import Target

CANARY = "Hunter2Canary"
SPEC = """
configuration: {hub: '${env:HUB_TOKEN}'}
spark:
  spark.hadoop.fs.s3a.secret.key: ${env:ODD}
  spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net: ${env:ODD}
  spark.hadoop.fs.azure.sas.fixed.token.c.lake.dfs.core.windows.net: ${env:ODD}
  spark.hadoop.odd.place: prefix-${env:HUB_TOKEN}
  spark.sql.shuffle.partitions: 3
brokers:
  kafka:9092: {protocol: SASL_SSL, mechanism: PLAIN, username: me, password_env: BROKER}
"""


@pytest.fixture
def secretive(roots, monkeypatch):
    """A pipeline with a secret in each of its ways in."""
    for name in ("ODD", "HUB_TOKEN", "BROKER", "HEADWATER_SECRET_HUB_KEY"):
        monkeypatch.setenv(name, CANARY)
    folder = write_pipeline(roots / "pipelines" / "secretive")
    (folder / "pipeline.yml").write_text((folder / "pipeline.yml").read_text() + SPEC)
    monkeypatch.setattr(submit, "ensure_jars", lambda _: ())
    return folder


@pytest.mark.parametrize("master", ["local[2]", "spark://master:7077"])
def test_the_real_submit_command(secretive, monkeypatch, caplog, master):
    """The provider's own hook makes no argument and no line of the log with it, and the other settings are there."""
    monkeypatch.setenv(
        "AIRFLOW_CONN_SPARK_DEFAULT",
        json.dumps({"conn_type": "spark", "host": master, "extra": {"password": CANARY}}),
    )
    project = open_project(secretive)
    hook = SparkSubmitHook(
        conf=submission.driver_conf(project, Target(master)),
        application_args=submission.driver_arguments(project, "request", 1, 3),
    )
    with caplog.at_level(logging.DEBUG):
        command = hook._build_spark_submit_command(submission.application())
    assert "spark.sql.shuffle.partitions=3" in command
    assert CANARY not in " ".join(command)
    assert CANARY not in caplog.text


def test_a_task_and_its_records(secretive, roots, driver, monkeypatch, caplog):
    """Of a task that fails with a driver that quotes it: log, exception, event log, fields and form of the DAG."""
    driver.will({"exit": 1, "flows": {"bronze": "terminal"}})
    dag = PipelineDag("secretive")
    task = dag.get_task("update")
    instance = SimpleNamespace(dag_id="secretive", run_id="r", try_number=1, max_tries=2)
    with caplog.at_level(logging.DEBUG), pytest.raises(AirflowException) as caught:
        task.execute({"ti": instance, "params": {}})
    state = roots / "storage" / "pipelines" / "secretive"
    log = UpdateLog(state, "request-2", "update-2")
    log.flow(
        "bronze",
        FlowStatus.FAILED,
        error=FlowFailed(f"said {CANARY}, awsSecretKey => '{CANARY}'"),
        will_retry=False,
    )
    log.update(UpdateState.FAILED)
    log.close()
    (call,) = driver.calls
    records = "".join(path.read_text(errors="replace") for path in state.rglob("*.json"))
    shown = [
        str(caught.value),
        caplog.text,
        json.dumps(call),
        json.dumps(events(state), default=str),
        records,
    ]
    shown += [
        str({name: getattr(task, name, None) for name in task.template_fields}),
        (secretive / "manifest.json").read_text(),
    ]
    assert "[redacted]" in shown[3]
    for text in shown:
        assert CANARY not in text


def test_a_stores_connection_reaches_the_driver_by_its_environment_alone(
    secretive, driver, monkeypatch, caplog
):
    """Its keys are in no argument, log, field, report or XCom of the task, and in the variables of the process that it starts."""
    spec = secretive / "pipeline.yml"
    spec.write_text(spec.read_text().replace("airflow: {", "airflow: {store_connection: lake, "))
    keys = {"conn_type": "aws", "login": "AKIA-of-lake", "password": CANARY, "extra": {"region_name": "eu-1"}}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(keys))
    driver.will({"flows": {"bronze": 1}, "report": {"state": "COMPLETED", "flows": []}})
    dag = PipelineDag("secretive")
    task = dag.get_task("update")
    instance = SimpleNamespace(dag_id="secretive", run_id="r", try_number=1, max_tries=2)
    with caplog.at_level(logging.DEBUG):
        events = {asset: SimpleNamespace(extra={}) for asset in task.outlets}
        report = task.execute({"ti": instance, "params": {}, "outlet_events": events})
    (call,) = driver.calls
    assert call.pop("store") == {
        "AWS_ACCESS_KEY_ID": "AKIA-of-lake",
        "AWS_SECRET_ACCESS_KEY": CANARY,
        "AWS_REGION": "eu-1",
    }
    fields = {name: getattr(task, name, None) for name in task.template_fields}
    for text in (json.dumps(call), caplog.text, json.dumps(report, default=str), str(fields), str(events)):
        assert CANARY not in text
        assert "AKIA-of-lake" not in text


def test_the_dag_as_airflow_keeps_it(secretive):
    """What the DAG processor writes into Airflow's database."""
    from airflow.serialization.serialized_objects import DagSerialization

    serialized = json.dumps(DagSerialization.to_dict(PipelineDag("secretive")), default=str)
    assert "secretive" in serialized
    assert CANARY not in serialized
