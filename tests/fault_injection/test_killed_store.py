"""The S3 server itself is killed in the middle of updates, and started again with what it had acknowledged.

The server is versitygw, where there is one, else moto with a file of its changes (``tests/lasting_store.py``).
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.fault_injection.shop_on_s3 import ShopOnS3, says_that_it_passes
from tests.lasting_store import LastingStore, lasting_store
from tests.seeds import SEED

from headwater.storage.object_path import ObjectPath

# Clients try again for longer than this.
_SHORT_SECONDS = 8
# In the soak so many kills at random follow.
RANDOM_KILLS = int(os.environ.get("SOAK_RUNS") or 0) // 8


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LastingStore]:
    with lasting_store(tmp_path / "store") as server:
        server.make_bucket("lake")
        yield server


class Outages:
    """Updates of a pipeline during which the server is killed."""

    def __init__(self, shop: ShopOnS3, store: LastingStore) -> None:
        self.shop, self.store = shop, store
        self.states: list[str] = []
        self.kills = 0

    def update(self, moment: Callable[[], bool], seconds: float) -> None:
        """Kill the server when the moment has come, and start it again after so long, or when the update has ended."""
        update, began = self.shop.start(self.store.endpoint), time.monotonic()
        try:
            while update.poll() is None and not moment():
                time.sleep(0.05)
            self.kills += update.poll() is None
            self.store.kill()
            away = time.monotonic()
            while update.poll() is None and time.monotonic() < away + seconds:
                time.sleep(0.1)
            over = update.poll() is not None
            self.store.start()
            report = self.shop.report(update)
        finally:
            update.kill()
            update.wait()
        self.states.append(report["state"])
        print(
            f"  {report['state']} after {time.monotonic() - began:.0f} s, the store away {time.monotonic() - away:.0f} s, {over=}: "
            f"{report['error'] or [flow['error'] for flow in report['flows'] if flow['error']]}",
            flush=True,
        )
        assert report["state"] == "COMPLETED" or says_that_it_passes(report), report

    def undisturbed(self) -> None:
        """An update that nobody disturbs completes, and the tables are the oracle's."""
        report = self.shop.report(self.shop.start(self.store.endpoint))
        assert report["state"] == "COMPLETED", report
        self.shop.check_tables()
        self.shop.check_records()

    def commits(self, table: str) -> int:
        """How many commits a table has."""
        log: ObjectPath = self.store.place("lake", f"warehouse/shop/{table}/_delta_log")
        return sum(name.endswith(".json") for name in log.listed())

    def one_more(self, table: str) -> Callable[[], bool]:
        """The moment at which a table has one commit more than now."""
        now = self.commits(table)
        return lambda: self.commits(table) > now


@pytest.mark.timeout(900)
def test_the_server_is_killed(store: LastingStore, tmp_path: Path):
    """Killed between two batches and soon there again; then killed while a stream with state and a merge run, and there again only when
    the update has given up: each update completes or says that it passes, and the next one's tables are the oracle's.
    """
    outages = Outages(ShopOnS3(tmp_path), store)
    outages.shop.land(3)
    outages.update(outages.one_more("orders"), _SHORT_SECONDS)
    outages.shop.land(3)
    outages.update(outages.one_more("customers"), 600)
    assert (outages.kills, outages.states[1]) == (2, "FAILED")
    outages.undisturbed()
    chance = random.Random(SEED)
    for _ in range(RANDOM_KILLS):
        outages.shop.land(chance.randint(1, 3))
        ends = time.monotonic() + chance.uniform(6, 20)
        outages.update(lambda ends=ends: time.monotonic() > ends, chance.choice((1, _SHORT_SECONDS, 600)))  # type: ignore[misc]
        outages.undisturbed()
