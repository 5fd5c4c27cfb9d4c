"""What a quarantine keeps of a row, and how a replay knows its own rows again."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, LongType, StructType
from tests.unit.headwater_spark import plain_rows
from tests.unit.headwater_spark.plain_rows import Column, Frame, plain_functions
from tests.unit.headwater_spark.written_table import commit

from headwater.checkpoints.flow_identity import FlowIdentity
from headwater.definitions.expectation import Expectation, UniqueKey, ViolationAction
from headwater.delta_log.table_history import has_transaction
from headwater.errors import LeaseLost
from headwater.quarantine import columns as c
from headwater.quarantine.columns import UNREADABLE_FILE, RowStatus
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.quarantine import quarantine_table
from headwater_spark.quarantine.quarantine_table import QuarantineTable
from headwater_spark.replays import replay_marks
from headwater_spark.replays.replay_marks import ReplayMarks, settle
from headwater_spark.rules import expectations, judgement, one_pass
from headwater_spark.rules.quarantine_schema import own_fields

RULES = [
    Expectation("bad", "bad", ViolationAction.QUARANTINE),
    Expectation("odd", "odd", ViolationAction.DROP),
    Expectation("old", "old", ViolationAction.WARN),
]
BATCH = BatchTransaction("p.f@3", 7, '{"end_offsets": [{"t": 1}]}')


def three_rules_broken(monkeypatch: pytest.MonkeyPatch) -> Frame:
    """A batch, judged, in which each rule is broken, and both, and all."""
    plain_functions(monkeypatch, expectations, judgement, quarantine_table)
    outcomes = [
        (True, True, True),
        (False, True, True),
        (True, False, True),
        (False, False, False),
        (None, None, None),
    ]
    rows = [
        {"id": number, "_flow": "mine", **dict(zip(("bad", "odd", "old"), outcome, strict=True))}
        for number, outcome in enumerate(outcomes)
    ]
    return judgement.mark_rows(Frame(rows, ["id", "_flow", "bad", "odd", "old"]), RULES)  # type: ignore[arg-type, return-value]


@pytest.fixture
def quarantined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """The rows that a quarantine takes of such a batch."""
    marked: Any = three_rules_broken(monkeypatch)
    table = QuarantineTable(tmp_path, "f", 3, "u1", RULES)
    return table._rows(marked, BATCH).rows  # type: ignore[attr-defined, no-any-return]


def test_what_a_quarantine_takes(quarantined):
    """Rows that break a rule of kind quarantine, with all rules that they break; no row that is only dropped or warned of."""
    assert [(row["id"], row[c.REASON], row[c.RULES]) for row in quarantined] == [
        (1, "bad", ["bad"]),
        (3, "bad, odd, old", ["bad", "odd", "old"]),
    ]


def test_what_is_kept_of_a_row(quarantined):
    """Who wrote it, in which batch, up to where; the row whole as JSON; its own columns where their names are free."""
    row = quarantined[0]
    assert (row[c.FLOW], row[c.EPOCH], row[c.BATCH], row[c.UPDATE_ID]) == ("f", 3, 7, "u1")
    assert row[c.SOURCE_OFFSETS] == '[{"t": 1}]'
    assert row[c.ROW] == '{"id": 1, "_flow": "mine", "bad": false, "odd": true, "old": true}'
    assert row[c.STATUS] == str(RowStatus.HELD)
    assert (row[c.STATUS_AT], row[c.STATUS_REASON], row[c.REPLAY_ID], row[c.SOURCE_RECORD]) == (None,) * 4
    assert set(row) == {"id", "bad", "odd", "old", *c.MANAGED}


@pytest.mark.parametrize("name", ["id", "ID"])
def test_a_column_of_another_type_than_before(monkeypatch, tmp_path: Path, name: str):
    """The quarantine keeps its columns' types, however they are spelled: what does not fit is in the JSON alone."""
    commit(tmp_path)
    plain_functions(monkeypatch, expectations, judgement, quarantine_table)
    types = {name: IntegerType(), "n": LongType()}
    frame = Frame([{name: 1, "n": 2, "bad": False}], [name, "n", "bad"], types=types)
    marked = judgement.mark_rows(frame, RULES[:1])
    table = QuarantineTable(tmp_path, "f", 3, "u1", RULES[:1])
    (row,) = table._rows(marked, BatchTransaction("a", 0, "{}")).rows  # type: ignore[arg-type, attr-defined]
    assert name not in row
    assert (row["n"], row[c.SOURCE_OFFSETS]) == (2, None)


