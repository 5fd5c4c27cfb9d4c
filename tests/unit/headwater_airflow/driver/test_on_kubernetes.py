"""A driver in a pod: what its command says, how it is found again, and what is refused before anything is submitted."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.unit.headwater_airflow.driver.cluster_api import Api, pod
from tests.unit.headwater_airflow.driver.test_target import CANARY, connection, hook

from headwater.definitions.cluster_spec import ClusterSpec
from headwater.graph.pipeline_project import PipelineProject, open_project
from headwater.runtime import submit
from headwater.runtime.conditions import UnsupportedDeployment
from headwater.storage.access import ObjectStore
from headwater.storage.place import place_of
from headwater_airflow.driver import on_kubernetes, submission
from headwater_airflow.driver.on_kubernetes import (
    Kubernetes,
    driver_labels,
    kubernetes,
    pod_settings,
    refuse,
    refuse_without_provider,
    shipment,
)
from headwater_airflow.driver.target import Target

K8S = Target("k8s://https://api:6443", "cluster")
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
SPEC = f"""
name: orders
cluster:
  image: registry.example/headwater:1.2
  python: /opt/python/bin/python3
  code: /srv/headwater
  cache: /srv/jars
  pipelines: /srv/pipelines
  secrets: {{SHOP_PASSWORD: "shop-db:password"}}
spark:
  spark.hadoop.odd.secret.key: {CANARY}
  spark.kubernetes.authenticate.driver.serviceAccountName: headwater
  spark.kubernetes.driver.volumes.persistentVolumeClaim.lake.mount.path: ROOT
  spark.kubernetes.executor.volumes.persistentVolumeClaim.lake.mount.path: ROOT
"""


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., PipelineProject]:
    """Opens a pipeline whose spec is SPEC, with texts in it replaced."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("HEADWATER_CACHE", str(cache))
    monkeypatch.setattr(submit, "ensure_jars", lambda group: [cache / "jars" / f"{group}-1" / f"{group}.jar"])
    monkeypatch.setattr(submission, "java_environment", lambda: {"JAVA_HOME": "/this/machines/java"})

    def open_with(*changes: tuple[str, str]) -> PipelineProject:
        text = SPEC.replace("ROOT", str(tmp_path))
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        folder = tmp_path / "orders"
        folder.mkdir(exist_ok=True)
        (folder / "pipeline.yml").write_text(text)
        return open_project(folder, storage=str(tmp_path / "storage"), warehouse=str(tmp_path / "warehouse"))

    return open_with


def shipped(project: PipelineProject, request: str = "request") -> Any:
    """What goes along with a driver of a project."""
    conf = submission.driver_conf(project, K8S)
    refuse(project, conf)
    labels = driver_labels(project, request)
    return shipment(project, conf, submission.application(), labels, "headwater-1", "shop")


