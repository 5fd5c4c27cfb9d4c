"""One source of settings for the three that reach a store."""

import pytest

from headwater.storage.access import ObjectStore, StoreKeys, object_store
from headwater.storage.atomic import read_tagged
from headwater.storage.conditions import StoreRefused
from headwater.storage.object_path import Bucket, ObjectPath

_AMAZON = {"AWS_REGION": "eu-west-1"}
_SERVER = {"AWS_ENDPOINT_URL": "http://minio:9000/", "AWS_DEFAULT_REGION": "local"}


@pytest.mark.parametrize(
    ("declared", "environment", "expected"),
    [
        ({}, {}, ObjectStore("s3")),
        ({}, _AMAZON, ObjectStore("s3", region="eu-west-1")),
        ({}, _SERVER, ObjectStore("s3", "http://minio:9000", "local", path_style=True)),
        (
            {"endpoint": "https://s3.lan"},
            _SERVER,
            ObjectStore("s3", "https://s3.lan", "local", path_style=True),
        ),
        ({"path_style": False}, _SERVER, ObjectStore("s3", "http://minio:9000", "local", path_style=False)),
        ({"region": "a", "path_style": None}, _AMAZON, ObjectStore("s3", region="a")),
        (
            {},
            {"AWS_ENDPOINT_URL_S3": "https://a", "AWS_ENDPOINT_URL": "https://b"},
            ObjectStore("s3", "https://a", path_style=True),
        ),
    ],
)
def test_the_spec_counts_before_the_environment(declared, environment, expected):
    """Settings of the spec win over AWS's own variables, and an endpoint of one's own means buckets in the path."""
    assert object_store("s3", declared, environment) == expected


@pytest.mark.parametrize(
    "endpoint",
    ["minio:9000", "http://h:99999", "http://h:x", "http:///b", "http://a b", "http://[::1", "ftp://h"],
)
def test_an_endpoint_is_a_url(endpoint):
    """Any other text is refused by name, where obstore would end the process."""
    with pytest.raises(StoreRefused, match="no URL") as caught:
        object_store("s3", {}, {"AWS_ENDPOINT_URL": endpoint})
    assert "https://host:port" in caught.value.remedy


def test_a_key_without_its_secret(monkeypatch):
    """Half a login is none, and no other try will find one."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    with pytest.raises(StoreRefused, match="No credentials"):
        read_tagged(ObjectPath(Bucket(ObjectStore("s3", "http://127.0.0.1:9"), "half"), "x"), quick=True)


def test_nothing_secret_is_among_the_settings():
    """Keys in the environment reach neither the settings nor what delta-rs is given."""
    store = object_store("s3", {}, {"AWS_SECRET_ACCESS_KEY": "wJalr", "AWS_ACCESS_KEY_ID": "AKIA", **_SERVER})
    assert "wJalr" not in repr((store, store.delta_options))
    assert "AKIA" not in repr((store, store.delta_options))


@pytest.mark.parametrize(
    ("endpoint", "allowed"), [("http://127.0.0.1:1", "true"), ("https://s3.lan", "false")]
)
def test_plain_http_has_to_be_written(endpoint, allowed):
    """delta-rs may go without TLS only where the endpoint says so."""
    assert ObjectStore("s3", endpoint).delta_options["AWS_ALLOW_HTTP"] == allowed


_LOGIN = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "wJalr", "AWS_SESSION_TOKEN": "FwoG"}


def test_a_login_is_looked_up_at_each_use():
    """Never before; the newest counts, over the environment and under the spec."""
    logins = [_LOGIN, {**_LOGIN, "AWS_ENDPOINT_URL_S3": "https://b"}, {"AWS_REGION": "c"}]
    store = object_store("s3", {"region": "a"}, _SERVER, login=lambda: logins.pop(0))
    bucket = Bucket(store, "places")
    assert len(logins) == 3
    keys = StoreKeys("AKIA", "wJalr", "FwoG")
    assert [bucket.access for _ in range(3)] == [
        ObjectStore("s3", "http://minio:9000", "a", path_style=True, keys=keys),
        ObjectStore("s3", "https://b", "a", path_style=True, keys=keys),
        ObjectStore("s3", "http://minio:9000", "a", path_style=True),
    ]


def test_keys_reach_clients_and_no_text():
    """delta-rs is given them with its call; what could be printed has none."""
    store = object_store("s3", {}, _SERVER, login=lambda: _LOGIN)
    assert {**store.opened().delta_options, **_LOGIN} == store.opened().delta_options == store.delta_options
    for shown in (store, store.opened(), Bucket(store, "places"), Bucket(store, "places").access):
        assert not [secret for secret in _LOGIN.values() if secret in f"{shown!r} {shown}"]


def test_other_stores_have_no_such_login():
    """It is one of S3's; theirs is found by their own chain."""
    assert object_store("gs", {}, {}, login=lambda: _LOGIN) == ObjectStore("gs")
