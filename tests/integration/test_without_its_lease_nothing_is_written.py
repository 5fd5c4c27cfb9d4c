"""A backfill, a loaded history or a replay whose lease was taken away writes nothing, and the next one does it all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.test_a_range_is_filled_again import ran as backfilled
from tests.integration.test_quarantined_rows_are_replayed_once import LINES, MENDED, ran, statuses
from tests.integration.test_quarantined_rows_are_replayed_once import SOURCE as ORDERS

from headwater.graph.pipeline_project import PipelineProject
from headwater.leases.lease import Lease

MORE = """
@dp.table
def raw():
    return spark.readStream.schema("body STRING, day STRING").json(LANDING)

dp.create_streaming_table("latest")
dp.create_auto_cdc_flow(target="latest", source="raw", keys=["day"], sequence_by="body")

@dp.table
def copied():
    return dp.read_stream("raw")
"""


@contextmanager
def lease_removed(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every lease that is taken inside is lost at once: its file is removed, as somebody's clean-up might."""
    real = PipelineProject.lease

    @contextmanager
    def lease(self: PipelineProject, *arguments: Any, **options: Any) -> Iterator[Lease]:
        with real(self, *arguments, **options) as held:
            (self.state_folder / "update.lease").unlink()
            yield held

    with patch.context() as patched:
        patched.setattr(PipelineProject, "lease", lease)
        yield


def written(case: Any) -> dict[Path, int]:
    """Every commit of a table, and every checkpoint."""
    logs = [*case.warehouse.rglob("_delta_log/*.json"), *case.storage.rglob("checkpoints/**/*")]
    return {path: path.stat().st_mtime_ns for path in logs if path.is_file()}


def test_backfill_history_and_replay(pipeline, monkeypatch):
    """Each is refused with LEASE_LOST before its first write; with a lease of its own the same command does its work."""
    case = pipeline(ORDERS + MORE)
    case.land([{"body": line, "day": "mon"} for line in LINES])
    assert case.update(tables=("orders", "raw", "latest")).state == "COMPLETED"
    case.rewrite(MENDED + MORE)
    version = str(case.version("raw"))
    of_changes = ("--tables", "latest", "--range", "version", "--from", version, "--to", version)
    history = ("--tables", "copied", "--then-stream")
    before = written(case)
    with lease_removed(monkeypatch):
        for code, answer in (
            backfilled(case, *of_changes),
            backfilled(case, *history),
            ran(case, "replay", "orders"),
        ):
            assert (code != 0, answer["error"]["condition"]) == (True, "LEASE_LOST"), json.dumps(answer)
            assert written(case) == before
    assert set(statuses(case).values()) == {"held"}
    assert backfilled(case, *of_changes)[0] == 0
    assert backfilled(case, *history)[0] == 0
    assert ran(case, "replay", "orders")[0] == 0
    assert len(case.rows("copied")) == len(LINES)
    assert "replayed" in statuses(case).values()
