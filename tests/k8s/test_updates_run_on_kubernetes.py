"""A task of Airflow runs its updates on a real API server of Kubernetes: drivers and executors are pods, which see the image and nothing of the checkout."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tests.dags.airflow_home as airflow_home  # before Airflow
import yaml
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from deltalake import DeltaTable
from tests.k8s.api_server import ApiServer, api_server
from tests.k8s.kubelet import NODE, Image, Kubelet, kubelet

from headwater.event_log.update_summary import UpdateSummary
from headwater.graph.pipeline_project import open_project
from headwater.runtime.cache import cache_root
from headwater.runtime.jars import ensure_jars
from headwater_airflow.driver import pods
from headwater_airflow.following.request import request_id
from headwater_airflow.following.update_record import request_updates
from headwater_airflow.operators.run_update import RunUpdateOperator

CHECKOUT = airflow_home.CHECKOUT
NAMESPACE = "headwater"
IMAGE = "registry.example/headwater:test"
RIGHTS = CHECKOUT / "docs" / "deployment" / "kubernetes-rights.yaml"
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SPEC = f"""
name: shop
cluster:
  image: {IMAGE}
  secrets: {{SHOP_TOKEN: "shop:token"}}
spark:
  spark.kubernetes.authenticate.driver.serviceAccountName: headwater-driver
  spark.kubernetes.driver.master: SERVER
  spark.kubernetes.driver.volumes.hostPath.data.mount.path: ROOT/data
  spark.kubernetes.driver.volumes.hostPath.data.options.path: ROOT/data
  spark.kubernetes.executor.volumes.hostPath.data.mount.path: ROOT/data
  spark.kubernetes.executor.volumes.hostPath.data.options.path: ROOT/data
  spark.local.dir: ROOT/local
  spark.ui.enabled: "false"
  spark.executor.instances: 1
  spark.executor.memory: 512m
  spark.driver.memory: 800m
  spark.sql.shuffle.partitions: 2
  spark.executor.defaultJavaOptions: {JVM}
  spark.driver.defaultJavaOptions: {JVM}
"""
SOURCE = """
import os
from names import tidy
from pyspark import pipelines as dp
from pyspark.sql import functions as F

TOKEN = os.environ.get("SHOP_TOKEN", "")

@dp.table
@dp.expect_or_drop("positive", "amount > 0")
def orders():
    files = spark.readStream.option("maxFilesPerTrigger", 1).schema("id INT, customer STRING, amount INT")
    rows = files.json("LANDING").withColumn("customer", F.udf(tidy)("customer"))
    there = F.udf(lambda _: str(len(os.environ.get("SHOP_TOKEN", ""))))("id")
    return rows.withColumn("lengths", F.concat_ws(" ", F.lit(len(TOKEN)), there))

@dp.materialized_view
def totals():
    return spark.read.table("orders").groupBy("customer").agg(F.sum("amount").alias("total"))
"""
NAMES = """
import os
import time

def tidy(name):
    assert name != "bad", "a bad name"
    if name == "slow":
        open("ROOT/data/held", "w").close()
        while os.path.exists("ROOT/data/hold"):
            time.sleep(0.1)
    return name.strip().title()
