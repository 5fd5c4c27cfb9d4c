"""One update at a time where storage is a store, and wrong stores are named."""

from __future__ import annotations

import itertools

import pytest
from tests.unit.headwater.metrics.conftest import pipeline

from headwater.errors import InvalidSpec, UpdateInProgress
from headwater.graph.pipeline_project import open_project
from headwater.leases.lease import is_held
from headwater.storage.conditions import StoreRefused

__all__ = ["pipeline"]
_NUMBERS = itertools.count()


@pytest.fixture
def roots(s3):
    """Both roots in one bucket."""
    number = next(_NUMBERS)
    return s3.place("places", f"no-{number}/storage"), s3.place("places", f"no-{number}/warehouse")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))


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
    from headwater.leases.lease import Holder

    lease = pipeline.project.state_folder / "update.lease"
    StoredObject(lease).write(Holder("dead", 4, host="elsewhere", lock=("boot", 1, 2)).text(), expected=None)
    with pytest.raises(UpdateInProgress, match="dead") as caught, pipeline.project.lease("mine"):
        pass
    assert "free in" in caught.value.remedy
    monkeypatch.setattr("headwater.leases.conditional_store.store_time", _in_an_hour)
    with pipeline.project.lease("mine") as mine:
        assert mine.token == 5


def _in_an_hour(place, *, quick):
    from datetime import timedelta

    from headwater.storage.atomic import store_time

    return store_time(place, quick=quick) + timedelta(hours=1)


def test_a_bucket_that_is_not_there(pipeline, s3, tmp_path):
    """No update begins where the bucket is missing: the error names it, and is none that passes."""
    with pytest.raises(StoreRefused, match="not there") as caught:
        open_project(pipeline.project.folder, storage="s3://no-such-bucket/x", warehouse=tmp_path / "w")
    assert "s3://no-such-bucket" in caught.value.where
    assert not caught.value.transient


def test_a_lease_of_its_own_is_idle(pipeline):
    """``lease`` in the spec is refused where storage lies on a store: it would have no effect."""
    (pipeline.project.folder / "pipeline.yml").write_text("name: orders\nlease: s3://places/leases\n")
    with pytest.raises(InvalidSpec, match="nothing to add"):
        open_project(pipeline.project.folder, storage="s3://places/x", warehouse="s3://places/y")
