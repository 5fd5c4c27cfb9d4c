"""An S3 server on loopback that answers what Headwater, delta-rs and Hadoop ask, much faster than moto: for tests of what stands on a store.

What a store has to be like is tested on moto (``tests/unit/headwater/storage/test_places.py`` and others), and this server is
compared with it (``tests/unit/test_light_store.py``). Whatever it does not know it answers with 501. Started by
``tests.object_stores``; imports nothing but the standard library, so that it starts at once.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import sys
import time
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

_PAGE = 1000
_BEHIND_ALL = "\U0010ffff"
_METADATA = "x-amz-meta-"
_REASONS = {
    200: "OK",
    204: "No Content",
    206: "Partial Content",
    400: "Bad Request",
    404: "Not Found",
    412: "Precondition Failed",
    416: "Range Not Satisfiable",
    500: "Internal Server Error",
    501: "Not Implemented",
}


class Refused(Exception):
    """An answer of S3 that is an error."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


@dataclass
class Stored:
    """An object. ``written``: whole seconds since 1970; ``metadata``: what its writer put along with it, as headers."""

    data: bytes
    written: int
    metadata: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tag = f'"{hashlib.md5(self.data, usedforsecurity=False).hexdigest()}"'


@dataclass
class StoredBucket:
    """Objects by key, and the keys in order."""

    objects: dict[str, Stored] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)

    def get(self, key: str) -> Stored:
        """An object that is there."""
        if key not in self.objects:
            raise Refused(404, "NoSuchKey")
        return self.objects[key]

    def put(self, key: str, data: bytes, metadata: dict[str, str]) -> Stored:
        """Make or replace an object."""
        if key not in self.objects:
            insort(self.keys, key)
        self.objects[key] = Stored(data, int(time.time()), metadata)
        return self.objects[key]

    def remove(self, key: str) -> None:
        """Remove an object if it is there."""
        if self.objects.pop(key, None) is not None:
            del self.keys[bisect_left(self.keys, key)]