"""
TOKEN = "hunter2-of-the-shop"


def image(pipelines: Path) -> Image:
    """What this repository's Dockerfile makes, as far as pods see it: its folders, its variables and its entry point."""
    text = (CHECKOUT / "Dockerfile").read_text(encoding="utf-8")
    entry = json.loads(re.findall(r"^ENTRYPOINT (\[.*\])$", text, re.MULTILINE)[-1])
    variables = re.search(r"^ENV ((?:.*\\\n)*.*)", text, re.MULTILINE)
    assert variables is not None
    return Image(
        {
            "/opt/headwater/include": CHECKOUT / "include",
            "/opt/headwater/jobs": CHECKOUT / "jobs",
            "/opt/headwater/jobs/pipelines": pipelines,
            "/opt/headwater-cache": cache_root(),
        },
        entry[entry.index("--") + 1 :],
        {
            **dict(re.findall(r"(\w+)=([^\s\\]+)", variables[1])),
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": "/opt",
        },
        [CHECKOUT / "include", CHECKOUT / "jobs", CHECKOUT / "plugins", cache_root(), pipelines],
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server with a namespace, the rights of the pages, and a secret."""
    ensure_jars("spark")
    with api_server(tmp_path_factory.mktemp("k8s") / "api") as running:
        meta = {"namespace": NAMESPACE}
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {**meta, "name": "of-the-test"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "headwater-spark"},
            "subjects": [{"kind": "User", "name": "airflow", "apiGroup": "rbac.authorization.k8s.io"}],
        }
        authority = {"ca.crt": running.certificate.read_text()}
        running.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}},
            # What the controllers of a cluster make in each namespace.
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**meta, "name": "default"}},
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {**meta, "name": "kube-root-ca.crt"},
                "data": authority,
            },
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {**meta, "name": "shop"},
                "data": {"token": base64.b64encode(TOKEN.encode()).decode()},
            },
            *yaml.safe_load_all(RIGHTS.read_text(encoding="utf-8")),
            binding,
        )
        yield running


class Shop:
    """The pipeline, tasks that update it, and what runs its pods."""

    def __init__(self, root: Path, server: ApiServer, node: Kubelet) -> None:
        self.root, self.node, self.server = root, node, server
        self.landing, self.folder = root / "data" / "landing", root / "pipelines" / "shop"
        self.landing.mkdir(parents=True)
        (root / "local").mkdir()
        (self.folder / "transformations").mkdir(parents=True)
        self.spec = SPEC.replace("ROOT", str(root)).replace("SERVER", server.url)
        self.write_spec()
        (self.folder / "transformations" / "shop.py").write_text(SOURCE.replace("LANDING", str(self.landing)))
        (self.folder / "transformations" / "names.py").write_text(NAMES.replace("ROOT", str(root)))

    def write_spec(self, *changes: tuple[str, str], more: str = "") -> None:
        text = self.spec + more
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (self.folder / "pipeline.yml").write_text(text)

    def land(self, name: str, *orders: tuple[int, str, int]) -> None:
        rows = [{"id": i, "customer": customer, "amount": amount} for i, customer, amount in orders]
        (self.landing / f"{name}.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def hold(self) -> None:
        """Make the next batch with a slow customer wait."""
        (self.root / "data" / "hold").touch()
        self.forget_held()

    def let_go(self) -> None:
        (self.root / "data" / "hold").unlink()

    def forget_held(self) -> None:
        (self.root / "data" / "held").unlink(missing_ok=True)

    def wait_until_held(self) -> None:
        wait_for((self.root / "data" / "held").exists, 150)

    def attempt(self, run: str, number: int = 1, task: RunUpdateOperator | None = None) -> Any:
        """One attempt of a run of the task: its report, or what it raised."""
        instance = SimpleNamespace(dag_id="shop", run_id=run, try_number=number, max_tries=3)
        try:
            return (task or self.task()).execute({"ti": instance, "params": {}})
        except AirflowException as error:
            return error

    def beside(self, *given: Any) -> Callable[[], Any]:
        """An attempt in a thread; the function that it gives waits for its end."""
        results: list[Any] = []
        thread = threading.Thread(target=lambda: results.append(self.attempt(*given)), daemon=True)
        thread.start()

        def end() -> Any:
            thread.join(200)
            return results[0]

        return end

    def task(self) -> RunUpdateOperator:
        return RunUpdateOperator(task_id="update", pipeline="shop")

    def updates(self, run: str) -> list[UpdateSummary]:
        data = self.root / "data"
        project = open_project(self.folder, storage=str(data / "storage"), warehouse=str(data / "warehouse"))
        return request_updates(project, request_id("shop", run))

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        place = self.root / "data" / "warehouse" / "default" / table
        rows = DeltaTable(str(place)).to_pyarrow_table().to_pylist()
        return sorted(tuple(row[column] for column in columns) for row in rows)

    @property
    def drivers(self) -> list[str]:
        """The pods of drivers that were ever started, the oldest first."""
        return [name for name in self.node.started if "-exec-" not in name]

    @property
    def executors(self) -> list[str]:
        """The pods of executors whose process runs."""
        running = list(self.node.running.values())
        return [run.name for run in running if "-exec-" in run.name and run.process.poll() is None]


def wait_for(condition: Callable[[], object], seconds: float) -> None:
    """Wait until something is so."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"not within {seconds} seconds"
        time.sleep(0.1)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: ApiServer) -> Iterator[Shop]:
    """A pipeline whose connection leads to the API server."""
    (tmp_path / "pipelines").mkdir()
    monkeypatch.setenv("HEADWATER_PIPELINES", str(tmp_path / "pipelines"))
    for name in ("storage", "warehouse"):
        monkeypatch.setenv(f"HEADWATER_{name.upper()}", str(tmp_path / "data" / name))
    monkeypatch.setenv("HEADWATER_HOME", str(CHECKOUT))
    connect(monkeypatch, server, "cluster")
    config = str(server.kubeconfig("airflow"))
    monkeypatch.setenv("KUBECONFIG", config)
    for name, value in {
        "IN_CLUSTER": "False",
        "CONFIG_FILE": config,
        "VERIFY_SSL": "True",
        "ENABLE_TCP_KEEPALIVE": "False",
        "API_CLIENT_RETRY_CONFIGURATION": "{}",
        "SSL_CA_CERT": "",
    }.items():
        monkeypatch.setenv(f"AIRFLOW__KUBERNETES_EXECUTOR__{name}", value)
    monkeypatch.setattr(pods, "LOOK_SECONDS", 2.0)
    with kubelet(server, NAMESPACE, {IMAGE: image(tmp_path / "pipelines")}, tmp_path / "pods") as node:
        made = Shop(tmp_path, server, node)
        yield made
        (tmp_path / "data" / "hold").unlink(missing_ok=True)
        for log in sorted((tmp_path / "pods").glob("*/log")):
            print(f"--- {log.parent.name}\n{log.read_text(errors='replace')[-3000:]}")


