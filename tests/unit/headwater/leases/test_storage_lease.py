"""The lease of a pipeline on a store, and the lock of this machine beside it."""

from __future__ import annotations

import pytest
from tests.object_stores import StoreServer, leading_to

from headwater.errors import UpdateInProgress
from headwater.leases.storage_lease import storage_lease


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
