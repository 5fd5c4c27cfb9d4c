"""A table's rows and its flows stay of one kind: what would lose or double rows is refused, and a full refresh ends all that was."""

from __future__ import annotations

from typing import Any

# Each table's first definition, and the one that it is changed to without another name.
STREAMS = """
def rows():
    return spark.readStream.schema("id INT, seq INT").json(LANDING)

@dp.table
def turned():
    return rows()

dp.create_streaming_table("swapped")
dp.create_streaming_table("loaded")
dp.create_streaming_table("many")

@dp.append_flow(target="swapped", name="swap_in")
def swap_in():
    return rows()

@dp.append_flow(target="loaded")
def load():
    return rows()

@dp.append_flow(target="many")
def one():
    return rows()

@dp.append_flow(target="many")
def two():
    return rows().withColumn("id", F.col("id") + 100)

@dp.table
def merged():
    return rows()

@dp.materialized_view
def viewed():
    return spark.read.schema("id INT, seq INT").json(LANDING)
"""
CHANGED = """
def rows():
    return spark.read.schema("id INT, seq INT").json(LANDING)

@dp.materialized_view
def turned():
    return rows()

@dp.materialized_view
def swapped():
    return rows()

dp.create_streaming_table("loaded")
dp.create_streaming_table("many")
dp.create_streaming_table("merged")

@dp.append_flow(target="loaded", once=True)
def load():
    return rows()

@dp.append_flow(target="many")
def one():
    return spark.readStream.schema("id INT, seq INT").json(LANDING)

@dp.temporary_view
def changes():
    return spark.readStream.schema("id INT, seq INT").json(LANDING)

dp.create_auto_cdc_flow(target="merged", source="changes", keys=["id"], sequence_by="seq")

@dp.table
def viewed():
    return spark.readStream.schema("id INT, seq INT").json(LANDING)
"""
TABLES = ("turned", "swapped", "loaded", "merged", "viewed")
REFUSED = {"turned", "swapped", "load", "merged", "viewed"}


def row(number: int) -> dict[str, int]:
    """A row to land."""
    return {"id": number, "seq": number}


def ids(case: Any, table: str) -> list[int]:
    """The ids in a table."""
    return sorted(row[0] for row in case.rows(table))


def every_table(numbers: list[int]) -> dict[str, list[int]]:
    """The same ids in each table."""
    return {table: list(numbers) for table in TABLES}


def test_a_table_changes_its_kind_by_a_full_refresh_only(pipeline):
    """Each change is refused with nothing written. After a full refresh the tables are those of the new definitions, and flows
    that were not declared then read all again when they come back: their rows went with the refresh.
    """
    case = pipeline(STREAMS)
    case.land([row(1), row(2)])
    assert case.update().state == "COMPLETED"
    case.land([row(3)])
    case.rewrite(CHANGED)
    refused = case.update()
    conditions = {o.flow: o.error.condition for o in refused.result.outcomes if o.error is not None}
    assert conditions == dict.fromkeys(REFUSED, "FLOW_KIND_CHANGED")
    assert {table: ids(case, table) for table in TABLES} == every_table([1, 2])
    assert ids(case, "many") == [1, 2, 3, 101, 102]  # it has lost a flow, and is otherwise what it was

    assert case.update(full_refresh_all=True).state == "COMPLETED"
    assert {table: ids(case, table) for table in TABLES} == every_table([1, 2, 3])
    assert ids(case, "many") == [1, 2, 3]
    case.land([row(4)])
    assert case.update(tables=("turned", "viewed", "merged")).state == "COMPLETED"
    assert ids(case, "turned") == ids(case, "viewed") == ids(case, "merged") == [1, 2, 3, 4]

    case.rewrite(STREAMS)
    assert case.update(full_refresh=TABLES, tables=("many",)).state == "COMPLETED"
    assert {table: ids(case, table) for table in TABLES} == every_table([1, 2, 3, 4])
    assert ids(case, "many") == [1, 2, 3, 4, 101, 102, 103, 104]
    case.land([row(5)])
    assert case.update(tables=("turned", "swapped")).state == "COMPLETED"
    assert ids(case, "turned") == [1, 2, 3, 4, 5]
    assert ids(case, "swapped") == [1, 2, 3, 4, 5]
