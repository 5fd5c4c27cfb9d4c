"""What a store may answer instead of an object: each becomes an error that says whether it passes."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import pytest

from headwater.errors import LeaseUnreachable
from headwater.leases.conditional_store import StoredObject
from headwater.storage import retries
from headwater.storage.access import ObjectStore
from headwater.storage.atomic import change_text, create_text, read_tagged
from headwater.storage.conditions import StoreRefused, StoreUnreachable
from headwater.storage.object_path import Bucket, ObjectPath
from headwater.storage.walking import copy_file, files_below, remove_files


class Answers(http.server.BaseHTTPRequestHandler):
    """Gives one answer to everything."""

    protocol_version = "HTTP/1.1"
    status: ClassVar[int] = 200
    code: ClassVar[str] = ""
    count: ClassVar[int] = 0

    def do_GET(self) -> None:
        type(self).count += 1
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = f"<?xml version='1.0'?><Error><Code>{self.code}</Code></Error>".encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815 - the name that http.server looks for

    def log_message(self, *_):
        """Say nothing."""


@contextmanager
def answering(status: int, code: str) -> Iterator[ObjectPath]:
    Answers.status, Answers.code, Answers.count = status, code, 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    store = ObjectStore("s3", f"http://127.0.0.1:{server.server_port}", "us-east-1", path_style=True)
    try:
        yield ObjectPath(Bucket(store, "b"), "a/lease")
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    monkeypatch.setattr(retries, "DRIVERS", retries.LEASES)


@pytest.mark.parametrize(
    ("status", "code", "condition"),
    [
        (403, "AccessDenied", StoreRefused),
        (403, "SignatureDoesNotMatch", StoreRefused),
        (403, "InvalidAccessKeyId", StoreRefused),
        (403, "RequestTimeTooSkewed", StoreRefused),
        (400, "ExpiredToken", StoreRefused),
        (404, "NoSuchBucket", StoreRefused),
        (301, "PermanentRedirect", StoreRefused),
        (400, "AuthorizationHeaderMalformed", StoreRefused),
        (400, "RequestTimeTooSkewed", StoreRefused),
        (400, "KeyTooLongError", StoreRefused),
        (405, "MethodNotAllowed", StoreRefused),
        (400, "RequestTimeout", StoreUnreachable),
        (408, "RequestTimeout", StoreUnreachable),
        (429, "TooManyRequests", StoreUnreachable),
        (503, "SlowDown", StoreUnreachable),
        (500, "InternalError", StoreUnreachable),
    ],
)
def test_each_answer_has_its_error(status, code, condition):
    """Rights, names and regions are for good; what the server can't do now passes. No secret is in the text."""
    with answering(status, code) as place:
        for call in (
            lambda: read_tagged(place, quick=True),
            lambda: create_text(place, "x", quick=True),
            lambda: next(files_below(place.parent)),
        ):
            with pytest.raises(condition) as caught:
                call()
            assert caught.value.transient is (condition is StoreUnreachable)
            assert caught.value.where in (str(place), str(place.parent))
            assert "wJalrXUtnFEMI" not in str(caught.value)


@pytest.mark.parametrize("code", ["RequestTimeTooSkewed", "RequestExpired"])
def test_a_wrong_clock_is_named(code):
    """Where the store refuses because of the time, neither name nor rights of the credentials are to be looked at."""
    with answering(403, code) as place:
        for call in (
            lambda: create_text(place, "x", quick=True),
            lambda: list(place.parent.iterdir()),
            StoredObject(place).read,
        ):
            with pytest.raises(StoreRefused, match="clock of this machine") as caught:
                call()
            assert code in caught.value.what
            assert "clock" in caught.value.remedy
            assert "credentials" not in caught.value.remedy


def test_what_is_no_store_is_named():
    """A web page, or a proxy, answers 200 to everything: its text is no content of ours, whatever is asked for."""
    with answering(200, "Welcome") as place:
        for call in (place.read_text, place.is_file, StoredObject(place).read):
            with pytest.raises(StoreRefused, match="no object store") as caught:
                call()
            assert "endpoint" in caught.value.remedy
            assert caught.value.where == str(place)


def test_credentials_that_have_expired_are_named():
    """They are for good too: nothing renews them but who started this process."""
    with answering(400, "ExpiredToken") as place, pytest.raises(StoreRefused, match="ExpiredToken") as caught:
        place.read_text()
    assert "credentials" in caught.value.remedy


@pytest.mark.parametrize("code", ["OperationAborted", "ConditionalRequestConflict"])
def test_a_conflict_without_a_condition_passes(code):
    """409 for a plain write, a copy or a removal says that another request is under way; nobody is told that an object is there."""
    with answering(409, code) as place:
        for call in (
            lambda: place.write_text("x"),
            lambda: place.unlink(missing_ok=True),
            lambda: remove_files([place, place.parent / "other"]),
            lambda: copy_file(place, place.parent / "other"),
        ):
            with pytest.raises(StoreUnreachable, match="does not answer as it should") as caught:
                call()
            assert caught.value.transient


def test_nothing_is_removed_or_changed_where_there_is_no_bucket():
    """A removal and a conditional write say so: what is asked for was not done."""
    with answering(404, "NoSuchBucket") as place:
        for call in (
            lambda: remove_files([place, place.parent / "other"]),
            lambda: change_text(place, "x", '"tag"'),
        ):
            with pytest.raises(StoreRefused, match="bucket"):
                call()


def test_a_busy_store_is_tried_again():
    """503 is tried again before it is an error, and a lease that can't be read then is one that passes."""
    with answering(503, "SlowDown") as place:
        with pytest.raises(LeaseUnreachable) as caught:
            StoredObject(place).read()
        assert Answers.count > 1
        assert caught.value.transient


@pytest.mark.parametrize(
    ("status", "code"), [(412, "PreconditionFailed"), (409, "ConditionalRequestConflict")]
)
def test_a_lost_race_is_no_error(monkeypatch, status, code):
    """Where the object is there afterwards, both answers of S3 to a condition mean that another one was first."""
    with answering(status, code) as place, monkeypatch.context() as patched:
        patched.setattr("headwater.storage.atomic.read_tagged", lambda *_, **__: ("of another", "tag", None))
        assert create_text(place, "x", quick=True) is None
