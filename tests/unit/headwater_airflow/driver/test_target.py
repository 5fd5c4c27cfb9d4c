"""Where a connection sends a driver: as the provider's own hook reads it, and refused where no driver can run."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks import spark_submit as provider

from headwater.graph.pipeline_project import PipelineProject, open_project
from headwater.runtime import submit
from headwater.runtime.conditions import UnsupportedDeployment
from headwater_airflow.driver import submission
from headwater_airflow.driver.process import Driver
from headwater_airflow.driver.target import Target, target_of

CANARY = "Hunter2Canary"
SPEC = """
name: orders
storage: {root}/storage
cluster: {{python: /opt/workers/python3}}
spark: {{spark.hadoop.odd.secret.key: {canary}, spark.dynamicAllocation.enabled: true}}
"""


def connection(host: str, conn_type: str = "spark", port: int | None = None, **extra: Any) -> Any:
    """A connection as Airflow hands it out."""
    return SimpleNamespace(conn_type=conn_type, host=host, port=port, extra_dejson=extra)


def hook(monkeypatch: pytest.MonkeyPatch, of: Any, **arguments: Any) -> Any:
    """The provider's hook for a connection; nothing of Kubernetes is installed here, and building a command needs none."""
    monkeypatch.setattr(provider, "kube_client", object(), raising=False)
    monkeypatch.setattr(provider.SparkSubmitHook, "get_connection", lambda *_: of)
    return provider.SparkSubmitHook(**arguments)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PipelineProject:
    """A pipeline with a Python for its executors and a secret among its settings."""
    monkeypatch.setattr(submit, "ensure_jars", lambda group: [tmp_path / f"{group}.jar"])
    monkeypatch.setattr(submission, "java_environment", lambda: {"JAVA_HOME": "/this/machines/java"})
    (tmp_path / "pipeline.yml").write_text(SPEC.format(root=tmp_path, canary=CANARY))
    return open_project(tmp_path, storage=str(tmp_path / "storage"), warehouse=str(tmp_path / "warehouse"))


@pytest.mark.parametrize(
    "of",
    [
        connection("local[*]"),
        connection("spark://one:7077,two:7077"),
        connection("spark://one", port=7077),
        connection("one", port=7077),
        connection("yarn", **{"deploy-mode": "cluster"}),
        connection("", conn_type="yarn"),
        connection("k8s://https://api", port=6443, **{"deploy-mode": "cluster", "namespace": "n"}),
        connection("https://api", conn_type="k8s", port=6443),
    ],
)
def test_a_connection_is_read_as_the_provider_reads_it(monkeypatch: pytest.MonkeyPatch, of: Any):
    """Else a refusal would look at another master than the one that is submitted to."""
    theirs = hook(monkeypatch, of)._connection
    target = target_of(of)
    assert (target.master, target.deploy_mode) == (theirs["master"], theirs["deploy_mode"] or "client")


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (
            Target("spark://one:7077", "cluster"),
            "no cluster mode for Python programs on a standalone cluster",
        ),
    ],
)
def test_what_can_not_run_is_refused_with_the_reason(target: Target, reason: str):
    """Before anything is submitted; a retry gives the same."""
    with pytest.raises(UnsupportedDeployment, match=reason) as caught:
        target.refuse_unsupported("connection spark_default")
    assert not caught.value.transient


@pytest.mark.parametrize(
    "target",
    [
        Target("local[2]"),
        Target("spark://one:7077"),
        Target("yarn"),
        Target("yarn", "cluster"),
        Target("k8s://https://api:6443"),
        Target("k8s://https://api:6443", "cluster"),
    ],
)
def test_what_can_run_is_let_through(target: Target):
    """One machine, a standalone cluster, and YARN and Kubernetes with the driver beside the task or elsewhere."""
    target.refuse_unsupported("connection spark_default")


@pytest.mark.parametrize("master", ["spark://one:7077", "yarn"])
def test_a_driver_beside_its_task_on_a_cluster(
    monkeypatch: pytest.MonkeyPatch, project: PipelineProject, master: str
):
    """The provider's own command: executors get the Python that the pipeline names, all the jars, and nothing of this machine; no secret."""
    monkeypatch.setenv("HEADWATER_SECRET_TOKEN", CANARY)
    target = Target(master)
    variables = submission.driver_environment(project, target, {"HEADWATER_SECRET_TOKEN": CANARY})
    made = hook(
        monkeypatch,
        connection(master),
        conf=submission.driver_conf(project, target),
        env_vars={} if target.managed else variables,
        application_args=submission.driver_arguments(project, "request", 1, 3),
    )
    command = made._build_spark_submit_command(submission.application())
    settings = dict(text.split("=", 1) for text in command if "=" in text and text.startswith("spark."))
    assert command[1:3] == ["--master", master]
    assert settings["spark.pyspark.python"] == "/opt/workers/python3"
    assert settings["spark.pyspark.driver.python"] == sys.executable
    spark, ours = settings["spark.jars"].split(",")
    assert (spark.endswith("/spark.jar"), Path(ours).name.startswith("headwater-")) == (True, True)
    assert settings["spark.databricks.delta.snapshotPartitions"] == "2"
    assert settings["spark.dynamicAllocation.enabled"] == "true"
    assert "/this/machines/java" not in " ".join(command)
    assert CANARY not in " ".join(command)
    assert "PYSPARK_PYTHON" not in variables
    assert variables["PYSPARK_DRIVER_PYTHON"] == sys.executable


def test_one_machine_keeps_its_one_python(project: PipelineProject):
    """`cluster.python` has no effect where the connection names local[*], whatever the spec names for `headwater run`."""
    conf = submission.driver_conf(project, Target("local[2]"))
    assert not [name for name in conf if "pyspark" in name]
    assert submission.driver_environment(project, Target("local[2]"))["PYSPARK_PYTHON"] == sys.executable


def test_variables_reach_the_process_without_the_command_line(tmp_path: Path):
    """What the hook is not given, its process still has: of YARN too."""
    given: dict[str, Any] = {}
    double = SimpleNamespace(
        submit=lambda application, **options: given.update(options), _process_spark_submit_log=list
    )
    Driver(double, tmp_path, {"HEADWATER_SECRET_TOKEN": CANARY})
    double.submit("run_update.py")
    assert given["env"]["HEADWATER_SECRET_TOKEN"] == CANARY
    assert given["env"]["PATH"]