@dataclass
class Answer:
    """What is sent back. ``length``: of a body that is not sent."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None

    def encoded(self) -> bytes:
        """As it goes over the wire."""
        length = len(self.body) if self.length is None else self.length
        headers = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        head = f"HTTP/1.1 {self.status} {_REASONS[self.status]}\r\n{headers}Content-Length: {length}\r\n\r\n"
        return head.encode() + self.body


@dataclass
class Request:
    """A request. ``headers``: by names in lower case."""

    method: str
    bucket: str
    key: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class Store:
    """All buckets. One request at a time: each is one step."""

    def __init__(self) -> None:
        self.buckets: dict[str, StoredBucket] = {}

    def answer(self, request: Request) -> Answer:
        """The answer to any request."""
        try:
            return self._answer(request)
        except Refused as refused:
            text = f"<?xml version='1.0'?><Error><Code>{refused.code}</Code><Message>a test</Message></Error>"
            if request.method == "HEAD":
                return Answer(refused.status)
            return Answer(refused.status, text.encode(), {"Content-Type": "application/xml"})

    def _answer(self, request: Request) -> Answer:
        method, query = request.method, set(request.query)
        if not request.key:
            if method == "HEAD":
                self._bucket(request)
                return Answer()
            if method == "PUT" and not query:
                self.buckets.setdefault(request.bucket, StoredBucket())
                return Answer()
            if method == "GET" and request.query.get("list-type") == "2":
                return listing(self._bucket(request), request.query)
            if method == "POST" and query == {"delete"}:
                return remove_many(self._bucket(request), request.body)
        elif not query or query == {"x-id"}:
            bucket = self._bucket(request)
            if method in ("GET", "HEAD"):
                return read(bucket.get(request.key), request)
            if method == "PUT":
                return self._put(bucket, request)
            if method == "DELETE":
                bucket.remove(request.key)
                return Answer(204)
        raise Refused(501, "NotImplemented")

    def _bucket(self, request: Request) -> StoredBucket:
        if request.bucket not in self.buckets:
            raise Refused(404, "NoSuchBucket")
        return self.buckets[request.bucket]

    def _put(self, bucket: StoredBucket, request: Request) -> Answer:
        there = bucket.objects.get(request.key)
        wanted = request.headers.get("if-match")
        if wanted is not None and there is None:
            raise Refused(404, "NoSuchKey")
        if wanted is not None and there is not None and there.tag.strip('"') != wanted.strip('"'):
            raise Refused(412, "PreconditionFailed")
        if request.headers.get("if-none-match") == "*" and there is not None:
            raise Refused(412, "PreconditionFailed")
        origin = request.headers.get("x-amz-copy-source")
        if origin is None:
            metadata = {name: text for name, text in request.headers.items() if name.startswith(_METADATA)}
            return Answer(headers={"ETag": bucket.put(request.key, request.body, metadata).tag})
        name, _, key = unquote(origin).lstrip("/").partition("/")
        if name not in self.buckets:
            raise Refused(404, "NoSuchBucket")
        original = self.buckets[name].get(key)
        if (name, key) == (request.bucket, request.key):
            raise Refused(400, "InvalidRequest")
        copy = bucket.put(request.key, original.data, original.metadata)
        return xml(f"<CopyObjectResult><ETag>{escape(copy.tag)}</ETag>{_moment(copy)}</CopyObjectResult>")

    def make_older(self, bucket: str, key: str, seconds: str) -> None:
        """Let an object be written so long before."""
        self.buckets[bucket].objects[key].written -= int(float(seconds))


def xml(text: str) -> Answer:
    """An answer of XML."""
    return Answer(
        body=f"<?xml version='1.0' encoding='UTF-8'?>{text}".encode(),
        headers={"Content-Type": "application/xml"},
    )


def _moment(stored: Stored) -> str:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(stored.written))
    return f"<LastModified>{moment}</LastModified>"


def read(stored: Stored, request: Request) -> Answer:
    """An object, or the range of it that is asked for."""
    headers = {
        "ETag": stored.tag,
        "Last-Modified": formatdate(stored.written, usegmt=True),
        "Accept-Ranges": "bytes",
        "Content-Type": "binary/octet-stream",
        **stored.metadata,
    }
    if request.method == "HEAD":
        return Answer(headers=headers, length=len(stored.data))
    size = len(stored.data)
    wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
    if wanted is None:
        return Answer(200, stored.data, headers)
    first, last = wanted.groups()
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    if start >= size:
        raise Refused(416, "InvalidRange")
    return Answer(
        206, stored.data[start:end], {**headers, "Content-Range": f"bytes {start}-{end - 1}/{size}"}
    )


def listing(bucket: StoredBucket, query: dict[str, str]) -> Answer:
    """A page of ``ListObjectsV2``."""
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    most = min(int(query.get("max-keys", _PAGE)), _PAGE)
    after = max(query.get("start-after", ""), _token(query.get("continuation-token", "")))
    in_url = query.get("encoding-type") == "url"

    def shown(name: str) -> str:
        return quote(name, safe="/") if in_url else escape(name)

    at = max(bisect_left(bucket.keys, prefix), bisect_right(bucket.keys, after) if after else 0)
    objects: list[str] = []
    folders: list[str] = []
    last, more = "", False
    while at < len(bucket.keys) and bucket.keys[at].startswith(prefix):
        key = bucket.keys[at]
        if len(objects) + len(folders) == most:
            more = True
            break
        end = key.find(delimiter, len(prefix)) if delimiter else -1
        if end < 0:
            about = bucket.objects[key]
            parts = f"<Key>{shown(key)}</Key>{_moment(about)}<ETag>{escape(about.tag)}</ETag><Size>{len(about.data)}</Size>"
            objects.append(f"<Contents>{parts}<StorageClass>STANDARD</StorageClass></Contents>")
            last, at = key, at + 1
        else:
            folder = key[: end + 1]
            folders.append(f"<CommonPrefixes><Prefix>{shown(folder)}</Prefix></CommonPrefixes>")
            last = folder + _BEHIND_ALL
            at = bisect_left(bucket.keys, last)
    token = base64.b64encode(last.encode()).decode()
    goes_on = f"<NextContinuationToken>{token}</NextContinuationToken>" if more else ""
    head = f"<Name>b</Name><Prefix>{shown(prefix)}</Prefix><KeyCount>{len(objects) + len(folders)}</KeyCount><MaxKeys>{most}</MaxKeys>"
    head += "<EncodingType>url</EncodingType>" if in_url else ""
    return xml(
        f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{head}'
        f"<IsTruncated>{str(more).lower()}</IsTruncated>{goes_on}{''.join(objects)}{''.join(folders)}</ListBucketResult>"
    )


def _token(text: str) -> str:
    return base64.b64decode(text).decode()


def without_signatures(body: bytes) -> bytes:
    """A body that came in pieces, each behind a line with its size and its signature."""
    pieces, at = [], 0
    while True:
        end = body.index(b"\r\n", at)
        size = int(body[at:end].partition(b";")[0], 16)
        if size == 0:
            return b"".join(pieces)
        pieces.append(body[end + 2 : end + 2 + size])
        at = end + 4 + size


def remove_many(bucket: StoredBucket, body: bytes) -> Answer:
    """``DeleteObjects``."""
    keys = [node.text or "" for node in ET.fromstring(body).iter() if node.tag.endswith("Key")]
    for key in keys:
        bucket.remove(key)
    removed = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
    return xml(f"<DeleteResult>{removed}</DeleteResult>")


class Connection(asyncio.Protocol):
    """Requests of one client, one after another."""

    def __init__(self, server: Server) -> None:
        self._server, self._received, self._promised = server, bytearray(), False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep where answers go."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request that is whole now."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            first, *lines = self._received[:end].decode("latin-1").split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)
            }
            # No client of ours sends a body of which it does not know the size.
            whole = end + 4 + int(headers.get("content-length", 0))
            if len(self._received) < whole:
                if "expect" in headers and not self._promised:
                    self._promised = True
                    self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                return
            body = bytes(self._received[end + 4 : whole])
            del self._received[:whole]
            self._promised = False
            method, target, _ = first.split(" ")
            self._transport.write(self._server.answer(method, target, headers, body).encoded())


class Server:
    """A store behind a port; writes a line for each request, as that of ``tests.object_stores`` does."""

    connection: type[Connection] = Connection

    def __init__(self, log: Path, age: str) -> None:
        self._store, self._age = Store(), age
        self._log = log.open("a", buffering=1)

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """The answer to a request."""
        path, _, text = target.partition("?")
        query = dict(parse_qsl(text, keep_blank_values=True))
        if path == self._age:
            self._store.make_older(**query)
            return Answer(body=b"done")
        self._log.write(f"{method} {unquote(path)}?{text}\n")
        if "transfer-encoding" in headers:
            return Answer(501)
        if headers.get("x-amz-content-sha256", "").startswith("STREAMING-"):
            body = without_signatures(body)
        bucket, _, key = unquote(path).removeprefix("/").partition("/")
        return self._store.answer(Request(method, bucket, key, query, headers, body))

    async def run(self) -> None:
        """Serve until the standard input ends: that is where the parent ends."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        server = await loop.create_server(lambda: self.connection(self), "127.0.0.1", 0)
        loop.add_reader(sys.stdin.fileno(), ended.set)
        print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        await ended.wait()


def serve(kind: type[Server] = Server) -> None:
    """The server's process: prints its address. Arguments: the path that makes objects older, the log's name."""
    asyncio.run(kind(Path(sys.argv[2]), sys.argv[1]).run())


if __name__ == "__main__":
    serve()
