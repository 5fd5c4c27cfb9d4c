"""The connection of Airflow by which a store is reached: what it may say, when it is looked up, and where its keys are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.object_stores import CREDENTIALS, StoreServer, store_server

from headwater.errors import InvalidName
from headwater.graph.pipeline_project import PipelineProject
from headwater.runtime.conditions import UnsupportedDeployment
from headwater.runtime.secret_values import without_known
from headwater.storage.conditions import StoreRefused
from headwater.storage.delta_tables import append, delta_table
from headwater_airflow import store_connection
from headwater_airflow.driver import submission
from headwater_airflow.driver.elsewhere import refuse_login
from headwater_airflow.driver.target import Target
from headwater_airflow.roots import pipeline_project, storage_folder, warehouse_table
from headwater_airflow.store_connection import login_variables, store_login

SECRET, TOKEN = "canary-41be77d0f2", "canary-session-90"
KEYS = {"login": "of-the-connection", "password": SECRET}


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither looked up, nor in the environment."""
    monkeypatch.setattr(store_connection, "_looked_up", {})
    for name in (*CREDENTIALS, "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", store_connection.VARIABLE):
        monkeypatch.delenv(name, raising=False)


def make(monkeypatch: pytest.MonkeyPatch, name: str = "lake", **fields: Any) -> None:
    """A connection of Airflow's."""
    monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps({"conn_type": "aws", **fields}))


@pytest.fixture
def pipeline(tmp_path: Path) -> dict[str, str]:
    """A pipeline on S3 that names the connection; the environment that leads to it."""
    folder = tmp_path / "pipelines" / "orders"
    folder.mkdir(parents=True)
    (folder / "pipeline.yml").write_text("name: orders\nschema: shop\nairflow: {store_connection: lake}\n")
    return {
        "HEADWATER_PIPELINES": str(folder.parent),
        "HEADWATER_STORAGE": "s3://places/storage",
        "HEADWATER_WAREHOUSE": "s3://places/warehouse",
    }


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (KEYS, {"AWS_ACCESS_KEY_ID": "of-the-connection", "AWS_SECRET_ACCESS_KEY": SECRET}),
        (
            {
                "extra": {
                    "aws_access_key_id": "id",
                    "aws_secret_access_key": SECRET,
                    "aws_session_token": TOKEN,
                }
            },
            {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": TOKEN},
        ),
        (
            {"extra": {"endpoint_url": "https://minio:9000", "region_name": "eu-1"}},
            {"AWS_ENDPOINT_URL_S3": "https://minio:9000", "AWS_REGION": "eu-1"},
        ),
        (
            {"extra": {"endpoint_url": "https://a", "service_config": {"s3": {"endpoint_url": "https://b"}}}},
            {"AWS_ENDPOINT_URL_S3": "https://b"},
        ),
        (
            {
                "extra": {
                    "region_name": "eu-1",
                    "endpoint_url": None,
                    "role_arn": None,
                    "service_config": None,
                }
            },
            {"AWS_REGION": "eu-1"},
        ),
        ({"extra": "null"}, {}),
        ({}, {}),
    ],
)
def test_what_a_connection_says(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], expected: dict[str, str]
):
    """Keys in its fields or its extra, a token, the server of S3 and the region, as variables of AWS's."""
    make(monkeypatch, **fields)
    assert login_variables("lake") == expected


@pytest.mark.parametrize(
    "fields",
    [
        {**KEYS, "conn_type": "spark"},
        {"login": "id"},
        {"password": SECRET},
        {"extra": {"aws_session_token": TOKEN}},
        {**KEYS, "extra": {"role_arn": f"arn:{SECRET}"}},
        {**KEYS, "extra": {"aws_session_token": {"a": SECRET}}},
        {**KEYS, "extra": {"endpoint_url": f"https://me:{SECRET}@minio"}},
        {**KEYS, "extra": {"endpoint_url": f"ftp://{SECRET}"}},
        {**KEYS, "extra": {"region_name": f"eu 1 {SECRET}"}},
        {**KEYS, "extra": "[1]"},
    ],
    ids=lambda fields: ",".join([*fields, *fields.get("extra", ())]),
)
def test_what_can_not_be_followed_is_refused(monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]):
    """Half a login, another type, and what only Airflow's client of AWS follows; the message names the connection and shows no value."""
    make(monkeypatch, **fields)
    with pytest.raises(StoreRefused, match="'lake'") as caught:
        login_variables("lake")
    assert SECRET not in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_a_connection_that_is_not_there():
    """It is named, with what to do, only when the store is used."""
    login = store_login("nowhere")
    assert login is not None
    with pytest.raises(StoreRefused, match=r"(?s)no connection 'nowhere'.*type aws"):
        login()


def test_keys_without_a_token_beside_the_token_of_others(monkeypatch: pytest.MonkeyPatch):
    """A client would send both together."""
    make(monkeypatch, **KEYS)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-a-role")
    with pytest.raises(StoreRefused, match="AWS_SESSION_TOKEN"):
        login_variables("lake")


