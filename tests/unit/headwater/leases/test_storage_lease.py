"""The lease of a pipeline on a store, and the lock of this machine beside it."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from tests.object_stores import StoreServer, leading_to

from headwater.errors import UpdateInProgress
from headwater.leases import storage_lease as module
from headwater.leases.conditional_store import StoredText
from headwater.leases.holder import Holder
from headwater.leases.storage_lease import storage_lease, storage_lease_is_held
from headwater.leases.store_lease import LIFETIME, StoreLease


def test_stores_with_one_name_of_a_bucket_have_a_lease_each(
    light_store: StoreServer, moto_store: StoreServer, tmp_path, monkeypatch
):
    """A pipeline on one server waits for nobody on another one; on its own, somebody else is refused."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path))
    places = []
    for server in (light_store, moto_store):
        server.make_bucket("leased")
        places.append(server.place("leased", "pipelines/shop"))
    with (
        leading_to(light_store),  # for the credentials
        storage_lease(places[0], "one"),
        storage_lease(places[1], "two"),
        pytest.raises(UpdateInProgress),
        storage_lease(places[1], "three"),
    ):
        pass


def test_a_store_is_tried_before_its_first_lease(light_store: StoreServer, tmp_path, monkeypatch):
    """Only there: whoever finds a lease knows that the store has shown that it honours conditions."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path))
    light_store.make_bucket("tried")
    place, tried = light_store.place("tried", "pipelines/shop"), []
    monkeypatch.setattr(module, "refuse_without_conditions", lambda *by: tried.append(by))
    for _ in range(2):
        with leading_to(light_store), storage_lease(place, "one"):
            assert [folder for folder, _ in tried] == [place]
    # Who tries has one name on this machine, so that the next one takes away what an outage has left.
    for name in ("other", "another"):
        with leading_to(light_store), storage_lease(place / name, "one"):
            pass
    assert len({by for _, by in tried}) == 3


@pytest.mark.parametrize(
    ("seen", "held"),
    [
        (None, False),
        (StoredText(Holder("u", 1).text(), "1", LIFETIME - timedelta(seconds=1)), True),
        (StoredText(Holder("u", 1).text(), "1", LIFETIME), False),
        (StoredText(Holder("u", 1).text(free=True), "1", timedelta(0)), False),
    ],
)
def test_who_may_hold_it(monkeypatch, tmp_path, seen: StoredText | None, held: bool):
    """Whoever has not given it back and has renewed in time; a dead holder's lease, or none, is nobody's."""
    monkeypatch.setattr(module, "StoredObject", lambda _: SimpleNamespace(read=lambda: seen))
    assert storage_lease_is_held(tmp_path) is held


def test_a_driver_that_was_killed_here(light_store: StoreServer, tmp_path, monkeypatch):
    """Its lease is nobody's at once: the next attempt of its task does not wait for the store to forget it."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path))
    light_store.make_bucket("killed")
    place = light_store.place("killed", "pipelines/shop")
    with leading_to(light_store), monkeypatch.context() as killed:
        with storage_lease(place, "one"):
            assert storage_lease_is_held(place)
            killed.setattr(StoreLease, "release", lambda _: None)
        assert not storage_lease_is_held(place)
        monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "of another machine"))
        assert storage_lease_is_held(place)
