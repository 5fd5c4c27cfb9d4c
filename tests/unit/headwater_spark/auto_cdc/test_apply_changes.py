"""What a flow must keep for as long as its table lives: compared without Spark with what the table's rows were made with."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import utils
from pyspark.sql import types as T
from tests.unit.headwater_spark.recorded_writes import Conf
from tests.unit.headwater_spark.written_table import commit

from headwater.checkpoints.conditions import FlowStateDamaged
from headwater.definitions.change_conditions import ChangeFlowChanged
from headwater_spark.auto_cdc import apply_changes as module
from headwater_spark.auto_cdc.apply_changes import ChangeTarget, apply_changes, check_unchanged
from headwater_spark.auto_cdc.change_columns import ChangeColumns
from headwater_spark.auto_cdc.side_table import RETENTION
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.plans import call_sites

NOTHING: Any = None
CONSTRAINTS = "spark.sql.constraintPropagation.enabled"
FIELDS = tuple(T.StructField(name, T.IntegerType()) for name in ("key", "part", "at", "name", "city"))
LATEST = ChangeColumns(("key", "part"), FIELDS, NOTHING, T.IntegerType(), "at", NOTHING, None, False, (), ())
HISTORY = replace(LATEST, history=True, tracked=("name", "city"))
NEW = (*FIELDS, T.StructField("age", T.IntegerType()))


def checked(tmp_path: Path, *flows: ChangeColumns, events: tuple[bool, ...] = ()) -> str:
    """What each flow in turn finds: the texts of the parts that changed, by a letter each; a dot where nothing did."""
    target, results = ChangeTarget(tmp_path / "table", tmp_path / "memory"), []
    for number, columns in enumerate(flows):
        try:
            check_unchanged(columns, target, "main.py:1", events=events[number] if events else True)
            results.append(".")
        except ChangeFlowChanged as error:
            advised = "--full-refresh" in error.remedy and error.where == "main.py:1"
            results.append(
                error.what.removeprefix("AUTO CDC: ").partition(" changed from ")[0]
                if advised
                else str(error)
            )
    return " | ".join(results)


def test_what_is_no_change(tmp_path: Path):
    """Another order or case of the keys, a new column (tracked or not, ignored or not), and a sequence that is kept from now on."""
    spelled = replace(LATEST, keys=("PART", "key"), fields=(replace_name(FIELDS[0], "key"), replace_name(FIELDS[1], "PART"), *FIELDS[2:]))  # fmt: skip
    assert checked(tmp_path / "a", LATEST, spelled, LATEST) == ". | . | ."
    assert (
        checked(tmp_path / "b", HISTORY, replace(HISTORY, fields=NEW, tracked=("name", "city", "age")))
        == ". | ."
    )
    assert checked(tmp_path / "c", HISTORY, replace(HISTORY, fields=NEW)) == ". | ."
    ignoring = replace(HISTORY, ignored=("name",))
    assert (
        checked(tmp_path / "d", ignoring, replace(ignoring, fields=NEW, ignored=("name", "age"))) == ". | ."
    )
    assert checked(tmp_path / "e", replace(LATEST, sequence_column=None), LATEST, LATEST) == ". | . | ."
    patches = replace(LATEST, ignored=("name",))
    assert checked(tmp_path / "f", patches, replace(patches, ignored=("city",))) == ". | ."


def replace_name(field: T.StructField, name: str) -> T.StructField:
    return T.StructField(name, field.dataType)


@pytest.mark.parametrize(
    ("first", "then", "what"),
    [
        (LATEST, replace(LATEST, keys=("key",)), "keys"),
        (LATEST, replace(LATEST, fields=(T.StructField("key", T.LongType()), *FIELDS[1:])), "keys"),
        (LATEST, replace(LATEST, sequence_type=T.LongType()), "the type of sequence_by"),
        (LATEST, HISTORY, "stored_as_scd_type"),
        (HISTORY, LATEST, "stored_as_scd_type"),
        (HISTORY, replace(HISTORY, tracked=("name",)), "the tracked columns"),
        (LATEST, replace(LATEST, sequence_column=None), "whether the table keeps the column of sequence_by"),
        (LATEST, replace(LATEST, ignored=("name",)), "whether a NULL leaves a value as it was"),
        (HISTORY, replace(HISTORY, ignored=("name",)), "whether a NULL leaves a value as it was"),
        (replace(HISTORY, ignored=("name",)), replace(HISTORY, ignored=("city",)), "whether a NULL leaves a value as it was"),
        (HISTORY, replace(HISTORY, selected="an expression"), "whether events name the columns that they set (columns_to_update)"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_what_makes_another_table(tmp_path: Path, first: ChangeColumns, then: ChangeColumns, what: str):
    """Refused with what changed; what the table was made with stays recorded, so that going back is accepted."""
    assert checked(tmp_path, first, then, first) == f". | {what} | ."


def test_events_and_snapshots(tmp_path: Path):
    """A table that follows snapshots is not filled by events; one from before that was recorded had events."""
    assert checked(tmp_path / "a", LATEST, LATEST, events=(False, True)) == ". | what it is filled from"
    assert checked(tmp_path / "b", LATEST, events=(True,)) == "."
    file = tmp_path / "b" / "memory" / "made_with.json"
    before = {
        name: value for name, value in json.loads(file.read_text()).items() if name not in ("from", "kept")
    }
    file.write_text(json.dumps(before))
    assert checked(tmp_path / "b", LATEST, LATEST, events=(True, False)) == ". | what it is filled from"


def test_a_damaged_record_is_refused_by_name(tmp_path: Path):
    """Which keys a table was made by is not guessed: the file is named, and the table."""
    assert checked(tmp_path, LATEST) == "."
    file = tmp_path / "memory" / "made_with.json"
    file.write_text(file.read_text()[:30])
    with pytest.raises(FlowStateDamaged, match="memory") as caught:
        checked(tmp_path, LATEST)
    assert caught.value.where == str(file)


def test_a_removed_column_comes_back(tmp_path: Path):
    """The recorded columns follow the flow: a column that comes back is a new one."""
    fewer = replace(HISTORY, fields=FIELDS[:4], tracked=("name",))
    assert checked(tmp_path, HISTORY, fewer) == ". | the tracked columns"
    untracked = replace(HISTORY, tracked=("name",))
    gone = replace(untracked, fields=FIELDS[:4])
    assert checked(tmp_path / "b", untracked, gone, HISTORY) == ". | . | ."


@given(seconds=st.one_of(st.none(), st.integers(0, 10**6)), table=st.sampled_from([None, "true", "false"]), pipeline=st.sampled_from([None, "true", "false"]))  # fmt: skip
def test_settings_of_a_target(seconds: int | None, table: str | None, pipeline: str | None):
    """The retention is in seconds, two days if not given; the table's word on the fast path goes before the pipeline's."""
    properties = {} if seconds is None else {"pipelines.cdc.tombstoneGCThresholdInSeconds": str(seconds)}
    properties |= {} if table is None else {"pipelines.cdc.fastPath": table}
    configuration = {} if pipeline is None else {"pipelines.cdc.fastPath": pipeline}
    target = ChangeTarget.of(Path("t"), Path("m"), properties, configuration)
    assert target.retention == (RETENTION if seconds is None else timedelta(seconds=seconds))
    assert target.fast_path == ((table or pipeline) != "false")


@pytest.mark.parametrize(
    ("last", "events", "done"),
    [
        (6, SimpleNamespace(remaining=1, cleared_at=None), ["revert", "open", "merge"]),
        (6, SimpleNamespace(remaining=0, cleared_at="a truncate"), ["revert", "open", "merge"]),
        (6, SimpleNamespace(remaining=0, cleared_at=None), ["revert", "open"]),
        (7, SimpleNamespace(remaining=1, cleared_at=None), []),
    ],
)
def test_a_batch_is_decided_over_the_state_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int, events: Any, done: list[str]
):
    """What a killed driver left beside the table goes first; a batch that the table has is not looked at; one of a truncate alone counts.
    Spark infers no conditions meanwhile, and PySpark notes no line of ours for any column.
    """
    monkeypatch.setattr(call_sites, "_notes_call_sites", lambda: True)
    conf = Conf()
    conf.set(CONSTRAINTS, "as it was")
    commit(tmp_path / "table", transactions={"p.f@3": last})
    steps: list[str] = []
    side = SimpleNamespace(recover=lambda _: steps.append("revert"))
    monkeypatch.setattr(module, "SideTable", lambda *_: side)
    opened = SimpleNamespace(rows=SimpleNamespace(schema=None), read_ahead=lambda: None)
    monkeypatch.setattr(module, "OpenTarget", SimpleNamespace(at=lambda *_: steps.append("open") or opened))
    monkeypatch.setattr(module, "widen_target", lambda *_: None)
    monkeypatch.setattr(module, "change_batch", lambda *_, **__: nullcontext(events))
    monkeypatch.setattr(
        module,
        "_merge",
        lambda _: lambda *_: steps.append(
            "slowly" if conf.now[CONSTRAINTS] != "false" or utils.is_debugging_enabled() else "merge"
        ),
    )
    batch: Any = SimpleNamespace(sparkSession=SimpleNamespace(conf=conf))
    target = ChangeTarget(tmp_path / "table", tmp_path / "memory")
    apply_changes(batch, LATEST, target, BatchTransaction("p.f@3", 7, "{}"))
    assert steps == done
    assert conf.now == {CONSTRAINTS: "as it was"}
    assert utils.is_debugging_enabled()


def test_a_sequence_that_the_table_no_longer_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The sequences of its rows are remembered beside it first, once; without Spark to do that, the change is refused."""
    remembered: list[str] = []
    monkeypatch.setattr(module, "_remember_sequences", lambda *given: remembered.append(given[3]))
    target, without = ChangeTarget(tmp_path / "t", tmp_path / "m"), replace(LATEST, sequence_column=None)
    spark: Any = object()
    check_unchanged(LATEST, target, None)
    with pytest.raises(ChangeFlowChanged):
        check_unchanged(without, target, None)
    check_unchanged(without, target, None, spark=spark)
    check_unchanged(without, target, None, spark=spark)
    assert remembered == ["at"]


