"""Storage and warehouse on S3, the work on a standalone cluster, and whatever can be lost is lost: tables equal the oracle."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from tests.cluster_shop import Shop
from tests.faulty_store import Fault, Plan, faulty_store
from tests.object_stores import store_server
from tests.standalone_cluster import standalone_cluster

# A task takes six seconds before it writes; clients try for longer than this in all.
_STORE_IS_GONE_SECONDS = 12.0


def orders(first: int, count: int) -> list[tuple[int, str, int]]:
    return [(i, f" customer {i % 6} ", i % 7 - 1) for i in range(first, first + count)]


@pytest.mark.timeout(600)
def test_what_is_lost_changes_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An update loses a worker in the middle of a batch, the next one its driver, the one after that its store for some seconds."""
    plan = Plan(0, 0)
    with (
        store_server() as store,
        faulty_store(store.endpoint, plan) as endpoint,
        standalone_cluster(tmp_path / "cluster", workers=2) as cluster,
    ):
        store.make_bucket("lake")
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        shop = Shop(tmp_path, cluster.master, places="s3://lake")
        shop.marks.mkdir()

        shop.land("1.json", orders(0, 60))
        shop.land("2.json", orders(60, 60))
        update = shop.submit()
        shop.wait_for_tasks(update, workers=2)
        cluster.kill_worker("worker-0")
        shop.check(update)
        cluster.start_workers("worker-2")

        shop.land("3.json", orders(120, 60))
        update = shop.submit()
        shop.wait_for_tasks(update, workers=1)
        os.kill(update.pid, signal.SIGKILL)
        update.communicate()
        shop.land("4.json", orders(180, 60))
        update = shop.submit()
        shop.wait_for_tasks(update, workers=1)
        plan.gone_until = time.monotonic() + _STORE_IS_GONE_SECONDS
        shop.check(update)
    assert plan.happened[Fault.GONE]