def test_a_new_key_counts_within_a_minute(monkeypatch: pytest.MonkeyPatch):
    """Services run for months, and look up at most once a minute."""
    now = 1000.0
    monkeypatch.setattr("headwater_airflow.store_connection.time.monotonic", lambda: now)
    make(monkeypatch, **KEYS)
    before = login_variables("lake")
    make(monkeypatch, **{**KEYS, "login": "another"})
    now += 59
    assert login_variables("lake") == before
    now += 1
    assert login_variables("lake")["AWS_ACCESS_KEY_ID"] == "another"


def test_whose_connection_counts():
    """The pipeline's own, else the deployment's; a variable that can name none is refused."""
    assert store_login(None, {}) is None
    for name, variable, expected in (("lake", "all", "lake"), (None, " all ", "all")):
        login: Any = store_login(name, {store_connection.VARIABLE: variable})
        assert login.args == (expected,)
    with pytest.raises(InvalidName, match=store_connection.VARIABLE):
        store_login(None, {store_connection.VARIABLE: "a b"})


def test_nothing_is_looked_up_before_it_is_used(pipeline: dict[str, str]):
    """DAG files, and pages of all pipelines, open pipelines without a word to Airflow: here it has no such connection."""
    project = pipeline_project("orders", pipeline)
    assert str(project.state_folder) == "s3://places/storage/pipelines/orders"
    assert project.spark_conf["spark.hadoop.fs.s3.impl"]
    assert "orders" in repr(project)
    with pytest.raises(StoreRefused, match="no connection 'lake'"):
        project.state_folder.exists()


def test_only_the_drivers_environment_has_the_keys(pipeline: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    """No argument and no setting has a key, the server or the region; the variables have them all."""
    monkeypatch.setattr("headwater_airflow.driver.submission.submit_conf", lambda conf, local: dict(conf))
    extra = {"endpoint_url": "https://minio:9000", "region_name": "eu-canary-1", "aws_session_token": TOKEN}
    make(monkeypatch, **KEYS, extra=extra)
    project, target = pipeline_project("orders", pipeline), Target("local[2]")
    variables = submission.driver_environment(project, target)
    assert {name: text for name, text in variables.items() if name.startswith("AWS_")} == {
        "AWS_ACCESS_KEY_ID": "of-the-connection",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_SESSION_TOKEN": TOKEN,
        "AWS_ENDPOINT_URL_S3": "https://minio:9000",
        "AWS_REGION": "eu-canary-1",
    }
    arguments = submission.driver_arguments(project, "request", 1, 3)
    shown = repr((arguments, submission.driver_conf(project, target), project, project.state_folder))
    shown += repr(project.state_folder.bucket.access)  # type: ignore[union-attr]
    for text in ("of-the-connection", SECRET, TOKEN):
        assert text not in shown
        assert text not in without_known(f"said {text}")
    for text in ("minio", "eu-canary-1"):
        assert text not in repr((arguments, submission.driver_conf(project, target)))


def test_a_driver_on_yarn_is_refused(pipeline: dict[str, str]):
    """Only a command line leads to it."""
    project = pipeline_project("orders", pipeline)
    with pytest.raises(UnsupportedDeployment, match="store_connection"):
        refuse_login(project)
    without = PipelineProject(
        project.folder, project.spec_file, project.spec, project.storage, project.warehouse, {}
    )
    refuse_login(without)


@pytest.fixture(scope="module")
def server() -> Any:
    """A server to which the environment does not lead."""
    with store_server() as running:
        running.make_bucket("places")
        yield running


def test_all_that_reaches_a_store_does_so_by_the_connection(
    server: StoreServer, pipeline: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    """Objects, tables of a pipeline, and those of the deployment: with its keys and at its server, without one variable of AWS's."""
    import pyarrow as pa

    extra = {"endpoint_url": server.endpoint, "region_name": "us-east-1"}
    make(monkeypatch, **KEYS, extra=extra)
    project = pipeline_project("orders", pipeline)
    (project.state_folder / "note").write_text("kept")
    table = project.warehouse / "shop" / "orders"
    append(table, pa.table({"id": [1]}))
    assert delta_table(table).version() == 0

    make(monkeypatch, name="deployment", login="of-all", password=SECRET, extra=extra)
    deployment = {**pipeline, store_connection.VARIABLE: "deployment"}
    assert delta_table(warehouse_table("shop.orders", deployment)).version() == 0
    assert (storage_folder(deployment) / "pipelines/orders/note").read_text() == "kept"
    used = server.keys()
    assert used["of-the-connection"] >= {"places/storage/pipelines", "places/warehouse/shop"}
    assert used["of-all"] == {"places/storage/pipelines", "places/warehouse/shop"}
    assert set(used) == {"of-the-connection", "of-all", "of-the-test"}
    assert used["of-the-test"] == {"places/?"}
