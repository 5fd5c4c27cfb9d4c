"""What a live stream wrote to a range while a backfill replaced it: put back once, by whoever comes to it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.headwater_spark.written_table import commit

from headwater.checkpoints.pending_replacement import PendingReplacement, pending_replacements
from headwater_spark.execution import late_rows
from headwater_spark.execution.late_rows import finish_replacements, put_back_late_rows

BACKFILL = "p.orders@backfill-1"
PENDING = PendingReplacement("orders", BACKFILL, "id < 10", json.dumps({"backfill": "u1"}), {"p.f@0": 1})


@dataclass
class Written:
    """What is read of the table's commits, and what is appended to it, as (rows, transaction)."""

    appended: list[tuple[str, str]] = field(default_factory=list)

    def of_commit(self, spark: Any, table: Path, version: int) -> Any:
        """The rows of a commit, by its version."""
        del spark, table
        return Rows(f"rows of {version}")

    def append(self, table: Path) -> Any:
        """A writer that adds a commit with the transaction."""
        written = self.appended

        class Append:
            def write(self, rows: Rows, transaction: Any) -> None:
                written.append((rows.name, transaction.application.removeprefix(BACKFILL)))
                commit(table, transactions={transaction.application: transaction.batch_id})

        return Append()


@dataclass(frozen=True)
class Rows:
    name: str

    def where(self, condition: str) -> Rows:
        """Those of the range."""
        return Rows(f"{self.name} where {condition}")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    """Stands for Spark."""
    written = Written()
    monkeypatch.setattr(late_rows, "rows_of_commit", written.of_commit)
    monkeypatch.setattr(late_rows, "DeltaAppend", written.append)
    return written


def orders(folder: Path, *batches: dict[str, int]) -> Path:
    """A table with a first version, and one for each of these transactions."""
    table = folder / "orders"
    commit(table)
    for transactions in batches:
        commit(table, transactions=transactions)
    return table


def replaced(table: Path, **info: Any) -> None:
    """The backfill's commit."""
    commit(table, transactions={BACKFILL: 0}, metadata=json.loads(PENDING.user_metadata), **info)


def record(folder: Path, pending: PendingReplacement = PENDING) -> None:
    """The record of a backfill that was killed."""
    with pending.written_down(folder):
        pass


def test_only_what_the_backfill_did_not_see(tmp_path: Path, written: Written):
    """Batches after the version that it saw, up to the one that its commit began from, of the streams that it knows."""
    table = orders(tmp_path, {"p.f@0": 0}, {"p.f@0": 1}, {"other": 7}, {"p.f@0": 2}, {"p.f@0": 3})
    replaced(table, readVersion=4)
    put_back_late_rows(None, tmp_path, table, PENDING)
    assert written.appended == [
        ("rows of 2 where id < 10", "-late-2"),
        ("rows of 4 where id < 10", "-late-4"),
    ]


def test_each_stream_from_the_version_that_was_seen_of_it(tmp_path: Path, written: Written):
    """Two streams fill the range, and the backfill read them at different versions."""
    table = orders(tmp_path, {"a": 0}, {"b": 0}, {"a": 1}, {"b": 1})
    replaced(table, readVersion=4)
    put_back_late_rows(None, tmp_path, table, replace(PENDING, known={"a": 3, "b": 2}))
    assert [name for _, name in written.appended] == ["-late-4"]


def test_a_commit_that_does_not_say_where_it_began(tmp_path: Path, written: Written):
    """It began from the version before; its own rows are not put back."""
    table = orders(tmp_path, {"p.f@0": 0}, {"p.f@0": 1})
    replaced(table)
    put_back_late_rows(None, tmp_path, table, replace(PENDING, known={"p.f@0": 1, BACKFILL: 1}))
    assert [name for _, name in written.appended] == ["-late-2"]


def test_once(tmp_path: Path, written: Written):
    """A second process, or a retry, adds only what the first has not added; then the record is crossed out."""
    table = orders(tmp_path, {"p.f@0": 0}, {"p.f@0": 1}, {"p.f@0": 2})
    replaced(table)
    commit(table, transactions={f"{BACKFILL}-late-2": 0})
    record(tmp_path)
    finish_replacements(None, tmp_path, "orders", table)
    assert [name for _, name in written.appended] == ["-late-3"]
    assert not [*pending_replacements(tmp_path)]
    put_back_late_rows(None, tmp_path, table, PENDING)
    assert [name for _, name in written.appended] == ["-late-3"]


def test_a_backfill_that_never_committed(tmp_path: Path, written: Written):
    """Nothing was removed, so nothing is put back; its record goes once it has ended, and not while it may still commit."""
    table = orders(tmp_path, {"p.f@0": 0}, {"p.f@0": 1})
    with PENDING.written_down(tmp_path):
        finish_replacements(None, tmp_path, "orders", table)
        assert [*pending_replacements(tmp_path)] == [PENDING]
    finish_replacements(None, tmp_path, "orders", table)
    assert (written.appended, [*pending_replacements(tmp_path)]) == ([], [])


def test_a_killed_backfill_that_committed_keeps_its_record_until_its_rows_are_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Where putting them back fails, the next start has all that it needs to do it."""
    table = orders(tmp_path, {"p.f@0": 0}, {"p.f@0": 1})
    replaced(table)
    record(tmp_path)

    def full(*_: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(late_rows, "rows_of_commit", full)
    with pytest.raises(OSError, match="No space"):
        finish_replacements(None, tmp_path, "orders", table)
    assert [*pending_replacements(tmp_path)] == [PENDING]
