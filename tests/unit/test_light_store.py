"""The light S3 server answers as moto does, so that what is tested on it holds on the other one."""

from __future__ import annotations

import random
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import obstore
import pytest
from tests.object_stores import SIGNED, StoreServer, leading_to, make_old, put_exactly
from tests.seeds import SEED

KEYS = [
    *("a", "a/b", "a/b/c", "a/bc", "ab", "a/b/ü+ %2F&<x>'\"=", "b/_delta_log/0.json", "b/_delta_log/1.json"),
    *("b/part=1/x y.parquet", "b/part=1/~", "c/offsets/0", "c/offsets/10", "c/offsets/9"),
]
TEXTS = [b"", b"one", b"two" * 100]


@pytest.fixture(scope="module")
def servers(light_store: StoreServer, moto_store: StoreServer):
    """The light server and moto, each with two buckets that no other test uses."""
    with leading_to(light_store):  # for the credentials
        for server in (light_store, moto_store):
            for bucket in ("compared", "other"):
                server.make_bucket(bucket)
        yield light_store, moto_store


def outcome(call: Callable[[], Any]) -> Any:
    """What comes back, or the kind of error."""
    try:
        return call()
    except Exception as error:
        return type(error).__name__


def about(meta: Any) -> tuple[str, int, str | None]:
    return meta["path"], meta["size"], meta["e_tag"]


def listed(client: Any, prefix: str | None) -> list[Any]:
    return sorted(about(meta) for meta in obstore.list(client, prefix).collect())


def directly_below(client: Any, prefix: str | None) -> Any:
    answer = obstore.list_with_delimiter(client, prefix)
    return sorted(answer["common_prefixes"]), sorted(map(about, answer["objects"]))


def drawn(chance: random.Random) -> Callable[[Any], Any]:
    """A request with its arguments, to be made of any client."""
    key, other, text = chance.choice(KEYS), chance.choice(KEYS), chance.choice(TEXTS)
    prefix = chance.choice([None, key, key.rpartition("/")[0] or None])
    start, end, tagged = chance.randrange(4), chance.randrange(5, 400), chance.random() < 0.5

    def change(client: Any) -> Any:
        seen = outcome(lambda: obstore.head(client, key)["e_tag"]) if tagged else '"of another"'
        return obstore.put(client, key, text, mode={"e_tag": seen})["e_tag"]

    requests: list[Callable[[Any], Any]] = [
        lambda client: obstore.put(client, key, text)["e_tag"],
        lambda client: obstore.put(client, key, text, attributes={"put-by": other})["e_tag"],
        lambda client: sorted(obstore.get(client, key).attributes.items()),
        lambda client: obstore.put(client, key, text, mode="create")["e_tag"],
        change,
        lambda client: obstore.copy(client, key, other),
        lambda client: obstore.delete(client, key),
        lambda client: obstore.delete(client, [key, other]),
        lambda client: bytes(obstore.get(client, key).bytes()),
        lambda client: about(obstore.head(client, key)),
        lambda client: bytes(obstore.get_range(client, key, start=start, end=end)),
        lambda client: listed(client, prefix),
        lambda client: directly_below(client, prefix),
        lambda client: [
            meta["path"] for meta in obstore.list(client, prefix, offset=other, chunk_size=2).collect()
        ],
    ]
    return chance.choice(requests)


def test_any_requests_are_answered_alike(servers):
    """Whatever is asked, in any order: the same content, tags, names and kinds of errors, and afterwards the same objects."""
    chance = random.Random(SEED)
    light, moto = (server.place("compared").bucket.client for server in servers)
    errors = set()
    for number in range(400):
        request = drawn(chance)
        answers = [outcome(lambda c=client, ask=request: ask(c)) for client in (light, moto)]
        assert answers[0] == answers[1], number
        errors |= {answers[0]} if isinstance(answers[0], str) and answers[0].endswith("Error") else set()
    assert {"FileNotFoundError", "AlreadyExistsError", "PreconditionError"} <= errors
    assert listed(light, None) == listed(moto, None) != []


def test_marks_times_and_buckets(servers):
    """Marks of folders, objects made older, copies between buckets, buckets that are not there; keys that no path has."""
    seen = []
    for server in servers:
        place = server.place("other", "x")
        for key in ("x/", "x/full/", "x/full/a", "x/empty/"):
            server.put("other", key)
        (place / "old").write_text("x")
        before = (place / "old").stat().st_mtime
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWS_ENDPOINT_URL", server.endpoint)
            make_old(place / "old", 3600)
        server.put("compared", "x//y")
        gone, odd = server.place("gone", "x"), server.place("compared", "x")
        seen.append(
            [
                place.children(),
                (place / "full").children(),
                (place / "old").stat().st_mtime - before,
                outcome(odd.children),
                outcome(gone.read_bytes),
                outcome(gone.children),
                outcome(lambda gone=gone: put_exactly(gone.bucket.store.endpoint, "/gone/x")),
            ]
        )
    assert seen[0] == seen[1]


def test_pages(servers):
    """A listing of more than one page is whole, with folders between its objects; moto's are in ``test_places``."""
    light, _ = servers
    client = light.place("other").bucket.client
    for number in range(1010):
        obstore.put(client, f"many/{number:04d}", b"")
        if number % 10 == 0:
            obstore.put(client, f"many/{number:04d}.d/x", b"")
    with light.counted() as requests:
        seen = [len(obstore.list(client, "many").collect()), *map(len, directly_below(client, "many"))]
    assert seen == [1111, 101, 1010]
    assert requests == {"LIST": 4}


def test_what_it_does_not_know_it_says(light_store: StoreServer):
    """Requests that nobody here makes are refused, not taken for others."""
    for method, query in (("PUT", "acl"), ("POST", "uploads"), ("GET", "versions")):
        request = urllib.request.Request(f"{light_store.endpoint}/compared/x?{query}", method=method)
        with pytest.raises(urllib.error.HTTPError, match="501"):
            urllib.request.urlopen(request)


@pytest.mark.parametrize("which", [0, 1], ids=["light", "moto"])
def test_a_client_that_stops_in_its_put_keeps_no_other_waiting(servers, which: int):
    """With the head of a request and half its body sent, another client's put is answered; then the first goes on to its end."""
    server, path = servers[which], f"/compared/slow{which}"
    head = [f"PUT {path} HTTP/1.1", "Host: store", "Content-Length: 6", f"Authorization: {SIGNED}"]
    address = urlsplit(server.endpoint)
    with socket.create_connection((address.hostname, address.port), timeout=10) as slow:
        slow.sendall(("\r\n".join(head) + "\r\n\r\n").encode() + b"abc")
        if which:  # moto's log names a request at its head
            ends = time.monotonic() + 10
            while ("PUT", f"{path}?") not in server.requests() and time.monotonic() < ends:
                time.sleep(0.01)
        put_exactly(server.endpoint, f"/compared/quick{which}", b"there")
        slow.sendall(b"def")
        assert b" 200 " in slow.recv(1000).partition(b"\r\n")[0]
    assert server.place("compared", f"slow{which}").read_bytes() == b"abcdef"
