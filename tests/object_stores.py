"""An S3 server on loopback for the tests, which counts what it is asked: moto, or the light one of ``tests.light_store``.

It is a process of its own: delta-rs keeps the interpreter to itself while it queries.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from headwater.storage.access import object_store
from headwater.storage.delta_tables import small_table
from headwater.storage.object_path import Bucket, ObjectPath
from headwater.storage.place import Place, place_of

# A path of the server's own: it makes an object older.
_AGE = "/_age"
_MOTO = ("-c", "from tests.object_stores import serve; serve()")
_LIGHT = ("-m", "tests.light_store")
# moto looks for the service and the account here; nobody checks the signature.
SIGNED = "AWS4-HMAC-SHA256 Credential=of-the-test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "of-the-test",
    "AWS_SECRET_ACCESS_KEY": "of-the-test",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@dataclass
class StoreServer:
    """A running server. ``log``: a line for each request, method and path with query."""

    endpoint: str
    log: Path
    process: subprocess.Popen[str]

    def environment(self) -> dict[str, str]:
        """Variables that lead any client to the server."""
        return {**CREDENTIALS, "AWS_ENDPOINT_URL": self.endpoint, "AWS_ALLOW_HTTP": "true"}

    def make_bucket(self, name: str) -> None:
        """Make a bucket."""
        self.put(name)

    def put_mark(self, folder: ObjectPath) -> None:
        """Put what Hadoop leaves where it has made a folder: an empty object whose name ends with a slash."""
        self.put(folder.bucket.name, f"{folder.key}/")

    def put(self, bucket: str, key: str = "", body: bytes = b"") -> None:
        """Put an object by its exact key, which a place of ours can't have; without a key, make the bucket."""
        put_exactly(self.endpoint, f"/{bucket}/{key}" if key else f"/{bucket}", body)

    def place(self, bucket: str, key: str = "") -> ObjectPath:
        """A place on the server."""
        return ObjectPath(Bucket(object_store("s3", {}, self.environment()), bucket), key)

    def requests(self, start: int = 0) -> list[tuple[str, str]]:
        """All requests so far, oldest first. ``start``: of the log, in bytes."""
        lines = self.log.read_bytes()[start:].decode("utf-8", errors="replace").split("\n")
        return [(method, path) for method, _, path in (line.partition(" ") for line in lines if line)]

    def keys(self) -> dict[str, set[str]]:
        """What each access key has been used for: the bucket and the first two folders in it; of a request for no key and no prefix, its query."""
        used: dict[str, set[str]] = {}
        for line in _keys_of(self.log).read_text().split("\n"):
            if line:
                key, _, place = line.partition(" ")
                used.setdefault(key, set()).add("/".join(place.split("/")[:3]).rstrip("/"))
        return used

    @contextmanager
    def counted(self) -> Iterator[Counter[str]]:
        """Count the requests of the block by method, ``LIST`` among them."""
        start, counts = self.log.stat().st_size, Counter[str]()
        yield counts
        for method, path in self.requests(start):
            counts["LIST" if method == "GET" and "list-type=2" in path else method] += 1


def _keys_of(log: Path) -> Path:
    return log.with_name(f"{log.name}.keys")


def put_exactly(endpoint: str, path: str, body: bytes = b"") -> None:
    """A put of this very path."""
    connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=30)
    with contextlib.closing(connection):
        connection.request("PUT", quote(path), body, {"Authorization": SIGNED})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()


def make_old(place: Place, seconds: float) -> None:
    """Let a file, or an object of a server that ``AWS_ENDPOINT_URL`` names, be written so long ago."""
    if isinstance(place, Path):
        os.utime(place, (time.time() - seconds,) * 2)
    elif place.is_file():
        query = urlencode({"bucket": place.bucket.name, "key": place.key, "seconds": seconds})
        with urllib.request.urlopen(f"{os.environ['AWS_ENDPOINT_URL']}{_AGE}?{query}") as answer:
            assert answer.read() == b"done"


def stored_rows(address: str) -> list[dict[str, Any]]:
    """The rows of a table now, by delta-rs; the environment says where the server is."""
    import pyarrow as pa
    from deltalake import QueryBuilder

    # Updates of other tests in this process have other stores.
    table = small_table(place_of(address, store=object_store("s3")))
    answer = QueryBuilder().register("t", table).execute("select * from t").read_all()
    rows: list[dict[str, Any]] = pa.table(answer).to_pylist()
    return rows


