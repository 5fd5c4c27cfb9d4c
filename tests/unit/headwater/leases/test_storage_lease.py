"""The lease of a pipeline on a store, and the lock of this machine beside it."""

from __future__ import annotations

import pytest
from tests.object_stores import store_server

from headwater.errors import UpdateInProgress
from headwater.leases.storage_lease import storage_lease


def test_stores_with_one_name_of_a_bucket_have_a_lease_each(tmp_path, monkeypatch):
    """A pipeline on one server waits for nobody on another one; on its own, somebody else is refused."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path))
    with store_server() as first, store_server() as second:
        places = []
        for server in (first, second):
            server.make_bucket("lake")
            places.append(server.place("lake", "pipelines/shop"))
        with (
            storage_lease(places[0], "one"),
            storage_lease(places[1], "two"),
            pytest.raises(UpdateInProgress),
            storage_lease(places[1], "three"),
        ):
            pass
