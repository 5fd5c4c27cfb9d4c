"""Which settings a session on a store gets, and which of the user's would undo its guarantees."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.runtime.conditions import UnsafeStoreSetting, UnsupportedStore
from headwater.runtime.object_store import needs_s3, refuse_unsafe, session_conf, store_settings
from headwater.storage.access import ObjectStore, object_store

HERE = ObjectStore("s3", "http://127.0.0.1:9000", None, path_style=True)
ON_S3 = ("s3://bucket/storage", Path("/warehouse"))


def test_folders_need_nothing():
    """On disk a session has the user's settings alone, whatever store could be reached."""
    conf = {"spark.hadoop.fs.s3a.performance.flags": "create", "spark.master": "local[2]"}
    assert session_conf((Path("/storage"), "file:///warehouse"), HERE, conf) == conf
    assert not needs_s3(conf)


def test_one_root_on_a_store_is_enough():
    """Commits and checkpoints go through the exclusive writers, and the jars of S3 are needed."""
    conf = session_conf(ON_S3, HERE, {"spark.master": "local[2]"})
    assert needs_s3(conf)
    assert conf["spark.delta.logStore.s3.impl"] == conf["spark.delta.logStore.s3a.impl"]
    assert conf["spark.sql.streaming.checkpointFileManagerClass"].startswith("headwater.store.")
    assert conf["spark.master"] == "local[2]"


def test_a_server_of_its_own_is_reached_as_it_is_declared():
    """Endpoint, region and path style become S3A's; Amazon's own needs none of them, and finds its region itself."""
    assert {
        name.removeprefix("spark.hadoop.fs.s3a."): value
        for name, value in store_settings(HERE).items()
        if ".fs.s3a." in name
    } == {
        "endpoint": "http://127.0.0.1:9000",
        "endpoint.region": "us-east-1",
        "connection.ssl.enabled": "false",
        "path.style.access": "true",
    }
    amazon = store_settings(ObjectStore("s3"))
    assert not [name for name in amazon if "endpoint" in name or "ssl" in name]
    assert (
        store_settings(ObjectStore("s3", region="eu-west-1"))["spark.hadoop.fs.s3a.endpoint.region"]
        == "eu-west-1"
    )


def test_what_a_login_says_is_left_to_the_driver():
    """Settings stand on a command line: of a store with a login there are none but the classes, and nothing is looked up for them."""

    def never() -> dict[str, str]:
        raise AssertionError

    store = object_store("s3", {"endpoint": "http://127.0.0.1:9000"}, login=never)
    assert not [name for name in store_settings(store) if ".fs.s3a." in name]
    assert needs_s3(session_conf(ON_S3, store, {}))


@pytest.mark.parametrize(
    "root", ["gs://bucket/x", "abfss://container@account.dfs.core.windows.net/x", "s3a://bucket/x"]
)
def test_another_store_is_refused(root: str):
    """Nothing there is exclusive yet; of s3 there is one spelling."""
    with pytest.raises(UnsupportedStore, match=root.partition(":")[0]):
        session_conf(("/storage", root), HERE, {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fs.s3a.performance.flags", "create"),
        ("fs.s3a.performance.flags", "delete, Create"),
        ("fs.s3a.performance.flags", " *"),
        ("fs.s3a.bucket.my.bucket.performance.flags", "mkdir,create"),
        ("fs.s3a.create.performance", "TRUE"),
        ("fs.s3a.bucket.b.create.performance", "true"),
        ("fs.s3a.create.conditional.enabled", "false"),
        ("fs.s3a.bucket.b.create.conditional.enabled", "no"),
    ],
)
def test_what_would_undo_exclusive_writes_is_refused(name: str, value: str):
    """In `pipeline.yml` and in Hadoop's own files, for all buckets or for one; the message names the setting."""
    with pytest.raises(UnsafeStoreSetting, match=name):
        session_conf(ON_S3, HERE, {f"spark.hadoop.{name}": value})
    with pytest.raises(UnsafeStoreSetting, match=name):
        refuse_unsafe({"fs.s3a.endpoint": "x", name: value}, "core-site.xml")


def test_what_does_no_harm_is_kept():
    """Other flags of performance, and the defaults written out."""
    harmless = {
        "fs.s3a.performance.flags": "delete,mkdir",
        "fs.s3a.create.performance": "false",
        "fs.s3a.create.conditional.enabled": "true",
        "fs.s3a.connection.maximum": "64",
    }
    conf = {f"spark.hadoop.{name}": value for name, value in harmless.items()}
    assert session_conf(ON_S3, HERE, conf).items() >= conf.items()


@pytest.mark.parametrize(
    "name",
    [
        "spark.delta.logStore.class",
        "spark.delta.logStore.s3.impl",
        "spark.sql.streaming.checkpointFileManagerClass",
        "spark.hadoop.fs.s3.impl",
    ],
)
def test_our_writers_are_not_replaced(name: str):
    """Delta's and Spark's own are not exclusive; the same value again is no replacement."""
    with pytest.raises(UnsafeStoreSetting, match=name):
        session_conf(ON_S3, HERE, {name: "io.delta.storage.S3SingleDriverLogStore"})
    same = store_settings(HERE).get(name)
    if same is not None:
        assert session_conf(ON_S3, HERE, {name: same})[name] == same


@given(st.sampled_from(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]), st.uuids())
def test_no_credential_becomes_a_setting(variable: str, secret: object):
    """Settings end up on a command line: keys are left to the chain that finds them in the driver."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(variable, str(secret))
        assert str(secret) not in str(session_conf(ON_S3, HERE, {}))
