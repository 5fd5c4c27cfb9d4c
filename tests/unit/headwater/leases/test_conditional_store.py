"""The lease on S3, spoken to by the real client over HTTP; moto answers, the real service was never asked."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.object_stores import StoreServer, leading_to, make_old

from headwater.errors import LeaseUnreachable, UpdateInProgress
from headwater.graph.pipeline_project import PipelineProject, open_project
from headwater.leases import conditional_store as module
from headwater.leases import store_lease
from headwater.leases.conditional_store import StoredObject
from headwater.leases.holder import Holder
from headwater.leases.store_lease import LIFETIME
from headwater.storage.conditions import StoreRefused
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import place_of

HOLD = """
import sys, time
from headwater.graph.pipeline_project import open_project
with open_project(sys.argv[1], storage=sys.argv[2]).lease("other"):
    print("held", flush=True)
    time.sleep(60)
"""


_NUMBERS = itertools.count()


@pytest.fixture
def bucket(moto_store: StoreServer) -> Iterator[str]:
    """The name of an empty bucket; the environment leads to it."""
    name = f"leases-{next(_NUMBERS)}"
    with leading_to(moto_store):
        moto_store.make_bucket(name)
        yield name


def stored(url: str) -> StoredObject:
    """The object of an address, by the environment of now."""
    place = place_of(url)
    assert isinstance(place, ObjectPath)
    return StoredObject(place)


def test_writes_are_conditional(bucket: str):
    """Only who saw what is there may replace it, and only one may make what is not there."""
    place = stored(f"s3://{bucket}/a/b.lease")
    assert place.read() is None
    first = place.write("one", expected=None)
    assert first is not None
    assert place.write("two", expected=None) is None
    second = place.write("two", expected=first)
    assert second is not None
    assert place.write("three", expected=first) is None
    seen = place.read()
    assert seen is not None
    assert (seen.text, seen.tag) == ("two", second)
    assert timedelta(seconds=-1) <= seen.age <= timedelta(seconds=20)
    assert stored(f"s3://{bucket}/other").write("x", expected=first) is None


def test_each_renewal_has_a_tag_of_its_own(bucket: str):
    """The tag is made of the content, and it is what those who wait watch: a renewal that said the same again would be none to them."""
    place = stored(f"s3://{bucket}/a/update.lease")
    tags: list[str] = []
    with store_lease.store_lease(place, Holder("u")) as lease:
        for _ in range(4):
            tags.append(lease.tag)
            lease.renew()
        lease.check()
    assert len(set(tags)) == len(tags)


def test_a_store_that_can_not_be_asked(bucket: str, monkeypatch: pytest.MonkeyPatch):
    """A bucket that is not there is an error of its own; a host that does not answer is one that may pass."""
    with pytest.raises(StoreRefused, match="bucket is not there"):
        stored("s3://nowhere/x").read()
    with pytest.raises(StoreRefused, match="bucket is not there"):
        stored("s3://nowhere/x").write("x", expected=None)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    with pytest.raises(LeaseUnreachable, match="does not answer"):
        stored(f"s3://{bucket}/x").read()


@pytest.fixture
def machines(tmp_path: Path, bucket: str) -> tuple[PipelineProject, PipelineProject]:
    """A pipeline as two machines have it that share nothing but the store."""
    (tmp_path / "pipeline.yml").write_text(f"name: orders\nlease: s3://{bucket}/headwater\n")
    one, two = (
        open_project(tmp_path, storage=tmp_path / name, environment=dict(os.environ))
        for name in ("one", "two")
    )
    return one, two


def test_two_machines(machines: tuple[PipelineProject, PipelineProject]):
    """One at a time holds it; the second gets an error that names the first."""
    one, two = machines
    with one.lease("first") as first:
        first.check()
        with pytest.raises(UpdateInProgress, match="is running: first, process"), two.lease("second"):
            pass
    with two.lease("second") as second:
        second.check()
        assert second.token == first.token + 1


def test_a_killed_holder(
    machines: tuple[PipelineProject, PipelineProject], bucket: str, monkeypatch: pytest.MonkeyPatch
):
    """It keeps the lease until the store has not heard of it for its time; on its own machine nobody waits for that."""
    one, two = machines
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(one.folder), str(one.storage)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(UpdateInProgress, match="other"), one.lease("mine"):
            pass
        other.send_signal(signal.SIGKILL)
        other.wait(10)
        with pytest.raises(UpdateInProgress, match="other"), two.lease("mine"):
            pass
        with one.lease("mine") as lease:
            lease.check()
        monkeypatch.setattr(store_lease, "RENEWAL", timedelta(hours=1))
        monkeypatch.setattr(store_lease, "WATCHED", timedelta(seconds=1))
        lost = one.lease("lost")
        lost.__enter__()
        make_old(place_of(f"s3://{bucket}/headwater/orders/update.lease"), LIFETIME.total_seconds())
        with two.lease("taken over") as lease:
            lease.check()
        lost.__exit__(None, None, None)
    finally:
        other.kill()
        other.wait(10)
        assert other.stdout is not None
        other.stdout.close()


def test_a_place_that_is_none(tmp_path: Path):
    """Other stores, and a bucket without a name, are refused with the line of the spec."""
    from headwater.errors import InvalidSpec

    for place in ("gs://bucket/x", "s3://", "/var/leases"):
        (tmp_path / "pipeline.yml").write_text(f"name: orders\nlease: {place}\n")
        with pytest.raises(InvalidSpec, match="s3://bucket/folder"):
            open_project(tmp_path, environment={})


def test_a_lease_that_is_free_has_no_age(monkeypatch: pytest.MonkeyPatch, bucket: str):
    """The store's clock takes a write: it is asked only where somebody may hold the lease."""
    asked: list[object] = []
    monkeypatch.setattr(
        module, "store_time", lambda clock, **_: asked.append(clock) or datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    )
    written = datetime(2026, 1, 1, tzinfo=UTC)
    lease = stored(f"s3://{bucket}/free/update.lease")
    for text, age in (('{"free": true}', 0), ('{"token": 3}', 60)):
        monkeypatch.setattr(module, "read_tagged", lambda _, text=text, **__: (text, "tag", written))
        seen = lease.read()
        assert seen is not None
        assert (seen.text, seen.age) == (text, timedelta(seconds=age))
    assert len(asked) == 1


def test_requests_for_a_lease_are_quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Each of them gives up early: a renewal that waits for a store as long as other requests do would come too late."""
    quick: list[Any] = []

    def request(answer: Any) -> Any:
        return lambda *_, **given: quick.append(given) or answer

    now = datetime(2026, 1, 1, tzinfo=UTC)
    monkeypatch.setattr(module, "read_tagged", request((Holder("u", 1).text(), "tag", now)))
    monkeypatch.setattr(module, "store_time", request(now + timedelta(seconds=7)))
    for name in ("create_text", "change_text"):
        monkeypatch.setattr(module, name, request(name))
    place: Any = tmp_path / "update.lease"
    store = StoredObject(place)
    seen = store.read()
    assert seen is not None
    assert seen.age == timedelta(seconds=7)
    assert [store.write("x", expected=tag) for tag in (None, "tag")] == ["create_text", "change_text"]
    assert quick == [{"quick": True}] * 4