def connect(monkeypatch: pytest.MonkeyPatch, server: ApiServer, mode: str) -> None:
    extra = {"deploy-mode": mode, "namespace": NAMESPACE}
    connection = {"conn_type": "spark", "host": f"k8s://{server.url}", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))


@pytest.mark.timeout(420)
def test_updates_end_as_beside_the_task(shop: Shop):
    """Counts and tables of one that is completed; nothing to do; a failure with its condition, which no retry can help; secrets by name."""
    shop.land("1", (1, " ann ", 5), (2, "bo", 0), (3, "Ann", 2))
    report = shop.attempt("first")
    assert report["state"] == "COMPLETED"
    rows = {flow["flow"]: (flow["input_rows"], flow["dropped_rows"]) for flow in report["flows"]}
    assert rows["orders"] == (3, 1)
    assert shop.rows("totals", "customer", "total") == [("Ann", 7)]
    assert set(shop.rows("orders", "lengths")) == {(f"{len(TOKEN)} {len(TOKEN)}",)}
    assert len(shop.drivers) == 1
    assert shop.attempt("no news")["flows"][0]["batches"] == 0
    assert len(shop.drivers) == 1

    shop.land("2", (1000, "bad", 1))
    error = shop.attempt("failing")
    assert isinstance(error, AirflowFailException)
    assert re.search(r"\[FLOW_FAILED\](.|\n)*a bad name", str(error))
    assert shop.rows("totals", "customer", "total") == [("Ann", 7)]
    said = "".join(log.read_text(errors="replace") for log in shop.node.folder.glob("*/log"))
    assert TOKEN not in said


