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
from headwater.storage import walking

__all__ = ["cache", "done", "pipeline"]
_NUMBERS = itertools.count()


@pytest.fixture
def roots(s3):
    """Both roots in one bucket."""
    number = next(_NUMBERS)
    return s3.place("places", f"drop-{number}/storage"), s3.place("places", f"drop-{number}/warehouse")


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