def test_the_command_names_nothing_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, opened: Callable[..., PipelineProject], tmp_path: Path
):
    """The provider's own: every path is one of the image, and of a secret only the name of the Kubernetes secret stands there."""
    store = ObjectStore("s3")
    roots = {name: place_of(f"s3://lake/{name}", store=store) for name in ("storage", "warehouse")}
    project = replace(opened(), **roots)
    monkeypatch.setenv("HEADWATER_SECRET_TOKEN", CANARY)
    there = shipped(project)
    made = hook(
        monkeypatch,
        connection("k8s://https://api", port=6443, **{"deploy-mode": "cluster", "namespace": "another"}),
        conf=there.conf,
        archives=there.archives,
        files=there.files,
        env_vars={},
        track_driver_via_k8s_api=True,
        application_args=[there.folder, *submission.driver_arguments(project, "request", 1, 3)[1:]],
    )
    made._validate_track_driver_via_k8s_api_config()
    command = made._build_spark_submit_command(there.application)
    text = " ".join(command)
    settings = dict(part.split("=", 1) for part in command if "=" in part and part.startswith("spark."))
    assert command[1:3] == ["--master", "k8s://https://api:6443"]
    assert command[command.index("--deploy-mode") + 1] == "cluster"
    assert settings["spark.kubernetes.namespace"] == made._connection["namespace"] == "shop"
    assert settings["spark.kubernetes.submission.waitAppCompletion"] == "false"
    assert settings["spark.kubernetes.container.image"] == "registry.example/headwater:1.2"
    assert settings["spark.kubernetes.driver.pod.name"] == "headwater-1"
    assert settings["spark.kubernetes.authenticate.driver.serviceAccountName"] == "headwater"
    assert settings["spark.pyspark.python"] == "/opt/python/bin/python3"
    assert settings["spark.pyspark.driver.python"] == "/opt/python/bin/python3"
    assert settings["spark.kubernetes.driverEnv.PYTHONPATH"] == "/srv/headwater/include:/srv/headwater/jobs"
    assert (
        "file:/srv/headwater/include/headwater/runtime/log4j2.properties"
        in settings["spark.driver.extraJavaOptions"]
    )
    assert settings["spark.jars"].split(",") == [
        "local:///srv/jars/jars/spark-1/spark.jar",
        "local:///srv/headwater/include/headwater/runtime/headwater.jar",
        "local:///srv/jars/jars/s3-1/s3.jar",
    ]
    at = command.index("local:///srv/headwater/jobs/run_update.py")
    assert command[at + 1 : at + 4] == ["/srv/pipelines/orders", "--storage", "s3://lake/storage"]
    assert {
        settings[f"spark.kubernetes.{role}.secretKeyRef.SHOP_PASSWORD"] for role in ("driver", "executor")
    } == {"shop-db:password"}
    assert "--files" not in command
    assert "--archives" not in command
    assert str(tmp_path) not in text.replace(f"mount.path={tmp_path}", "")
    assert "/this/machines/java" not in text
    assert CANARY not in text


def test_a_driver_beside_its_task_gets_pods_for_its_executors(
    monkeypatch: pytest.MonkeyPatch, opened: Callable[..., PipelineProject]
):
    """Backfills and maintenance, and updates where the connection says client."""
    project = opened()
    conf = submission.driver_conf(project, Target(K8S.master)) | pod_settings(project)
    made = hook(monkeypatch, connection(K8S.master, namespace="shop"), conf=conf, env_vars={})
    settings = [part for part in made._build_spark_submit_command(submission.application()) if "=" in part]
    assert "spark.kubernetes.container.image=registry.example/headwater:1.2" in settings
    assert "spark.kubernetes.executor.secretKeyRef.SHOP_PASSWORD=shop-db:password" in settings
    assert "spark.kubernetes.namespace=shop" in settings
    assert "spark.pyspark.python=/opt/python/bin/python3" in settings


