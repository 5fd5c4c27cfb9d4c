"""What does not work on a store is refused before anything is changed, and wrong stores are named."""

from __future__ import annotations

import itertools

import pytest
from tests.unit.headwater.metrics.conftest import done, pipeline

from headwater.commands.command_line import main
from headwater.errors import InvalidSpec, UpdateInProgress
from headwater.graph.pipeline_project import open_project
from headwater.leases.lease import is_held
from headwater.storage.conditions import StoreRefused
from headwater.storage.walking import files_below

__all__ = ["done", "pipeline"]
_NUMBERS = itertools.count()


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


@pytest.mark.parametrize(
    "verb",
    [
        ["rename", "silver", "shop.argent", "--yes"],
    ],
    ids=lambda verb: verb[0],
)
def test_verbs_that_need_folders(done, verb, capsys):
    """Each says so with its condition and exit code, and nothing lies there that did not before."""
    before = everything(done)
    name, *more = verb
    if name == "quarantine":
        argv = [name, more[0], str(done.project.folder), *more[1:]]
    else:
        argv = [name, str(done.project.folder), *more]
    code = main([*argv, f"--storage={done.project.storage}", f"--warehouse={done.project.warehouse}"])
    said = capsys.readouterr().err
    assert "NOT_ON_A_STORE" in said, said
    assert code == 2
    assert everything(done) == before


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
