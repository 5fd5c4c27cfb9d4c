"""A pipeline runs on a standalone cluster of two workers as it does on one machine, also when one of them is killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster_shop import Shop
from tests.standalone_cluster import StandaloneCluster, standalone_cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """A master and two workers."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), workers=2) as running:
        yield running


@pytest.mark.timeout(300)
def test_tables_equal_those_of_one_machine(cluster: StandaloneCluster, tmp_path: Path):
    """A function of a module beside the source, an expectation, a stateful stream and a view, with a worker killed in the middle of a batch."""
    shop = Shop(tmp_path, cluster.master)
    shop.land("1.json", [(i, f" customer {i % 5} ", i % 7) for i in range(40)])
    shop.land("2.json", [(i, f"CUSTOMER {i % 6}", 2 - i % 4) for i in range(40, 80)])
    shop.marks.mkdir()
    update = shop.submit()
    shop.wait_for_tasks(update, workers=2)
    cluster.kill_worker("worker-0")
    shop.check(update)
