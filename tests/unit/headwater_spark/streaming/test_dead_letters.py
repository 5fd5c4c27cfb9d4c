"""Each row of a batch is in exactly one of two tables, once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark import plain_columns
from tests.unit.headwater_spark.plain_rows import FUNCTIONS, Frame, plain_functions
from tests.unit.headwater_spark.recorded_writes import RecordedWrite

from headwater.errors import UsageError
from headwater_spark.streaming import batch_table, dead_letters
from headwater_spark.streaming.batch_table import append_once, refuse_two_checkpoints
from headwater_spark.streaming.dead_letters import SplitBatch, reason_of

NAMES = ["event_id", "event_timestamp", "good"]
ROWS = [(1, 1, True), (None, 1, True), (2, None, False), (None, None, None), (3, 1, False), (4, 1, None)]


def batch(query_id: str | None = "q") -> Frame:
    """A batch with each kind of row, of the stream ``q``."""
    context = SimpleNamespace(getLocalProperty={"sql.streaming.queryId": query_id}.__getitem__)
    rows = [dict(zip(NAMES, row, strict=True)) for row in ROWS]
    return Frame(rows, NAMES, session=SimpleNamespace(sparkContext=context))


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[RecordedWrite]:
    """What is written."""
    writes: list[RecordedWrite] = []
    plain_functions(monkeypatch, dead_letters)
    texts = SimpleNamespace(
        **vars(FUNCTIONS), concat_ws=lambda between, column: plain_columns.array_join(column, between)
    )
    monkeypatch.setattr(dead_letters, "F", texts)
    monkeypatch.setattr(Frame, "write", property(lambda rows: RecordedWrite(writes, rows)), raising=False)
    monkeypatch.setattr(RecordedWrite, "saveAsTable", RecordedWrite.save, raising=False)
    return writes


def test_why_a_row_is_invalid(log):
    """What it lacks comes before the condition; a condition that is NULL is not met."""
    reason: Any = reason_of(("event_id", "event_timestamp"), "good")
    assert [plain_columns.or_null(reason.of(row)) for row in batch().rows] == [
        None,
        "Missing required fields: event_id",
        "Missing required fields: event_timestamp",
        "Missing required fields: event_id, event_timestamp",
        "Not met: good",
        "Not met: good",
    ]
    without: Any = reason_of(("event_id",), None)
    assert [plain_columns.or_null(without.of(row)) is None for row in batch().rows] == [
        True,
        False,
        True,
        False,
        True,
        True,
    ]


def test_each_row_is_in_one_table(log):
    """Under the stream's own id and the table's name: two tables take the same batch, and none of them takes it twice."""
    rows = batch()
    SplitBatch("good", "bad", reason_of(("event_id",), None), ("day",))(rows, 7)  # type: ignore[arg-type]
    good, bad = log
    assert [row["event_timestamp"] for row in good.rows.rows] == [1, None, 1, 1]
    assert good.rows.columns == NAMES
    assert [row["error_reason"] for row in bad.rows.rows] == ["Missing required fields: event_id"] * 2
    assert (good.path, good.partitions, bad.path, bad.partitions) == ("good", ("day",), "bad", ())
    assert [
        (one.words["mode"], one.options_given["txnAppId"], one.options_given["txnVersion"]) for one in log
    ] == [
        ("append", "q/good", 7),
        ("append", "q/bad", 7),
    ]


def test_columns_of_only_one_table(log):
    """The target goes without some; the other table has those that are named, with the reason."""
    reason = reason_of(("event_id",), None)
    SplitBatch("good", "bad", reason, (), ("good",), ("good", "event_timestamp"))(batch(), 7)  # type: ignore[arg-type]
    assert log[0].rows.columns == NAMES[:2]
    assert log[1].rows.columns == ["good", "event_timestamp", "error_reason"]


def test_rows_are_kept_only_for_the_batch(log, monkeypatch):
    """They are released, also where a write fails."""
    kept: list[int] = []
    monkeypatch.setattr(Frame, "persist", lambda one, *_: kept.append(1) or one)
    monkeypatch.setattr(Frame, "unpersist", lambda _: kept.append(-1))

    def fail(*_: object) -> None:
        raise OSError("full")

    monkeypatch.setattr(RecordedWrite, "save", fail)
    monkeypatch.setattr(RecordedWrite, "saveAsTable", fail)
    with pytest.raises(OSError, match="full"):
        SplitBatch("good", "bad", reason_of(("event_id",), None))(batch(), 7)  # type: ignore[arg-type]
    assert kept == [1, -1]


@pytest.mark.parametrize(
    ("table", "by_path"), [("delta.`/a b`", "/a b"), ("DELTA.`/x`", "/x"), ("s.t", None), ("delta.t", None)]
)
def test_a_table_by_name_or_path(log, monkeypatch, table: str, by_path: str | None):
    """A path is written to as such, whatever the spelling of the format."""
    named: list[str] = []
    monkeypatch.setattr(RecordedWrite, "saveAsTable", lambda _, name: named.append(name))
    append_once(batch(), 1, table)  # type: ignore[arg-type]
    assert ([one.path for one in log], named) == (([by_path], []) if by_path else ([], [table]))


def test_what_is_no_batch_of_a_stream(log):
    """Without the stream's id nothing would tell a batch that comes again."""
    with pytest.raises(UsageError, match="not that of a stream"):
        append_once(batch(None), 1, "t")  # type: ignore[arg-type]
    assert log == []


def test_positions_of_two_queries(tmp_path: Path):
    """One query can't go on from them; a checkpoint of one query, or none, is taken."""
    for name in ("valid", "dlq", "other"):
        (tmp_path / name).mkdir()
    refuse_two_checkpoints(str(tmp_path), ("valid", "dlq"))
    (tmp_path / "other" / "offsets").mkdir()
    refuse_two_checkpoints(str(tmp_path), ("valid", "dlq"))
    (tmp_path / "dlq" / "offsets").mkdir()
    with pytest.raises(UsageError, match="those of other queries: dlq"):
        refuse_two_checkpoints(str(tmp_path), ("valid", "dlq"))
    assert batch_table._PATH.fullmatch("delta.`a`.b") is None
