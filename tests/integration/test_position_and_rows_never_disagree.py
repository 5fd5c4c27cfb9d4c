"""A lost checkpoint, and a table that is gone or another one, are refused before a row is lost or doubled."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

TABLE = """
@dp.table(comment="made before its first row")
def bronze():
    return spark.readStream.schema("id INT").json(LANDING)
"""
VIEW = """
@dp.materialized_view
def total():
    return dp.read("bronze").select(F.count("*").alias("n"))
"""


def lose_checkpoint(case: Any, table: str) -> None:
    """Only Spark's files go."""
    shutil.rmtree(case.checkpoint(table).epoch_folder(0))


def lose_flow(case: Any, table: str) -> None:
    """All that is known of the flow's position goes."""
    shutil.rmtree(case.checkpoint(table).folder)


def lose_newest_epoch(case: Any, table: str) -> None:
    """The state and the live epoch go, an older epoch stays."""
    case.update(full_refresh=(table,))
    case.checkpoint(table).state_file.unlink()
    shutil.rmtree(case.checkpoint(table).epoch_folder(1))


def drop_table(case: Any, table: str) -> None:
    """The table goes."""
    shutil.rmtree(case.table(table))


def drop_table_after_a_killed_first_update(case: Any, table: str) -> None:
    """The driver had committed a batch and was killed before it said to which table."""
    case.checkpoint(table).update_state(sink_id=None, completed=False)
    drop_table(case, table)


def make_table_anew(case: Any, table: str) -> None:
    """Another table lies in its place."""
    drop_table(case, table)
    write_deltalake(str(case.table(table)), pa.table({"id": pa.array([7], pa.int32())}))


# What happens to a table of the damage's name, and the condition under which its flow is refused.
DAMAGES: list[tuple[Callable[[Any, str], None], str]] = [
    (lose_checkpoint, "CHECKPOINT_LOST"),
    (lose_flow, "CHECKPOINT_LOST"),
    (lose_newest_epoch, "CHECKPOINT_LOST"),
    (drop_table, "TABLE_GONE"),
    (drop_table_after_a_killed_first_update, "TABLE_GONE"),
    (make_table_anew, "TABLE_REPLACED"),
]
NAMES = [damage.__name__ for damage, _ in DAMAGES]
# A view reads one table of each condition.
READ = ("lose_checkpoint", "drop_table", "make_table_anew")


def lose_state(case: Any, table: str) -> None:
    """The checkpoint itself is there."""
    case.checkpoint(table).state_file.unlink()


def lose_all(case: Any, table: str) -> None:
    """Table and checkpoint are gone: whoever removed both wants to begin anew."""
    lose_flow(case, table)
    drop_table(case, table)


# What stops no flow: it goes on, or begins anew.
HARMLESS = ("lose_state", "lose_all")


def rows_of(case: Any) -> dict[str, list[tuple[Any, ...]] | None]:
    """The rows of each table, None where there is no table."""
    return {name: case.rows(name) if case.table(name).exists() else None for name in NAMES}


def each(rows: list[tuple[Any, ...]]) -> dict[str, list[tuple[Any, ...]]]:
    """The same rows in every table."""
    return dict.fromkeys(NAMES, rows)


def epochs_of(case: Any) -> dict[str, list[int]]:
    """The epochs of each table's flow."""
    return {name: case.checkpoint(name).epochs() for name in NAMES}


def test_refused_and_left_alone(pipeline):
    """Exit code 3, the flow's table and position as they were, other branches done; the remedy that is told works."""
    tables = [TABLE.replace("bronze", name) for name in (*NAMES, *HARMLESS)]
    views = [VIEW.replace("bronze", name).replace("total", f"of_{name}") for name in READ]
    case = pipeline("".join([*tables, *views]))
    case.land([{"id": 1}])
    assert case.update().state == "COMPLETED"
    check_that_tables_are_known(case)
    for damage, _ in DAMAGES:
        damage(case, damage.__name__)
    lose_state(case, "lose_state")
    lose_all(case, "lose_all")
    case.land([{"id": 2}])
    rows, epochs = rows_of(case), epochs_of(case)
    ends = {
        **dict.fromkeys(NAMES, "FAILED"),
        **{f"of_{name}": "SKIPPED" for name in READ},
        **dict.fromkeys(HARMLESS, "COMPLETED"),
    }
    for _ in range(2):
        code, answer = case.run()
        flows = {flow["flow"]: flow for flow in answer["flows"]}
        assert (code, answer["state"]) == (3, "FAILED")
        assert [(name, flows[name]["error"]["condition"]) for name in NAMES] == [
            (damage.__name__, condition) for damage, condition in DAMAGES
        ]
        assert {name: flow["state"] for name, flow in flows.items()} == ends
        assert rows_of(case) == rows
        assert epochs_of(case) == epochs
    check_what_is_not_refused(case)
    assert [name for name in NAMES if f"--full-refresh {name}" not in flows[name]["error"]["remedy"]] == []
    assert case.update(full_refresh=tuple(NAMES)).state == "COMPLETED"
    assert rows_of(case) == each([(1,), (2,)])
    case.land([{"id": 3}])
    views = tuple(f"of_{name}" for name in READ)
    assert case.update(tables=(*NAMES, *views)).state == "COMPLETED"
    assert rows_of(case) == each([(1,), (2,), (3,)])
    assert [case.rows(view) for view in views] == 3 * [[(3,)]]


def check_that_tables_are_known(case: Any) -> None:
    """After the first batch a table's id in the flow's state is that of the table."""
    for name in NAMES:
        state = case.checkpoint(name).read_state()
        assert state is not None
        assert state.sink_id == DeltaTable(str(case.table(name))).metadata().id


def check_what_is_not_refused(case: Any) -> None:
    """Where the checkpoint itself is there, the flow goes on from it; where it and its table are gone, it begins anew, in an epoch
    that was never used.
    """
    assert case.rows("lose_state") == case.rows("lose_all") == [(1,), (2,)]
    assert case.checkpoint("lose_all").epochs() == [1]
    batches = case.events(flow="lose_all", level="METRICS")
    assert [(r["origin"]["epoch"], r["origin"]["batch_id"]) for r in batches] == [(0, 0), (1, 0)]


def test_storage_is_lost(pipeline):
    """With all of storage gone no row comes twice: each flow is refused by what its table's log tells."""
    case = pipeline(TABLE + VIEW + TABLE.replace("bronze", "beside"))
    case.land([{"id": 1}])
    case.update()
    shutil.rmtree(case.storage)
    code, answer = case.run()
    assert (code, {flow["flow"]: flow["state"] for flow in answer["flows"]}) == (
        3,
        {"bronze": "FAILED", "total": "SKIPPED", "beside": "FAILED"},
    )
    assert (case.rows("bronze"), case.rows("beside")) == ([(1,)], [(1,)])
    assert case.update(full_refresh_all=True).state == "COMPLETED"
    assert (case.rows("bronze"), case.rows("beside")) == ([(1,)], [(1,)])