@contextmanager
def store_server(*, light: bool = False) -> Iterator[StoreServer]:
    """Run moto, or the light server, on a free port of loopback; the environment leads to it inside the block."""
    with started_server(light=light) as running, leading_to(running):
        yield running


@contextmanager
def leading_to(server: StoreServer) -> Iterator[None]:
    """Let the environment lead to a server inside the block."""
    known = {name: os.environ.get(name) for name in server.environment()}
    os.environ.update(server.environment())
    try:
        yield
    finally:
        for name, value in known.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)


@contextmanager
def started_server(*, light: bool = False) -> Iterator[StoreServer]:
    """As ``store_server``, and leave the environment as it is."""
    with server_process(*_LIGHT, _AGE) if light else server_process(*_MOTO) as running:
        yield running


@contextmanager
def server_process(*program: str) -> Iterator[StoreServer]:
    """Run a server that prints its address and ends with its standard input. ``program``: Python's arguments; its log's name follows."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "requests"
        log.touch()
        process = subprocess.Popen(
            [sys.executable, *program, str(log)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(["include", "."])},
        )
        assert process.stdout is not None
        try:
            yield StoreServer(process.stdout.readline().strip(), log, process)
        finally:
            process.kill()
            process.wait()


def one_at_a_time(application: Any) -> Any:
    """Requests to moto one after another: it looks whether a key is there and then writes it, which is one step on a store.

    A request waits for its turn with its whole body: a client that freezes in the middle of a put keeps no other waiting.
    """
    turn = threading.Lock()

    def answer(environment: dict[str, Any], start_response: Any) -> Any:
        body = environment["wsgi.input"]
        ends_itself = environment.get("wsgi.input_terminated", False)
        length = -1 if ends_itself else int(environment.get("CONTENT_LENGTH") or 0)
        environment["wsgi.input"] = io.BytesIO(body.read(length))
        with turn:
            return application(environment, start_response)

    return answer


def _age(bucket: str, key: str, seconds: str) -> None:
    stored = _stored(bucket, key)
    assert stored is not None
    stored.last_modified -= timedelta(seconds=float(seconds))


def _written_at(path: str, moment: datetime) -> None:
    """Let an object be as old as it was before the server was killed."""
    bucket, _, key = path.encode("latin-1").decode().lstrip("/").partition("/")
    stored = _stored(bucket, key)
    if stored is not None:
        stored.last_modified = moment.replace(tzinfo=stored.last_modified.tzinfo)


def _stored(bucket: str, key: str) -> Any:
    from moto.s3.models import s3_backends

    backend = s3_backends["123456789012"]["aws"]
    return backend.get_object(bucket, key) if key and bucket in backend.buckets else None


def serve() -> None:
    """The server's process: prints its address, and ends with its parent. A port and a file of changes may follow the log's name."""
    import logging

    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server

    # werkzeug answers "Expect: 100-continue" itself; a second answer by http.server is taken for the end of the request.
    MotoRequestHandler.handle_expect_100 = lambda self: True  # type: ignore[method-assign]
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    wanted, changes = (int(sys.argv[2]), Path(sys.argv[3])) if len(sys.argv) > 2 else (0, None)
    application: Any = DomainDispatcherApplication(create_backend_app)
    if changes is not None:
        from tests.lasting_store import Changes

        kept = Changes(changes, application)
        kept.again(_written_at)
        application = kept
    application = one_at_a_time(application)
    log = Path(sys.argv[1]).open("a", buffering=1)  # noqa: SIM115 - open as long as the process
    keys = _keys_of(Path(sys.argv[1])).open("a", buffering=1)

    def counting(environment: dict[str, Any], start_response: Any) -> Any:
        query = environment.get("QUERY_STRING", "")
        if environment["PATH_INFO"] == _AGE:
            _age(**{name: values[0] for name, values in parse_qs(query).items()})
            start_response("200 OK", [])
            return [b"done"]
        log.write(f"{environment['REQUEST_METHOD']} {environment['PATH_INFO']}?{query}\n")
        _, _, credential = environment.get("HTTP_AUTHORIZATION", "").partition("Credential=")
        prefix = parse_qs(query).get("prefix", [""])[0]
        place = environment["PATH_INFO"].strip("/")
        path = f"{place}/{prefix}" if prefix or "/" in place else f"{place}/?{query}"
        keys.write(f"{credential.partition('/')[0] or '-'} {path}\n")
        return application(environment, start_response)

    server = make_server("127.0.0.1", wanted, counting, threaded=True, request_handler=MotoRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdin.read()