@pytest.mark.parametrize(
    ("columns", "own"),
    [
        ("id INT, _Flow STRING, s STRUCT<a: INT>", ["id", "s"]),
        ("`a b` INT, `e``f` INT, m MAP<STRING, DATE>", ["m"]),
        ("v VARIANT, t TIMESTAMP_NTZ, i INTERVAL DAY, n VOID, d TIMESTAMP", ["d"]),
        (
            "a ARRAY<TIMESTAMP_NTZ>, m MAP<STRING, VARIANT>, s STRUCT<x: ARRAY<VOID>>, k MAP<TIMESTAMP_NTZ, INT>",
            [],
        ),
        ("a ARRAY<INT>, s STRUCT<`a b`: INT>", ["a"]),
    ],
)
def test_columns_that_stand_beside_the_managed_ones(columns: str, own: list[str]):
    """Those whose name is free and plain, and whose type, inside too, every reader of Delta has."""
    assert [field.name for field in own_fields(ddl(columns))] == own


def ddl(columns: str) -> StructType:
    """A schema, parsed without Spark."""
    fields = []
    for text in _split(columns):
        name, _, kind = (
            text.strip().rpartition("` ") if text.strip().startswith("`") else text.strip().partition(" ")
        )
        plain = name.strip("`").replace("``", "`") if text.strip().startswith("`") else name
        fields.append({"name": plain, "type": _type(kind), "nullable": True, "metadata": {}})
    return StructType.fromJson({"type": "struct", "fields": fields})


_NAMES = {"INT": "integer", "VOID": "void", "INTERVAL DAY": "interval day"}


def _type(text: str) -> Any:
    head, _, inner = text.partition("<")
    parts = _split(inner.removesuffix(">"))
    if head == "ARRAY":
        return {"type": "array", "elementType": _type(parts[0]), "containsNull": True}
    if head == "MAP":
        key, value = map(_type, parts)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if head == "STRUCT":
        pairs = [part.partition(": ") for part in parts]
        fields = [
            {"name": n.strip("`"), "type": _type(k), "nullable": True, "metadata": {}} for n, _, k in pairs
        ]
        return {"type": "struct", "fields": fields}
    return _NAMES.get(text, text.lower())


def _split(text: str) -> list[str]:
    """The parts between commas that are in no brackets."""
    parts, depth = [""], 0
    for sign in text:
        depth += {"<": 1, ">": -1}.get(sign, 0)
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


@pytest.mark.parametrize(
    ("columns", "comes"),
    [
        ("id INT, s STRING, b BINARY, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, st STRUCT<a: DATE>", True),
        ("a ARRAY<INT>, m MAP<STRING, ARRAY<STRING>>, s ARRAY<STRUCT<x: INT>>", True),
        ("a ARRAY<DATE>", False),
        ("m MAP<STRING, TIMESTAMP>", False),
        ("m MAP<DATE, INT>", False),
        ("s STRUCT<a: ARRAY<STRUCT<d: DATE>>>", False),
        ("v VARIANT", False),
        ("i INTERVAL DAY", False),
    ],
)
def test_rows_that_come_back_as_they_were(columns: str, comes: bool):
    """Only such are judged while they are written; times inside of arrays and maps are not looked at, so they are not."""
    assert one_pass.can_collect(ddl(columns), RULES) is comes
    unique = Expectation("u", "", ViolationAction.WARN, unique=UniqueKey(("id",)))
    assert one_pass.can_collect(ddl(columns), [*RULES, unique]) is False


@pytest.mark.parametrize(
    ("memory", "tasks", "room"),
    [
        (8 * 1024**3, 4, [(1_000, 100_000), (8_000, 16_777), (64_000, 2_097)]),
        (64_000_000, 1, [(1_000, 8_000), (8_000, 500), (64_000, 62)]),
        (1_000, 8, [(1_000, 1), (8_000, 1), (64_000, 1)]),
        (64_000_000, 0, [(1_000, 8_000), (8_000, 500), (64_000, 62)]),
    ],
)
def test_how_many_rows_are_collected(memory: int, tasks: int, room: list[tuple[int, int]]):
    """A part of the driver's memory, shared by its tasks; fewer of the larger rows, at least one, and no more than Spark takes."""
    runtime = SimpleNamespace(getRuntime=lambda: SimpleNamespace(maxMemory=lambda: memory))
    jvm = SimpleNamespace(**{"java.lang.Runtime": runtime})
    session: Any = SimpleNamespace(_jvm=jvm, sparkContext=SimpleNamespace(defaultParallelism=tasks))
    assert one_pass._room(session) == room


