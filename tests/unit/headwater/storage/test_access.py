"""One source of settings for the three that reach a store."""

import http.server
import threading
from datetime import timedelta

import pytest

from headwater.storage import access
from headwater.storage.access import ObjectStore, StoreKeys, object_store
from headwater.storage.atomic import read_tagged
from headwater.storage.conditions import StoreRefused, StoreUnreachable
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
    access.client.cache_clear()
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


def test_tries_outlast_a_server_that_starts_again():
    """However the pauses are drawn, they add up to more than twenty seconds; and they end within a minute."""
    pauses = access._SEVERAL_TIMES["backoff"]
    assert access._SEVERAL_TIMES["max_retries"] * pauses["init_backoff"] > timedelta(seconds=20)
    assert timedelta(seconds=20) < access._SEVERAL_TIMES["retry_timeout"] < timedelta(seconds=60)
    assert pauses["max_backoff"] <= timedelta(seconds=5)


class Late(http.server.BaseHTTPRequestHandler):
    """A store with one object."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.send_header("ETag", '"e"')
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.end_headers()
        self.wfile.write(b"there")

    def log_message(self, *_):
        """Say nothing."""


def test_a_read_waits_for_a_server_that_starts_again(monkeypatch):
    """For five seconds nobody listens: a driver waits, and who only looks is answered before."""
    monkeypatch.setattr(access, "_TRIES", dict(access._TRIES))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-test")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Late, bind_and_activate=False)
    server.server_bind()  # the port is ours, and refuses until somebody listens
    store = ObjectStore("s3", f"http://127.0.0.1:{server.server_address[1]}", path_style=True)

    started = threading.Event()

    def start() -> None:
        server.server_activate()
        started.set()
        server.serve_forever(0.05)

    starting = threading.Timer(5, start)
    place = ObjectPath(Bucket(store, "b"), "x")
    with pytest.raises(StoreUnreachable):
        place.read_text()
    access.wait_for_servers()
    starting.start()
    try:
        assert place.read_text() == "there"
    finally:
        access.client.cache_clear()
        starting.cancel()
        if started.is_set():
            server.shutdown()
        server.server_close()


def test_after_one_wait_in_vain_nobody_waits(monkeypatch):
    """The end of an update whose store is gone asks for many things: only the first of them is tried to the last."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-test")
    monkeypatch.setattr(access, "_TRIES", dict(access._TRIES))
    shortly = {**access._SEVERAL_TIMES, "retry_timeout": timedelta(milliseconds=300)}
    monkeypatch.setattr(access, "_SEVERAL_TIMES", shortly)
    bucket = Bucket(ObjectStore("s3", "http://127.0.0.1:1", path_style=True), "b")
    access.wait_for_servers()
    try:
        with pytest.raises(StoreUnreachable):
            read_tagged(ObjectPath(bucket, "lease"), quick=True)
        assert access._TRIES["of this process"] is shortly
        with pytest.raises(StoreUnreachable):
            ObjectPath(bucket, "x").read_text()
        assert access._TRIES["of this process"] is access._SOME_TIMES
    finally:
        access.client.cache_clear()


def test_other_stores_have_no_such_login():
    """It is one of S3's; theirs is found by their own chain."""
    assert object_store("gs", {}, {}, login=lambda: _LOGIN) == ObjectStore("gs")
