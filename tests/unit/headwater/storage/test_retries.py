"""A driver waits for a store's server, whoever only looks does not, and after one wait in vain nobody does."""

from __future__ import annotations

import http.server
import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from headwater.storage import retries
from headwater.storage.access import ObjectStore
from headwater.storage.atomic import read_tagged
from headwater.storage.conditions import StoreUnreachable
from headwater.storage.object_path import Bucket, ObjectPath


@pytest.fixture(autouse=True)
def _credentials(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-test")
    monkeypatch.setattr(retries, "_waits", False)


def test_tries_outlast_a_server_that_starts_again():
    """However the pauses are drawn, they add up to more than twenty seconds; and they end within a minute."""
    assert retries.DRIVERS.most * retries.DRIVERS.first_pause > timedelta(seconds=20)
    assert timedelta(seconds=20) < retries.DRIVERS.in_all < timedelta(seconds=60)
    assert retries.DRIVERS.longest_pause <= timedelta(seconds=5)


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
    retries.wait_for_servers()
    starting.start()
    try:
        assert place.read_text() == "there"
    finally:
        starting.cancel()
        if started.is_set():
            server.shutdown()
        server.server_close()


def test_after_one_wait_in_vain_nobody_waits(monkeypatch):
    """The end of an update whose store is gone asks for many things: only the first of them is tried to the last."""
    shortly = replace(retries.DRIVERS, in_all=timedelta(milliseconds=300))
    monkeypatch.setattr(retries, "DRIVERS", shortly)
    bucket = Bucket(ObjectStore("s3", "http://127.0.0.1:1", path_style=True), "b")
    retries.wait_for_servers()
    with pytest.raises(StoreUnreachable):
        read_tagged(ObjectPath(bucket, "lease"), quick=True)
    assert retries.of_this_process() is shortly
    with pytest.raises(StoreUnreachable):
        ObjectPath(bucket, "x").read_text()
    assert retries.of_this_process() is retries.LOOKS