ROWS = [
    # id, status, replay, flow, rules
    ("mine", "replaying", "r", "f", "[bad]"),
    ("mine, as text", "replaying", "r", "f", f"[x{UNREADABLE_FILE}]"),
    ("a file", "replaying", "r", "f", f"[{UNREADABLE_FILE}]"),
    ("of a file", "pending", "r", "f", "[bad]"),
    ("done", "replayed", "r", "f", "[bad]"),
    ("free", "held", "r", "f", "[bad]"),
    ("another's", "replaying", "other", "f", "[bad]"),
    ("another flow's", "replaying", "r", "g", "[bad]"),
]


def selected(condition: str) -> list[str]:
    """The rows that a condition of ours takes, as any SQL engine reads it."""
    base = sqlite3.connect(":memory:")
    base.create_function("array_contains", 2, lambda rules, name: name in rules.strip("[]").split(","))
    base.execute(f"CREATE TABLE q (name, {c.STATUS}, {c.REPLAY_ID}, {c.FLOW}, {c.RULES})")
    base.executemany("INSERT INTO q VALUES (?, ?, ?, ?, ?)", ROWS)
    return [name for (name,) in base.execute(f"SELECT name FROM q WHERE {condition}")]


def marks(files: bool = False, replay: str = "r", flow: str = "f", **more: Any) -> ReplayMarks:
    """One flow's part of a replay."""
    return ReplayMarks(more.get("spark"), more.get("path", Path()), "p", flow, replay, files)  # type: ignore[arg-type]


def test_which_rows_are_a_replays_own():
    """Those that are marked under its id, of its flow; files and what came of them are a part by themselves."""
    assert selected(marks()._mine) == ["mine", "mine, as text"]
    assert selected(marks(files=True)._mine) == ["a file", "of a file"]
    assert selected(marks(flow="g")._mine) == ["another flow's"]
    assert selected(marks(replay="other")._mine) == ["another's"]


def test_the_identity_of_a_replay():
    """Each replay, each flow of it and each of its two parts commits under an id of its own."""
    ids = [
        marks(files, replay, flow).application for files in (False, True) for replay in "rs" for flow in "fg"
    ]
    assert ids[0] == "p.replay.r.f@0"
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("application", "there"),
    [
        ("p.replay.r.f@0", True),
        ("p.replay.r@0", True),
        ("p.replay.r.f.files@0", False),
        ("p.replay.s.f@0", False),
        ("p.f@0", False),
    ],
)
def test_whether_a_replay_is_in_the_table(monkeypatch, tmp_path: Path, application: str, there: bool):
    """The table knows by the commit's id, also by the one that replays had formerly; an id that it has not is used up."""
    commit(tmp_path, transactions={application: 0})
    retired = ids_used_up(monkeypatch)
    assert marks().ended_in(tmp_path) is there
    assert retired == ([] if there else ["p.replay.r.f@0"])


def test_a_replay_into_a_table_that_is_gone(monkeypatch, tmp_path: Path):
    """It did not end there, and there is nothing to use its id up in."""
    retired = ids_used_up(monkeypatch)
    assert not marks().ended_in(tmp_path)
    assert not retired


def ids_used_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids that are used up from now on, as Delta would do it: only where the table has no commit of them."""
    retired: list[str] = []

    def retire_unwritten(_spark: object, table: Path, application: str) -> bool:
        if has_transaction(table, application, 0):
            return False
        retired.append(application)
        return True

    monkeypatch.setattr(replay_marks, "retire_unwritten", retire_unwritten)
    return retired


class Quarantine:
    """A quarantine table that records the changes made to it."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str, Any]] = []

    def update(self, condition: str, values: dict[str, Any]) -> None:
        self.changes.append(("update", condition, values[c.STATUS]))

    def delete(self, condition: str) -> None:
        self.changes.append(("delete", condition, None))


def lit_in(monkeypatch: pytest.MonkeyPatch) -> Quarantine:
    """The quarantine that marks are written to."""
    plain_functions(monkeypatch, replay_marks)
    quarantine = Quarantine()
    monkeypatch.setattr(replay_marks, "DeltaTable", SimpleNamespace(forPath=lambda *_: quarantine))
    return quarantine


def value(column: Column, status: RowStatus) -> Any:
    """What a column gives for a row of this status."""
    return column.of({c.STATUS: str(status)})


def test_a_replay_that_is_done(monkeypatch):
    """Its rows are replayed; those of a file that are held from now on are held; nothing else is touched."""
    quarantine = lit_in(monkeypatch)
    marks().finish()
    ((kind, condition, status),) = quarantine.changes
    assert (kind, condition) == ("update", marks()._mine)
    assert value(status, RowStatus.REPLAYING) == str(RowStatus.REPLAYED)
    assert value(status, RowStatus.PENDING) == str(RowStatus.HELD)