@pytest.mark.parametrize(("columns", "kept"), [(["key", "at"], 1), (["key"], 0)])
def test_sequences_are_taken_from_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: list[str], kept: int
):
    """After what a killed driver had left beside it is taken back; a table that has them no longer has given them before."""
    steps: list[str] = []
    side = SimpleNamespace(
        recover=lambda _: steps.append("revert"), remember=lambda _: steps.append("remember")
    )
    monkeypatch.setattr(module, "SideTable", lambda *_: side)
    rows = SimpleNamespace(columns=columns)
    monkeypatch.setattr(module, "OpenTarget", SimpleNamespace(at=lambda *_: SimpleNamespace(rows=rows)))
    monkeypatch.setattr(module.merge_latest, "sequences_of", lambda *_: "sequences")
    module._remember_sequences(NOTHING, LATEST, ChangeTarget(tmp_path / "t", tmp_path / "m"), "at")
    assert steps == ["revert", *["remember"] * kept]


@pytest.mark.parametrize(
    ("columns", "merge", "steps"),
    [
        (LATEST, "merge_latest", ["revert", "expire __hw_deleted", "compact one"]),
        (HISTORY, "merge_history", ["revert", "expire true"]),
        (replace(HISTORY, ignored=("name",)), "merge_history", ["revert", "expire true"]),
        (replace(LATEST, ignored=("name",)), "merge_by_column", ["revert", f"expire {module.merge_by_column.EXPIRES}"]),
        (replace(HISTORY, system="an expression"), "merge_bitemporal", ["revert", "compact all"]),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_what_is_remembered_for_how_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: ChangeColumns, merge: str, steps: list[str]
):
    """By the way in which a flow is merged; of a bitemporal target nothing expires. What a killed driver left goes first."""
    done: list[str] = []
    side = SimpleNamespace(
        recover=lambda _: done.append("revert"), compact_all=lambda: done.append("compact all"),
        expire=lambda retention, condition: done.append(f"expire {condition}") if retention == RETENTION else None,
    )  # fmt: skip
    monkeypatch.setattr(module, "SideTable", lambda *_: side)
    monkeypatch.setattr(module.merge_latest, "compact", lambda *_: done.append("compact one"))
    module.expire(NOTHING, columns, ChangeTarget(tmp_path / "t", tmp_path / "m"))
    assert done == steps
    assert module._merge(columns).__name__ == merge


@pytest.mark.parametrize(
    ("then", "remembered"), [(LATEST, []), (replace(LATEST, sequence_column=None), ["at"])]
)
def test_sequences_are_remembered_when_they_go(
    tmp_path: Path, monkeypatch, then: ChangeColumns, remembered: list[str]
):
    """Once, when the table's column of them is left out from now on; a flow that stays as it is has nothing to remember."""
    moved: list[str] = []
    monkeypatch.setattr(module, "_remember_sequences", lambda *given: moved.append(given[3]))
    target = ChangeTarget(tmp_path / "table", tmp_path / "memory")
    spark: Any = object()
    check_unchanged(LATEST, target, "main.py:1", spark=spark)
    for _ in range(2):
        check_unchanged(then, target, "main.py:1", spark=spark)
    assert moved == remembered