def test_where_things_lie_in_the_image_by_default(opened: Callable[..., PipelineProject]):
    """As this repository's Dockerfile has it."""
    lines = ("  code: /srv/headwater\n", "  cache: /srv/jars\n", "  pipelines: /srv/pipelines\n")
    there = shipped(opened(*((line, "") for line in lines)))
    assert there.application == "local:///opt/headwater/jobs/run_update.py"
    assert there.folder == "/opt/headwater/jobs/pipelines/orders"
    assert there.conf["spark.jars"].startswith("local:///opt/headwater-cache/jars/spark-1/")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("  image: registry.example/headwater:1.2\n", ""), "No image"),
        (
            ("driver.volumes.persistentVolumeClaim", "driver.volumes.emptyDir"),
            "The storage is a folder that pods do not see",
        ),
        (
            ("executor.volumes.persistentVolumeClaim.lake", "executor.volumes.persistentVolumeClaim.sea"),
            "The storage is",
        ),
        (("executor.volumes.persistentVolumeClaim", "executor.volumes.nfs"), "The storage is"),
        (
            (
                "spark:\n",
                "spark:\n  spark.kubernetes.executor.volumes.persistentVolumeClaim.lake.mount.readOnly: true\n",
            ),
            "The storage is",
        ),
        (
            ("spark:\n", "spark:\n  spark.kubernetes.driver.secretKeyRef.X: a:b\n"),
            "secretKeyRef.X: a setting with such a name",
        ),
        (
            ("spark:\n", f"spark:\n  spark.kubernetes.authenticate.submission.oauthToken: {CANARY}\n"),
            "oauthToken: a setting",
        ),
        (("spark:\n", "spark:\n  spark.jars: /mine/own.jar\n"), "/mine/own.jar is a file of this machine"),
        (("name: orders\n", "name: orders\ntrigger: continuous\n"), "continuous"),
    ],
)
def test_what_pods_can_not_run_is_refused(
    opened: Callable[..., PipelineProject], change: tuple[str, str], reason: str
):
    """Before anything is submitted, with the reason, and for good."""
    with pytest.raises(UnsupportedDeployment, match=re.escape(reason)) as caught:
        shipped(opened(change))
    assert not caught.value.transient
    assert CANARY not in str(caught.value)


def test_a_refusal_needs_no_api(opened: Callable[..., PipelineProject]):
    """What is wrong with the file is said at once, also where nobody answers."""
    api, project = Api(), opened(("  image: registry.example/headwater:1.2\n", ""))
    with pytest.raises(UnsupportedDeployment, match="No image"):
        Kubernetes("r", "shop", api.of_shop).shipment(
            project, submission.driver_conf(project, K8S), "run_update.py"
        )
    assert not api.selectors


@pytest.mark.parametrize(
    ("storage", "warehouse", "refused"),
    [
        ("{root}/a/storage", "{root}", ""),
        ("s3://lake/storage", "{root}/warehouse", ""),
        ("{root}-beside/storage", "{root}/warehouse", "storage"),
        ("/", "{root}/warehouse", "storage"),
        ("s3://lake/storage", "/data", "warehouse"),
    ],
)
def test_a_folder_must_be_below_what_all_pods_mount(
    opened: Callable[..., PipelineProject], tmp_path: Path, storage: str, warehouse: str, refused: str
):
    """A folder beside the mount is another one; a store needs none."""
    places = {"storage": storage.format(root=tmp_path), "warehouse": warehouse.format(root=tmp_path)}
    project = replace(
        opened(),
        **{name: type(opened().storage)(place) for name, place in places.items() if "://" not in place},
    )
    if not refused:
        shipped(project)
        return
    with pytest.raises(UnsupportedDeployment, match=f"The {refused} is a folder"):
        shipped(project)


@pytest.mark.parametrize(
    "given_spec",
    [
        {"image": "-rm"},
        {"image": "a b"},
        {"image": "${env:HOME}"},
        {"code": "relative"},
        {"code": "/a/../b"},
        {"code": "/a,b"},
        {"cache": "/a//b"},
        {"pipelines": "/${env:HOME}"},
        {"secrets": {"X": CANARY}},
        {"secrets": {"X": f"{CANARY}:key"}},
        {"secrets": {"X": "name:key\nspark.x=y"}},
        {"secrets": {"X=Y": "name:key"}},
        {"secrets": {"X": 123456}},
    ],
)
def test_hostile_settings_are_refused(given_spec: dict[str, Any]):
    """None gets on a command line as something else; what may be a secret is not repeated."""
    with pytest.raises(ValidationError) as caught:
        ClusterSpec.model_validate(given_spec)
    assert not {CANARY, "123456"} & set(re.findall(r"\w+", str([e["msg"] for e in caught.value.errors()])))