@pytest.mark.parametrize("files", [False, True])
def test_a_replay_that_came_to_nothing(monkeypatch, files: bool):
    """Its rows are held as before; rows of a file that were laid down for it go first, since the file is held whole."""
    quarantine = lit_in(monkeypatch)
    marks(files).take_back()
    *gone, (kind, condition, status) = quarantine.changes
    assert (kind, condition) == ("update", marks(files)._mine)
    assert value(status, RowStatus.REPLAYING) == str(RowStatus.HELD)
    assert [kind for kind, _, _ in gone] == (["delete"] if files else [])
    if files:
        assert selected(gone[0][1]) == ["of a file"]


@pytest.mark.parametrize(
    ("rows", "table", "settled"),
    [
        ([], (), []),
        ([("replaying", "r", "f", False)], ("p.replay.r.f@0",), [("r", "f", False, "finish")]),
        ([("replaying", "r", "f", False)], (), [("r", "f", False, "take back")]),
        (
            [("replaying", "r", "f", False), ("replaying", "r", "f", True), ("pending", "r", "f", False), ("held", "s", "f", False)],
            ("p.replay.r.f.files@0",),
            [("r", "f", False, "take back"), ("r", "f", True, "finish")],
        ),
    ],
)  # fmt: skip
def test_what_became_of_a_killed_replay(monkeypatch, tmp_path: Path, rows, table, settled):
    """Each part of each replay is finished where the table has its commit, and taken back where it has not."""
    plain_functions(monkeypatch, replay_marks)
    ids_used_up(monkeypatch)
    commit(tmp_path / "t", transactions=dict.fromkeys(table, 0))
    done: list[Any] = []
    monkeypatch.setattr(
        ReplayMarks, "finish", lambda one: done.append((one.replay_id, one.flow, one.files, "finish"))
    )
    monkeypatch.setattr(
        ReplayMarks, "take_back", lambda one: done.append((one.replay_id, one.flow, one.files, "take back"))
    )
    names = [c.STATUS, c.REPLAY_ID, c.FLOW, replay_marks.IS_FILE]
    frame = Frame([dict(zip(names, row, strict=True)) for row in rows], names)
    spark: Any = Frame([], [], {str(tmp_path / "q"): frame}).sparkSession
    settle(spark, tmp_path / "q", tmp_path / "t", lambda flow: FlowIdentity("p", flow))
    assert sorted(done) == sorted(settled)


def test_names_of_renamed_flows(monkeypatch, tmp_path: Path):
    """A flow that was renamed looks for its replays under the names that it commits with."""
    plain_functions(monkeypatch, replay_marks)
    ids_used_up(monkeypatch)
    commit(tmp_path / "t", transactions={"old.replay.r.before@0": 0})
    done: list[str] = []
    monkeypatch.setattr(ReplayMarks, "finish", lambda one: done.append(one.application))
    names = [c.STATUS, c.REPLAY_ID, c.FLOW, replay_marks.IS_FILE]
    frame = Frame([dict(zip(names, ("replaying", "r", "now", False), strict=True))], names)
    spark: Any = Frame([], [], {str(tmp_path / "q"): frame}).sparkSession
    settle(spark, tmp_path / "q", tmp_path / "t", lambda _: FlowIdentity("old", "before"))
    assert done == ["old.replay.r.before@0"]


def test_marks_are_columns_of_the_quarantine(monkeypatch):
    """A mark has a status, and when it was given."""
    plain_functions(monkeypatch, replay_marks)
    assert set(replay_marks._marks(plain_rows.lit("x"))) == {c.STATUS, c.STATUS_AT}


def test_only_rows_that_are_held_are_marked(monkeypatch):
    """A row that another process has replayed or discarded meanwhile stays as it is, and the count tells."""
    lit_in(monkeypatch)
    conditions: list[str | None] = []

    def update(condition: str | None = None, **_: Any) -> Any:
        conditions.append(condition)
        return SimpleNamespace(execute=lambda: SimpleNamespace(first=lambda: {"num_updated_rows": 1}))

    merge = SimpleNamespace(whenMatchedUpdate=update)
    table = SimpleNamespace(alias=lambda _: SimpleNamespace(merge=lambda *_: merge))
    monkeypatch.setattr(replay_marks, "DeltaTable", SimpleNamespace(forPath=lambda *_: table))
    ids = SimpleNamespace(_jdf=None, alias=lambda _: None)
    monkeypatch.setattr(replay_marks, "DataFrame", lambda *_: ids)
    with pytest.raises(LeaseLost):
        marks().mark_replaying(ids, 2)  # type: ignore[arg-type]
    assert conditions == [f"q.{c.STATUS} = '{RowStatus.HELD}'"]
