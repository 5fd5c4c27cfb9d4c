"""Updates, and verbs that change tables, leave what an oracle says where storage and warehouse lie on Azurite."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.azure.azurite import Azurite, address
from tests.integration.test_verbs_on_s3 import (
    LIVE,
    SOURCE,
    SPEC,
    Orders,
    counted_again,
    dropped,
    history,
    kept,
    put_right,
    renamed,
    replayed,
)
from tests.pipeline_case import PipelineCase

from headwater.commands.command_line import main
from headwater.event_log.reader import events
from headwater.graph.stored_manifest import stored_manifest
from headwater.metrics.lag import pipeline_lag
from headwater.storage.delta_tables import small_table
from headwater.storage.place import place_of
from headwater.storage.walking import objects_below

CHECKOUT = Path(__file__).parents[2]


def test_all_verbs_on_azure(server: Azurite, tmp_path: Path):
    """Two updates with their lag and status, and then what ``test_verbs_on_s3`` does on S3: backfill, replay, maintenance, drop, rename."""
    server.make_container("lake")
    program = "from tests.azure.test_updates_on_azure import drive; drive()"
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        check=False,
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": "include:jobs:plugins:."},
        capture_output=True,
        text=True,
        timeout=500,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stderr[-8000:]


class AzureOrders(Orders):
    """The pipeline of the S3 test, with both roots in the container ``lake``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.storage = place_of(f"abfss://{address('lake')}/storage")  # type: ignore[assignment]
        self.warehouse = place_of(f"abfss://{address('lake')}/warehouse")  # type: ignore[assignment]

    def rows(self, name: str, select: str = "*", order: str = "1, 2") -> list[tuple[Any, ...]]:
        import pyarrow as pa
        from deltalake import QueryBuilder

        order = "1" if order == "1, 2" and select.count(",") == 0 and select != "*" else order
        answer = QueryBuilder().register("t", small_table(self.table(name)))
        found = pa.table(answer.execute(f"select {select} from t order by {order}").read_all())
        return [tuple(row.values()) for row in found.to_pylist()]

    def behind(self) -> dict[str, int]:
        """How many files or versions each stream has not read."""
        lags = pipeline_lag(self.project(), stored_manifest(self.project()))
        return {lag.flow: (lag.backlog.files or 0) + (lag.backlog.versions or 0) for lag in lags}


def drive() -> None:
    """All of it, in one process and one JVM."""
    started = time.monotonic()
    case = AzureOrders(Path(sys.argv[1]), SOURCE, spec=SPEC)
    case.lands(2, (1, 1, 10), (2, 2, 20), (3, 3, -5))
    case.updated(*LIVE)
    case.check_orders()
    print(f"{time.monotonic() - started:.0f} s: the first update", flush=True)
    case.lands(2, (4, 2, 40), (5, 3, 50))
    assert case.behind()["raw"] == 1
    case.updated(*LIVE)
    case.check_orders()
    assert {flow: case.behind()[flow] for flow in LIVE} == {"raw": 0, "orders": 0}
    assert [changes.snapshot for changes in case.read_changes()] == [True]
    code, answer = case.call(main, verb=["status"])
    assert (code, answer["pipeline_id"]) == (0, "case"), answer
    for step in (put_right, replayed, history, counted_again, kept, dropped, renamed):
        print(f"{time.monotonic() - started:.0f} s: {step.__name__}", flush=True)
        step(case)
    no_secret_is_stored(case)
    print(f"{time.monotonic() - started:.0f} s", flush=True)


def no_secret_is_stored(case: PipelineCase) -> None:
    """The account's key is in no object of storage, and in no event."""
    key = os.environ["AZURE_STORAGE_ACCOUNT_KEY"].encode()
    storage = place_of(case.storage)
    assert not isinstance(storage, Path)
    stored = [file for file, about in objects_below(storage) if about.st_size]
    assert len(stored) > 20
    assert [str(file) for file in stored if key in file.read_bytes()] == []
    assert key.decode() not in str(events(case.project().state_folder))
