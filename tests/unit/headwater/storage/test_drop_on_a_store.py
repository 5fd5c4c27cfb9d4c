"""A table is dropped where storage and warehouse are on S3."""

from __future__ import annotations

import itertools

import obstore
import pytest
from deltalake import DeltaTable
from tests.unit.headwater.doctor.test_dropping import *  # noqa: F403
from tests.unit.headwater.doctor.test_dropping import Killed, call
from tests.unit.headwater.metrics.conftest import done, pipeline
from tests.unit.headwater.storage.test_requests import cache

from headwater.delta_log.table_history import table_exists
from headwater.leases.store_lease import StoreLease
from headwater.storage import walking

__all__ = ["cache", "done", "pipeline"]
_NUMBERS = itertools.count()


@pytest.fixture
def roots(s3):
    """Both roots in one bucket."""
    number = next(_NUMBERS)
    return s3.place("places", f"drop-{number}/storage"), s3.place("places", f"drop-{number}/warehouse")


@pytest.mark.parametrize("checks", [0, 2, 5])
def test_one_that_stood_still_removes_nothing_more(done, capsys, monkeypatch, checks):
    """Another update may have made the table anew: each request that removes comes after a look at the lease."""
    monkeypatch.setattr(walking, "_A_REQUEST", 1)
    check, seen = StoreLease.check, []

    def stands_still(lease):
        seen.append(lease)
        if len(seen) > checks:
            lease._taken = True
        check(lease)

    removed = []
    delete = obstore.delete
    monkeypatch.setattr(obstore, "delete", lambda client, keys: (removed.append(keys), delete(client, keys)))
    with monkeypatch.context() as patched:
        patched.setattr(StoreLease, "check", stands_still)
        code, answer = call(done, capsys, "silver", "--yes")
    assert (code, answer["error"]["condition"], answer["error"]["transient"]) == (3, "LEASE_LOST", True)
    assert len([keys for keys in removed if isinstance(keys, list)]) < checks + 1
    assert call(done, capsys, "silver", "--yes")[0] == 0
    assert not done.table("silver").exists()


@pytest.mark.parametrize("requests", range(5))
def test_killed_between_its_requests(done, capsys, monkeypatch, requests):
    """A store removes a thousand objects at once, here one: no table is there without its files, and the same drop ends it."""
    monkeypatch.setattr(walking, "_A_REQUEST", 1)
    delete, removed = obstore.delete, []

    def dies(client, keys):
        if isinstance(keys, list):
            if len(removed) == requests:
                raise Killed
            removed.extend(keys)
        delete(client, keys)

    with monkeypatch.context() as patched:
        patched.setattr(obstore, "delete", dies)
        with pytest.raises(Killed):
            call(done, capsys, "silver", "--yes")
    if table_exists(done.table("silver")):
        assert len(DeltaTable(str(done.table("silver"))).to_pyarrow_table()) == 2
    assert call(done, capsys, "silver", "--yes")[0] == 0
    assert not done.table("silver").exists()
    assert not done.checkpoint("silver").folder.exists()
