"""A task whose driver is a pod: what it submits, whom it follows, and how it ends; the API and ``spark-submit`` are doubles."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks import spark_submit as provider
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from tests.dags.airflow_home import CHECKOUT
from tests.unit.headwater_airflow.driver.cluster_api import Api, pod
from tests.unit.headwater_airflow.driver.test_on_yarn import record

from headwater.errors import FlowFailed
from headwater.event_log.details import UpdateState
from headwater.runtime import submit
from headwater_airflow.driver import on_kubernetes, pods, submission
from headwater_airflow.driver.on_kubernetes import driver_labels
from headwater_airflow.following.request import request_id
from headwater_airflow.following.update_record import request_updates
from headwater_airflow.operators.run_update import RunUpdateOperator
from headwater_airflow.roots import pipeline_project

REQUEST = request_id("shop", "run")


class Place:
    """A pipeline, an API with its pods, and what a submission does."""

    def __init__(self, root: Path) -> None:
        self.api = Api()
        self.submitted: list[str] = []
        self.then: Callable[[str], None] = lambda _: None
        self.root = root
        folder = root / "pipelines" / "orders"
        folder.mkdir(parents=True)
        mounts = "".join(
            f"  spark.kubernetes.{role}.volumes.nfs.lake.mount.path: {root}\n"
            for role in ("driver", "executor")
        )
        (folder / "pipeline.yml").write_text(f"name: orders\ncluster: {{image: one}}\nspark:\n{mounts}")

    @property
    def project(self) -> Any:
        return pipeline_project("orders")

    @property
    def base(self) -> str:
        return f"headwater-{driver_labels(self.project, REQUEST)['headwater-request']}"

    def submit(self, hook: Any, *_: object, **__: object) -> None:
        name = hook._conf["spark.kubernetes.driver.pod.name"]
        self.submitted.append(name)
        self.then(name)

    def runs(
        self, *states: Any, end: UpdateState | None = UpdateState.COMPLETED, **failed: FlowFailed
    ) -> None:
        """A submission makes a pod that goes through these states, and its update ends like this."""

        def then(name: str) -> None:
            self.api.pods[name] = [pod(name, *state) for state in states]
            if end is not None:
                log(self.project, end, **failed)

        self.then = then

    def attempt(self, number: int = 1) -> Any:
        task = RunUpdateOperator(task_id="update", pipeline="orders")
        instance = SimpleNamespace(dag_id="shop", run_id="run", try_number=number, max_tries=3)
        try:
            return task.execute({"ti": instance, "params": {}})
        except AirflowException as error:
            return error


def log(project: Any, end: UpdateState, **failed: FlowFailed) -> None:
    """What a driver of the request leaves in the event log."""
    record(project, f"u{len(request_updates(project, REQUEST))}", end, request=REQUEST, **failed)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place whose connection leads to Kubernetes."""
    monkeypatch.setenv("HEADWATER_HOME", str(CHECKOUT))
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    for name in ("pipelines", "storage", "warehouse"):
        monkeypatch.setenv(f"HEADWATER_{name.upper()}", str(tmp_path / name))
    connection = {"conn_type": "spark", "host": "k8s://https://api:6443", "extra": {"deploy-mode": "cluster"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    monkeypatch.setattr(submit, "ensure_jars", lambda group: [tmp_path / "cache" / f"{group}.jar"])
    monkeypatch.setattr(submission, "java_environment", dict)
    monkeypatch.setattr(provider, "kube_client", object(), raising=False)
    made = Place(tmp_path)
    monkeypatch.setattr(on_kubernetes, "find_spec", lambda name: name)
    monkeypatch.setattr(on_kubernetes, "_api", lambda: made.api)
    monkeypatch.setattr(pods.Pods.__init__, "__defaults__", (made.api.sleep,))
    monkeypatch.setattr(provider.SparkSubmitHook, "submit", lambda hook, *given, **named: made.submit(hook))
    return made


def test_an_update_that_is_completed(place: Place):
    """One submission, the report of the event log, and no pod left."""
    place.runs(("Pending",), ("Running",), ("Succeeded", "", 0))
    report = place.attempt()
    assert (report["state"], report["update_id"]) == ("COMPLETED", "u0")
    assert place.submitted == [place.base]
    assert place.api.removed == [place.base]


def test_an_update_that_fails(place: Place):
    """Its flow's error decides; the pod stays, with its log."""
    place.runs(("Failed", "", 1), end=UpdateState.FAILED, orders=FlowFailed("no such column"))
    error = place.attempt()
    assert isinstance(error, AirflowFailException)
    assert "no such column" in str(error)
    assert not place.api.removed


@pytest.mark.parametrize(("code", "final"), [(2, True), (137, False)])
def test_a_driver_without_a_record(place: Place, code: int, final: bool):
    """The container's code decides; the end of one that was killed is written for it; the next attempt takes another name."""
    place.runs(("Failed", "", code), end=None)
    assert isinstance(place.attempt(), AirflowFailException) is final
    assert [str(update.state) for update in request_updates(place.project, REQUEST)] == (
        [] if final else ["FAILED"]
    )
    place.runs(("Succeeded", "", 0))
    assert place.attempt(2)["state"] == "COMPLETED"
    assert place.submitted == [place.base, f"{place.base}-2"]


def test_a_driver_that_runs_is_followed(place: Place):
    """Whoever comes after a lost worker submits nothing, though the log has nothing yet."""
    place.api.pods[place.base] = [pod(place.base, "Pending"), pod(place.base, "Running")]
    place.api.pods[place.base].append(pod(place.base, "Succeeded", code=0))
    log(place.project, UpdateState.COMPLETED)
    assert place.attempt(2)["state"] == "COMPLETED"
    assert not place.submitted


def test_a_submission_that_is_refused_follows_who_was_quicker(place: Place):
    """The API server knows the name already: another task has just made this driver."""

    def refused(name: str) -> None:
        place.api.pods[name] = [pod(name, "Running"), pod(name, "Succeeded", code=0)]
        log(place.project, UpdateState.COMPLETED)
        raise AirflowException('pods "headwater" already exists')

    place.then = refused
    assert place.attempt()["state"] == "COMPLETED"


def test_a_submission_that_fails(place: Place):
    """There is no pod: another attempt may do."""

    def refused(_: str) -> None:
        raise AirflowException("no route to host")

    place.then = refused
    error = place.attempt()
    assert isinstance(error, AirflowException)
    assert not isinstance(error, AirflowFailException)


def test_a_driver_that_is_out_of_sight_is_not_ended_in_the_log(place: Place):
    """An API that stays away says nothing of the update: nobody writes an end for a driver that may run on."""
    place.then = lambda name: place.api.pods.update({name: [pod(name), ConnectionError("away")]})
    error = place.attempt()
    assert "[CLUSTER_UNREACHABLE]" in str(error)
    assert not isinstance(error, AirflowFailException)
    assert not request_updates(place.project, REQUEST)


def test_what_is_refused_submits_nothing(place: Place):
    """For good, before anybody is asked."""
    spec = place.root / "pipelines" / "orders" / "pipeline.yml"
    spec.write_text("name: orders\n")
    error = place.attempt()
    assert isinstance(error, AirflowFailException)
    assert "[UNSUPPORTED_DEPLOYMENT]" in str(error)
    assert not place.submitted
    assert not place.api.selectors
