"""One update at a time where storage is a store, and wrong stores are named."""

from __future__ import annotations

import itertools
import shutil
from contextlib import nullcontext
from datetime import timedelta

import obstore
import pytest
from tests.unit.headwater.metrics.conftest import done, pipeline

import run_update
from headwater.contract.arguments import RunArguments
from headwater.doctor.flow_cases import named_case
from headwater.errors import InvalidSpec, UpdateInProgress
from headwater.graph.pipeline_ids import note_home
from headwater.graph.pipeline_project import open_project
from headwater.leases.lease import is_held
from headwater.storage.conditions import StoreRefused
from headwater.storage.walking import files_below
from headwater.updates.news import has_news
from headwater_spark import session

__all__ = ["done", "pipeline"]
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def s3(moto):
    """The errors of a server that others have written."""
    return moto


@pytest.fixture
def roots(s3):
    """Both roots in one bucket."""
    number = next(_NUMBERS)
    return s3.place("places", f"no-{number}/storage"), s3.place("places", f"no-{number}/warehouse")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))


def everything(done):
    return sorted(
        (str(file), about.st_size)
        for root in (done.project.storage, done.project.warehouse)
        for file, about in files_below(root)
    )


def test_one_update_at_a_time(pipeline):
    """The lease lies in storage: a second holder is refused with the first one's id, and gets it afterwards."""
    assert not is_held(pipeline.project.state_folder)
    with pipeline.project.lease("first") as first:
        first.check()
        assert is_held(pipeline.project.state_folder)
        with pytest.raises(UpdateInProgress), pipeline.project.lease("second"):
            pass
    assert not is_held(pipeline.project.state_folder)
    with pipeline.project.lease("second") as second:
        second.check()
        assert second.token == first.token + 1


def test_another_machine_waits_for_a_dead_holder(pipeline, monkeypatch, tmp_path):
    """Without the lock of the machine on which the holder died, its lease is free a minute after its last renewal only."""
    from headwater.leases.conditional_store import StoredObject
    from headwater.leases.holder import Holder

    lease = pipeline.project.state_folder / "update.lease"
    StoredObject(lease).write(Holder("dead", 4, host="elsewhere", lock=("boot", 1, 2)).text(), expected=None)
    with pytest.raises(UpdateInProgress, match="dead") as caught, pipeline.project.lease("mine"):
        pass
    assert "free in" in caught.value.remedy
    monkeypatch.setattr("headwater.leases.conditional_store.store_time", _in_an_hour)
    monkeypatch.setattr("headwater.leases.store_lease.WATCHED", timedelta(seconds=1))
    with pipeline.project.lease("mine") as mine:
        assert mine.token == 5


def _in_an_hour(place, *, quick):
    from headwater.storage.atomic import store_time

    return store_time(place, quick=quick) + timedelta(hours=1)


def test_a_bucket_that_is_not_there(pipeline, s3, tmp_path):
    """No update begins where the bucket is missing: the error names it, and is none that passes."""
    with pytest.raises(StoreRefused, match="not there") as caught:
        open_project(pipeline.project.folder, storage="s3://no-such-bucket/x", warehouse=tmp_path / "w")
    assert "s3://no-such-bucket" in caught.value.where
    assert not caught.value.transient


def test_a_missing_bucket_of_tables_is_found_before_java_starts(done, monkeypatch):
    """The driver asks for it first: Spark would need a minute to say so."""
    moved = open_project(done.project.folder, storage=done.project.storage, warehouse="s3://no-such-bucket/w")
    started = []
    monkeypatch.setattr(session, "java_meanwhile", lambda *_: started.append("java") or nullcontext())
    with pytest.raises(StoreRefused, match="not there"):
        run_update.answer(moved, RunArguments(str(done.project.folder)))
    assert started == []


def test_a_warehouse_whose_bucket_is_not_there(done):
    """Where the tables' bucket is missing, neither a look for news nor a check takes them for tables that are gone."""
    moved = open_project(done.project.folder, storage=done.project.storage, warehouse="s3://no-such-bucket/w")
    before = everything(done)
    for look in (lambda: has_news(moved), lambda: named_case(moved, "silver").damages):
        with pytest.raises(StoreRefused, match="bucket is not there") as caught:
            look()
        assert caught.value.where.startswith("s3://no-such-bucket/w/")
    assert everything(done) == before


def test_a_store_that_ignores_conditions(pipeline, monkeypatch):
    """The first lease of all is refused where conditions are dropped on the way, and nothing is left there."""
    put = obstore.put
    monkeypatch.setattr(
        obstore, "put", lambda *arguments, mode="overwrite", **more: put(*arguments, **more, mode="overwrite")
    )
    with (
        pytest.raises(StoreRefused, match="ignores conditional writes") as caught,
        pipeline.project.lease("first"),
    ):
        pass
    assert not caught.value.transient
    assert not list(files_below(pipeline.project.storage))


def test_two_deployments_on_one_storage(pipeline, caplog, monkeypatch, tmp_path):
    """While one of them updates, the other is refused with its name; when they take turns, each says so, with both folders."""
    other_folder = pipeline.project.folder.parent / "elsewhere" / "orders"
    shutil.copytree(pipeline.project.folder, other_folder)
    roots = {"storage": pipeline.project.storage, "warehouse": pipeline.project.warehouse}
    one, other = pipeline.project, open_project(other_folder, **roots)
    with one.lease("first"):
        # Another machine knows nothing of the locks of this one.
        monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "another"))
        with pytest.raises(UpdateInProgress, match="first") as caught, other.lease("second"):
            pass
    assert caught.value.where.startswith("s3://places/")
    for hour, project in enumerate((one, other)):
        note_home(project.state_folder, project.folder, now=hour * 7200.0)
    assert not caplog.messages
    note_home(one.state_folder, one.folder, now=4 * 3600.0)
    (said,) = caplog.messages
    assert str(one.folder) in said
    assert str(other_folder) in said


def test_a_lease_of_its_own_is_idle(pipeline):
    """``lease`` in the spec is refused where storage lies on a store: it would have no effect."""
    (pipeline.project.folder / "pipeline.yml").write_text("name: orders\nlease: s3://places/leases\n")
    with pytest.raises(InvalidSpec, match="nothing to add"):
        open_project(pipeline.project.folder, storage="s3://places/x", warehouse="s3://places/y")
