"""Which quarantined rows of a range a backfill discards: those that it has judged again, and no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.errors import AnalysisException
from tests.unit.headwater_spark.update_parts import context_of, dataset, run_of

from headwater.backfills.backfill_range import BackfillMode
from headwater.definitions.expectation import Expectation, ViolationAction
from headwater_spark.backfills import held_rows
from headwater_spark.backfills.held_rows import BACKFILL_EPOCH, hold_rows
from headwater_spark.delta_writes.batch_transaction import BatchTransaction

RANGE = "at >= '2026-01-01'"


class Backfill:
    """A backfill of ``orders``, whose quarantine there is or is not."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, there: bool = True) -> None:
        table = dataset(expectations=(Expectation("r", "id > 0", ViolationAction.QUARANTINE),))
        self.done: list[Any] = []
        self.applications: list[str] = []
        self.context = context_of(tmp_path, table)
        folder = self.context.quarantine_path(table)
        assert folder is not None
        self.folder = folder
        if there:
            write_deltalake(str(self.folder), pa.table({"at": [1]}))
        # The name that the flow had when its first rows were held.
        quarantine = SimpleNamespace(path=self.folder, flow="clicks", hold=self._hold)
        self.run = run_of(self.context, table)
        self.run.__dict__["quarantine"] = self._quarantine
        self.quarantine: Any = quarantine
        self.known = True
        monkeypatch.setattr(held_rows, "DeltaTable", SimpleNamespace(forPath=self._table))
        functions = SimpleNamespace(lit=lambda value: value, current_timestamp=lambda: "now")
        monkeypatch.setattr(held_rows, "F", functions)
        monkeypatch.setattr(
            type(self.context), "check_lease", lambda _: self.done.append("lease"), raising=True
        )

    def _hold(self, _: Any, transaction: BatchTransaction) -> None:
        self.done.append("held")
        self.applications.append(transaction.application)

    def _quarantine(self, epoch: int) -> Any:
        assert epoch == BACKFILL_EPOCH
        return self.quarantine

    def _table(self, _: Any, path: str) -> Any:
        assert path == str(self.folder)

        def where(_: str) -> None:
            if not self.known:
                raise AnalysisException("[UNRESOLVED_COLUMN] at")

        def update(condition: str, marks: dict[str, Any]) -> None:
            self.done.append((condition, marks["_status"], marks["_status_reason"]))

        return SimpleNamespace(toDF=lambda: SimpleNamespace(where=where), update=update)

    def hold(self, mode: BackfillMode = BackfillMode.REPLACE_WHERE, *, quarantined: int = 1) -> list[Any]:
        """What is done to the quarantine, in this order."""
        plan: Any = SimpleNamespace(mode=mode, row_condition=RANGE, dataset=self.run.dataset)
        quality = SimpleNamespace(quarantined=quarantined)
        part: Any = SimpleNamespace(run=self.run, quality=quality, judged=None)
        hold_rows(plan, part, BatchTransaction("p.orders@backfill-1", 0, "{}"))
        return self.done


def test_the_rows_of_the_range_are_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What the flow's stream holds of the range, under whatever name, is discarded, then the backfill's own is held."""
    lease, (condition, status, reason), held = Backfill(tmp_path, monkeypatch).hold()
    assert (lease, held, status) == ("lease", "held", "discarded")
    assert set(condition.split(" AND ")) == {
        "_flow = 'clicks'",
        "_status = 'held'",
        RANGE,
        "_update_id <> 'u1'",
    }
    assert "u1" in reason


@pytest.mark.parametrize("mode", [BackfillMode.APPEND, BackfillMode.MERGE])
def test_only_a_replaced_range_is_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: BackfillMode
):
    """Rows that are added say nothing of those that are held."""
    backfill = Backfill(tmp_path, monkeypatch)
    assert backfill.hold(mode) == ["lease", "held"]
    assert backfill.applications == ["p.orders@backfill-1"]


def test_each_attempt_and_each_flow_holds_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Delta takes no commit for another's: what an attempt holds, it has discarded of the attempt before."""
    backfill = Backfill(tmp_path, monkeypatch)
    backfill.hold()
    backfill.quarantine.flow = "odd_clicks"
    backfill.hold()
    backfill.run.__dict__["context"] = replace(backfill.context, update_id="u2")
    backfill.hold()
    assert len(set(backfill.applications)) == 3
    assert all(one.startswith("p.orders@backfill-1.") for one in backfill.applications)


def test_nothing_to_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Rows that are all good now still discard what was held of the range before; without a quarantine nothing is done."""
    backfill = Backfill(tmp_path, monkeypatch)
    assert len(backfill.hold(quarantined=0)) == 2
    backfill.done.clear()
    backfill.quarantine = None
    assert backfill.hold() == []


def test_a_quarantine_that_can_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One that is not there yet, or no row of which has the range's column, has nothing to discard."""
    assert Backfill(tmp_path, monkeypatch, there=False).hold() == ["lease", "held"]
    other = Backfill(tmp_path / "other", monkeypatch)
    other.known = False
    assert other.hold() == ["lease", "held"]