@given(st.text(min_size=1), st.text(min_size=1))
def test_labels_are_valid_for_all_names(name: str, request: str):
    """A pipeline, a DAG and a run may be called anything; labels differ where one of them does, or the storage."""

    class Project:
        storage = "/data"
        pipeline_id = name

    class Other(Project):
        storage = "/data/test"

    labels = driver_labels(Project, request)  # type: ignore[arg-type]
    assert all(LABEL_VALUE.fullmatch(value) for value in labels.values())
    assert not set(labels.values()) & set(driver_labels(Other, request).values())  # type: ignore[arg-type]
    assert labels["headwater-request"] != driver_labels(Project, request + "'")["headwater-request"]  # type: ignore[arg-type]


def test_a_driver_that_runs_is_followed_before_its_first_record(opened: Callable[..., PipelineProject]):
    """A pod that waits for its node left nothing in the event log, and still no second one is started."""
    api = Api(d=[pod("d", "Pending"), pod("d"), pod("d", "Failed", code=2)])
    cluster = Kubernetes("r", "shop", api.of_shop)
    assert cluster.follow(opened(), "r", logging.getLogger())
    assert cluster.exit_code == 2
    assert not api.removed
    (selector,) = api.selectors
    assert (
        selector == f"headwater-request={driver_labels(opened(), 'r')['headwater-request']},spark-role=driver"
    )


def test_a_driver_that_has_ended_is_not_followed(opened: Callable[..., PipelineProject]):
    """That of an earlier attempt says nothing of this one; its name is not taken again, and its pod is left with its log."""
    base = f"headwater-{driver_labels(opened(), 'r')['headwater-request']}"
    api = Api(**{base: [pod(base, "Failed", code=1)]})
    cluster = Kubernetes("r", "shop", api.of_shop)
    conf = submission.driver_conf(opened(), K8S)
    there = cluster.shipment(opened(), conf, submission.application())
    assert there.conf["spark.kubernetes.driver.pod.name"] == cluster.driver_pod == f"{base}-2"
    assert not cluster.follow(opened(), "r", logging.getLogger())
    assert cluster.exit_code is None
    assert not api.removed


def test_the_end_of_this_tasks_driver_is_seen_however_quick(opened: Callable[..., PipelineProject]):
    """It was over before the first look; a pod that succeeded is removed, as the provider does."""
    api = Api()
    cluster = Kubernetes("r", "shop", api.of_shop)
    cluster.shipment(opened(), submission.driver_conf(opened(), K8S), submission.application())
    api.pods[cluster.driver_pod] = [pod(cluster.driver_pod, "Succeeded", code=0)]
    cluster.follow(opened(), "r", logging.getLogger())
    assert cluster.exit_code == 0
    assert api.removed == [cluster.driver_pod]


@pytest.mark.parametrize(
    ("setting", "extra", "namespace"),
    [
        ("", {}, "default"),
        ("", {"namespace": "a"}, "a"),
        ("  spark.kubernetes.namespace: b\n", {"namespace": "a"}, "b"),
    ],
)
def test_the_namespace_is_the_providers(
    monkeypatch: pytest.MonkeyPatch,
    opened: Callable[..., PipelineProject],
    setting: str,
    extra: Any,
    namespace: str,
):
    """Spark's setting, else the connection's, else Spark's default."""
    monkeypatch.setattr(on_kubernetes, "_api", Api)
    project = opened(("spark:\n", f"spark:\n{setting}"))
    cluster = kubernetes(project, "r", connection(K8S.master, **extra))
    there = cluster.shipment(project, submission.driver_conf(project, K8S), submission.application())
    assert there.conf["spark.kubernetes.namespace"] == namespace


def test_without_the_provider_nothing_is_submitted(monkeypatch: pytest.MonkeyPatch):
    """The one for Spark would end with a NameError."""
    monkeypatch.setattr(on_kubernetes, "find_spec", lambda _: None)
    with pytest.raises(UnsupportedDeployment, match="provider for Kubernetes is not installed"):
        refuse_without_provider("connection spark_default")
    monkeypatch.setattr(on_kubernetes, "find_spec", lambda name: name)
    refuse_without_provider("connection spark_default")