@pytest.mark.timeout(420)
def test_a_killed_executor_and_a_lost_worker(shop: Shop):
    """Another executor does the batch; the next attempt of the task follows the driver that runs, and starts no second one."""
    shop.land("1", (1, "slow", 5), (2, "ann", 2))
    shop.hold()
    connection = os.environ["AIRFLOW_CONN_SPARK_DEFAULT"]
    path = ":".join(
        [str(CHECKOUT), *(str(CHECKOUT / part) for part in ("include", "jobs", "plugins")), *sys.path]
    )
    worker = subprocess.Popen(
        [sys.executable, str(CHECKOUT / "tests" / "k8s" / "attempt.py"), connection, "lost"],
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )
    try:
        shop.wait_until_held()
        killed = shop.executors
        shop.forget_held()
        for executor in killed:
            shop.node.kill(executor)
        shop.wait_until_held()
        assert set(shop.executors) - set(killed)
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait(30)

    end = shop.beside("lost", 2)
    driver = shop.node.api.read_namespaced_pod(shop.drivers[0], NAMESPACE)
    assert sys.prefix not in str(driver.spec)
    assert str(CHECKOUT) not in str(driver.spec)
    assert TOKEN not in str(driver)
    time.sleep(10)
    shop.let_go()
    report = end()
    assert report["state"] == "COMPLETED"
    assert shop.rows("totals", "customer", "total") == [("Ann", 2), ("Slow", 5)]
    assert len(shop.drivers) == 1
    assert [update.state for update in shop.updates("lost")] == ["COMPLETED"]


@pytest.mark.timeout(420)
def test_a_stop_and_a_killed_driver(shop: Shop):
    """The stop ends after the batch in flight; a driver that dies leaves an end in the log, and a retry has every row once."""
    shop.land("1", (1, "slow", 5))
    shop.land("2", (2, "slow", 7))
    os.utime(shop.landing / "1.json", (1, 1))
    shop.hold()
    task = shop.task()
    end = shop.beside("stopped", 1, task)
    shop.wait_until_held()
    task.on_kill()
    time.sleep(15)  # the driver looks every ten seconds
    shop.let_go()
    assert "was stopped" in str(end())
    assert shop.rows("orders", "id") == [(1,)]

    shop.hold()
    end = shop.beside("stopped", 2)
    shop.wait_until_held()
    shop.node.kill(shop.drivers[-1])
    error = end()
    assert isinstance(error, AirflowException)
    assert not isinstance(error, AirflowFailException)
    assert "killed by signal 9" in str(error)
    shop.let_go()

    assert shop.attempt("stopped", 3)["state"] == "COMPLETED"
    assert shop.rows("orders", "id") == [(1,), (2,)]
    assert shop.rows("totals", "customer", "total") == [("Slow", 12)]
    assert [update.state for update in shop.updates("stopped")] == ["CANCELED", "FAILED", "COMPLETED"]
    assert len(set(shop.drivers)) == 3


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((IMAGE, "registry.example/none:1"), "ErrImagePull"),
        (("shop:token", "nowhere:token"), "CreateContainerConfigError"),
    ],
)
def test_a_pod_that_can_not_start_is_said(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], reason: str
):
    """An image or a secret that is not there: with Kubernetes' own reason, and the pod does not stay behind."""
    monkeypatch.setattr(pods, "PATIENCE_SECONDS", 5.0)
    shop.land("1", (1, "ann", 5))
    shop.write_spec(change)
    error = shop.attempt("stuck")
    assert "[DRIVER_POD_NOT_STARTED]" in str(error)
    assert reason in str(error)
    pending = {"label_selector": "spark-role=driver", "field_selector": "status.phase=Pending"}
    wait_for(lambda: not shop.node.api.list_namespaced_pod(NAMESPACE, **pending).items, 30)


@pytest.mark.timeout(200)
def test_a_driver_beside_the_task_has_executors_in_pods(shop: Shop, monkeypatch: pytest.MonkeyPatch):
    """As backfills and maintenance run: the report is the driver's own."""
    connect(monkeypatch, shop.server, "client")
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)
    shop.write_spec(more="  spark.driver.host: 127.0.0.1\n  spark.driver.bindAddress: 127.0.0.1\n")
    shop.land("1", (1, "ann", 5))
    assert shop.attempt("client")["state"] == "COMPLETED"
    assert shop.rows("totals", "customer", "total") == [("Ann", 5)]
    assert set(shop.rows("orders", "lengths")) == {(f"{len(TOKEN)} {len(TOKEN)}",)}
    assert not shop.drivers
    assert any("-exec-" in name for name in shop.node.started)
