"""Updates on a store that answers 503, 409, late or not at all: rows are right, and what can't go on fails as transient.

The store is moto's behind a proxy with faults.
"""

from __future__ import annotations

from pathlib import Path

from tests.fault_injection.shop_on_s3 import ShopOnS3, says_that_it_passes
from tests.faulty_store import Fault, Plan, faulty_store
from tests.object_stores import store_server
from tests.seeds import SEED

_SHARE_OF_REQUESTS = 0.04
_ATTEMPTS = 6


def test_rows_are_right_whatever_the_store_does(tmp_path: Path):
    """A share of all requests fails in five ways, puts whose answer is lost among them. Each round of updates ends with one that
    completes; those before it say that they are transient. The tables are the oracle's, and each batch has one record.
    """
    shop, plan = ShopOnS3(tmp_path), Plan(SEED, _SHARE_OF_REQUESTS)
    with store_server() as store, faulty_store(store.endpoint, plan) as endpoint:
        store.make_bucket("lake")
        for _ in range(2):
            shop.land(3)
            for _ in range(_ATTEMPTS):
                report = shop.report(shop.start(endpoint))
                if report.get("state") == "COMPLETED":
                    break
                assert says_that_it_passes(report), report
            else:
                raise AssertionError(f"no update of {_ATTEMPTS} completed: see {shop.logs}")
            shop.check_tables()
        shop.check_records()
    assert set(plan.happened) == set(Fault)
    assert plan.lost_puts
