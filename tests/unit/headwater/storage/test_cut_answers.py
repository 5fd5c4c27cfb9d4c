"""Answers of a store that end too soon or come too late are errors that pass: half a listing is never taken for a whole one."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import ClassVar

import pytest

from headwater.errors import LeaseUnreachable
from headwater.leases.conditional_store import StoredObject
from headwater.storage import retries
from headwater.storage.access import ObjectStore
from headwater.storage.conditions import StoreUnreachable
from headwater.storage.object_path import Bucket, ObjectPath
from headwater.storage.retries import Tries
from headwater.storage.walking import contents_below, files_below, remove_tree

_OBJECT = '<Contents><Key>a/{}</Key><Size>3</Size><ETag>"e"</ETag><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>'
_PAGE = '<?xml version="1.0"?><ListBucketResult><Name>b</Name><Prefix>a/</Prefix><KeyCount>2</KeyCount>{}{}</ListBucketResult>'
_MORE = "<IsTruncated>true</IsTruncated><NextContinuationToken>next</NextContinuationToken>"
WHOLE = _PAGE.format("<IsTruncated>false</IsTruncated>", _OBJECT.format("0") + _OBJECT.format("1"))
FIRST = _PAGE.format(_MORE, _OBJECT.format("0"))


class Listings(http.server.BaseHTTPRequestHandler):
    """Answers each listing by ``answer``; counts deletes."""

    protocol_version = "HTTP/1.1"
    answer: ClassVar[Callable[[Listings], None]]
    deleted: ClassVar[int] = 0

    def do_GET(self) -> None:
        type(self).answer(self)

    def do_POST(self) -> None:
        type(self).deleted += 1

    do_DELETE = do_POST  # noqa: N815 - the name that http.server looks for

    def says(self, text: str, *, status: int = 200, more: int = 0) -> None:
        """Answer; ``more``: so many bytes are promised that do not come."""
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) + more))
        self.send_header("ETag", '"e"')
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = bool(more)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def listing(answer: Callable[[Listings], None]) -> Iterator[ObjectPath]:
    """A folder of a server that answers so."""
    Listings.answer, Listings.deleted = answer, 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listings)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    store = ObjectStore("s3", f"http://127.0.0.1:{server.server_port}", "us-east-1", path_style=True)
    try:
        yield ObjectPath(Bucket(store, "b"), "a")
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def few_seconds(monkeypatch):
    """Credentials, and a client that gives up soon."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-test")
    soon = Tries(1, timedelta(seconds=1), request_timeout=timedelta(seconds=0.3))
    for name in ("DRIVERS", "LOOKS", "LEASES"):
        monkeypatch.setattr(retries, name, soon)


def in_the_middle(handler: Listings) -> None:
    handler.says(WHOLE[: len(WHOLE) // 2], more=len(WHOLE) // 2)


def well_formed_no_more(handler: Listings) -> None:
    handler.says(WHOLE[: WHOLE.index("<Contents>")])


def between_objects(handler: Listings) -> None:
    handler.says(WHOLE[: WHOLE.rindex("<Contents>")])


def on_the_second_page(handler: Listings) -> None:
    if "continuation-token" in handler.path:
        handler.says("<Error><Code>InternalError</Code></Error>", status=500)
    else:
        handler.says(FIRST)


def too_late(handler: Listings) -> None:
    time.sleep(0.8)
    with suppress(BrokenPipeError):
        handler.says(WHOLE)


WAYS = (in_the_middle, well_formed_no_more, between_objects, on_the_second_page, too_late)


def test_a_whole_listing():
    """What the ways below spoil is a listing that is read."""
    with listing(lambda handler: handler.says(WHOLE)) as folder:
        assert [path.name for path in folder.iterdir()] == ["0", "1"]
        assert sorted(path.name for path, _ in files_below(folder)) == ["0", "1"]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_listing_that_is_cut_off(way):
    """Neither names nor files nor whether a folder is there are made of a part; and nothing is removed by it."""
    with listing(way) as folder:
        for call in (
            lambda: list(folder.iterdir()),
            lambda: list(files_below(folder)),
            lambda: list(contents_below(folder)),
            folder.is_dir,
            lambda: remove_tree(folder),
        ):
            with pytest.raises(StoreUnreachable) as caught:
                call()
            assert caught.value.transient
            assert caught.value.where == "s3://b/a"
            assert caught.value.remedy
        assert Listings.deleted == 0


@pytest.mark.parametrize("way", [in_the_middle, too_late], ids=lambda way: way.__name__)
def test_an_object_that_is_cut_off(way):
    """Half an object is no object, and no lease."""
    with listing(way) as folder:
        with pytest.raises(StoreUnreachable):
            (folder / "x").read_bytes()
        with pytest.raises(LeaseUnreachable) as caught:
            StoredObject(folder / "lease").read()
        assert caught.value.transient
