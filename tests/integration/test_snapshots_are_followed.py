"""AUTO CDC from snapshots: a table follows whole states of a source, each applied once over crashes, in both types."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.seeds import SEED

from headwater.checkpoints.snapshot_versions import SnapshotVersions
from headwater.definitions.change_conditions import DuplicateKey, NullKey, SnapshotOutOfOrder
from headwater.errors import InvalidPipeline
from headwater.testing.auto_cdc import expected_from_snapshots
from headwater_spark.execution import snapshot_flow

NAMED = """
import os
SCHEMA = "id INT, name STRING, city STRING, tags ARRAY<STRING>"

def following(latest):
    number = 1 if latest is None else VERSIONS.index(latest) + 2
    path = f"{LANDING}/{number:05d}.json"
    if number > len(VERSIONS) or not os.path.exists(path):
        return None
    return spark.read.schema(SCHEMA).json(path), VERSIONS[number - 1]

def followed(target, **options):
    dp.create_streaming_table(target, schema=options.pop("schema", None))
    dp.create_auto_cdc_from_snapshot_flow(target=target, source=following, keys=["id"], **options)
"""
THREE = (
    'VERSIONS = ["2026-01", "2026-02", "2026-03", "2026-04", "2026-05"]\n'
    + NAMED
    + """
followed("latest", schema=SCHEMA)
followed("history", stored_as_scd_type=2, schema=SCHEMA + ", __START_AT STRING, __END_AT STRING")
followed("moves", stored_as_scd_type="2", track_history_except_column_list=["name"],
         schema=SCHEMA + ", __START_AT STRING, __END_AT STRING")
"""
)
OPTIONS: dict[str, dict[str, Any]] = {
    "latest": {},
    "history": {"stored_as_scd_type": 2},
    "moves": {"stored_as_scd_type": 2, "track_history_except_column_list": ("name",)},
}


def crash(*_: object) -> None:
    """What a SIGKILL leaves: nothing after this point happened."""
    message = "killed here"
    raise RuntimeError(message)


def random_state(chance: random.Random) -> list[dict[str, Any]]:
    """A snapshot of some of thirty keys."""
    return [
        {"id": key, "name": chance.choice([None, "a", "b"]), "city": chance.choice(["x", "y"]), "tags": chance.choice([None, [], ["t"]])}
        for key in range(30)
        if chance.random() < 0.7
    ]  # fmt: skip


def check(case: Any, states: list[tuple[Any, list[dict[str, Any]]]]) -> None:
    """Every table is what the oracle makes of the snapshots so far."""
    for table, options in OPTIONS.items():
        wanted = expected_from_snapshots(states, keys=["id"], **options)
        order = "id" if table == "latest" else 'id, "__START_AT"'
        assert case.rows(table, order=order) == [tuple(row.values()) for row in wanted], table


@pytest.mark.timeout(240)
def test_random_snapshots_over_crashes(pipeline, monkeypatch):
    """Random states, some at once, with a crash before and one after a commit: always the oracle's rows, each version once."""
    seed = SEED
    print(f"HEADWATER_SEED={seed}")
    chance = random.Random(seed)
    case = pipeline(THREE)
    versions = ["2026-01", "2026-02", "2026-03", "2026-04", "2026-05"]
    states: list[tuple[Any, list[dict[str, Any]]]] = []

    def land(count: int) -> None:
        for _ in range(count):
            states.append((versions[len(states)], random_state(chance)))
            case.land(states[-1][1])

    assert case.update().state == "COMPLETED"  # no snapshot yet
    assert case.rows("latest") == []
    land(2)
    with monkeypatch.context() as broken:
        broken.setattr(snapshot_flow, "merge_snapshot", crash)
        assert case.update().state == "FAILED"
    assert case.update().state == "COMPLETED"
    check(case, states)
    land(2)
    with monkeypatch.context() as broken:
        broken.setattr(SnapshotVersions, "done", crash)
        assert case.update().state == "FAILED"
    land(1)
    assert case.update().state == "COMPLETED"
    check(case, states)
    records = case.events(flow="history", level="METRICS")
    assert [r["origin"]["batch_id"] for r in records] == [0, 1, 2, 3, 4]
    told = case.events(flow="history", event_type="operation_progress", containing="CDC_SNAPSHOT")
    assert {r["details"]["operation_progress"]["status"] for r in told} == {"COMPLETED"}
    before = case.version("history")
    assert case.update().state == "COMPLETED"
    assert case.version("history") == before
    assert case.update(full_refresh=("history",)).state == "COMPLETED"
    check(case, states)


def commits(case: Any, table: str) -> int:
    """How many merges a table has."""
    return sum(commit["operation"] == "MERGE" for commit in DeltaTable(str(case.table(table))).history())


PERIODIC = """
@dp.materialized_view
def users():
    return spark.read.schema("id INT, name STRING").json(LANDING)

@dp.temporary_view
def named():
    return dp.read("users").where("name is not null")

dp.create_streaming_table("latest")
dp.apply_changes_from_snapshot(target="latest", source="users", keys=["id"])
dp.create_streaming_table("history")
dp.create_auto_cdc_from_snapshot_flow("history", "named", ["id"], stored_as_scd_type=2, name="states")

@dp.table
def feed():
    changes = spark.readStream.option("readChangeFeed", "true").table("latest")
    return changes.select("id", F.col("_change_type").alias("change"))
"""


@pytest.mark.timeout(180)
def test_a_table_is_followed_from_update_to_update(pipeline):
    """Each update compares a table or view with its target; one that did not change writes nothing; readers can follow."""
    case = pipeline(PERIODIC)
    case.land([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 3, "name": None}])
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert case.rows("latest") == [(1, "a"), (2, "b"), (3, None)]
    case.update(full_refresh=("users",))  # the same rows, made anew
    assert commits(case, "latest") == 1
    (case.landing / "00001.json").unlink()
    case.land([{"id": 1, "name": "c"}, {"id": 3, "name": "d"}])
    case.update()
    assert case.rows("latest") == [(1, "c"), (3, "d")]
    rows = case.rows(
        "history", select='id, name, "__START_AT" is null, "__END_AT" is null', order='id, "__START_AT"'
    )
    assert rows == [
        (1, "a", False, False),
        (1, "c", False, True),
        (2, "b", False, False),
        (3, "d", False, True),
    ]
    assert ("2", "delete") in [(str(i), change) for i, change in case.rows("feed")]
    again = case.update()
    assert again["latest"].batches == 0


@pytest.mark.timeout(180)
def test_what_can_not_be_a_snapshot(pipeline):
    """A key twice, a NULL key, a version that is not above the last: refused by name, nothing of it is written."""
    case = pipeline("VERSIONS = [5, 7, 6]\n" + NAMED + 'followed("latest", schema=SCHEMA)\n')
    case.land([{"id": 1, "name": "a"}])
    case.update()
    case.land([{"id": 1, "name": "b"}, {"id": 2, "name": "b"}, {"id": 2, "name": "c"}])
    error = case.update().error
    assert isinstance(error, DuplicateKey)
    assert "id = 2" in error.what
    case.land([])
    (case.landing / "00002.json").write_text('{"id": null, "name": "b"}\n')
    assert isinstance(case.update().error, NullKey)
    assert case.rows("latest", select="id, name") == [(1, "a")]
    (case.landing / "00002.json").write_text('{"id": 4, "name": "b"}\n')
    error = case.update().error
    assert isinstance(error, SnapshotOutOfOrder)
    assert "6 after 7" in error.what
    assert case.rows("latest", select="id, name") == [(4, "b")]
    errors = [
        json.loads(c["userMetadata"])
        for c in DeltaTable(str(case.table("latest"))).history()
        if c.get("userMetadata")
    ]
    assert [t["snapshot_version"]["value"] for t in errors if "snapshot_version" in t] == [7, 5]


def test_one_frame_with_its_version(pipeline):
    """A tuple is applied when its version is new, and refused when it goes back; new columns flow through, lost ones fail."""
    source = """
dp.create_streaming_table("t")
dp.apply_changes_from_snapshot(target="t", snapshot_and_version=(spark.sql("QUERY"), VERSION), keys=["id"], stored_as_scd_type=2)
"""

    def given(query: str, version: int) -> str:
        return source.replace("QUERY", query).replace("VERSION", str(version))

    case = pipeline(given("select 1 id, 'a' name", 3))
    case.update()
    case.update()
    assert commits(case, "t") == 1
    case.rewrite(given("select 1 id, 'a' name, 2 age", 4))
    assert case.update().state == "COMPLETED"
    assert case.rows("t", select='id, name, age, "__START_AT", "__END_AT"', order='"__START_AT"') == [
        (1, "a", None, 3, 4), (1, "a", 2, 4, None),
    ]  # fmt: skip
    case.rewrite(given("select 1 id, 'a' name", 5))
    assert "'age'" in str(case.update().error)
    case.rewrite(given("select 1 id, 'a' name, 3 age", 2))
    assert isinstance(case.update().error, SnapshotOutOfOrder)


VIEWS = """
@dp.temporary_view
def s():
    return spark.range(3).withColumn("name", F.lit("a"))

@dp.temporary_view
def events():
    return spark.readStream.schema("id INT").json(LANDING)
"""


@pytest.mark.parametrize(
    ("flow", "condition", "what"),
    [
        ('dp.create_auto_cdc_from_snapshot_flow("t", keys=["id"])', "INVALID_CHANGE_FLOW", "Give one of the two"),
        ('dp.create_auto_cdc_from_snapshot_flow("t", "s", [])', "INVALID_CHANGE_FLOW", "keys are needed"),
        ('dp.create_auto_cdc_from_snapshot_flow("t", "s", ["no"])', "INVALID_CHANGE_FLOW", "the source does not have"),
        ('dp.create_auto_cdc_from_snapshot_flow("t", 7, ["id"])', "INVALID_CHANGE_FLOW", "not from int"),
        ('dp.create_auto_cdc_from_snapshot_flow("t", "s", ["id"], 3)', "INVALID_CHANGE_FLOW", "not a type"),
        ('dp.create_auto_cdc_from_snapshot_flow("t", "s", ["id"], track_history_column_list=["name"])', "INVALID_CHANGE_FLOW", "only type 2"),
        ('dp.create_auto_cdc_from_snapshot_flow("t", lambda latest: None, ["id"])', "INVALID_CHANGE_FLOW", "schema="),
        ('dp.create_auto_cdc_from_snapshot_flow("t", lambda latest: 7, ["id"])', "NOT_A_DATAFRAME", "not \\(DataFrame, version\\)"),
        ('dp.create_auto_cdc_from_snapshot_flow("t", lambda latest: (spark.range(1), True), ["id"])', "INVALID_CHANGE_FLOW", "is bool"),
        ('dp.create_auto_cdc_from_snapshot_flow("t", "events", ["id"])', "NOT_A_DATAFRAME", "stream"),
        ('dp.create_auto_cdc_from_snapshot_flow("t", "s", ["id"])\ndp.create_auto_cdc_flow("t", "events", ["id"], "id", name="e")', "INVALID_CHANGE_FLOW", "writes to it too"),
        ('dp.create_auto_cdc_from_snapshot_flow("t", "s", ["id"])\ndp.create_auto_cdc_from_snapshot_flow("t", "s", ["id"], name="b")', "INVALID_CHANGE_FLOW", "a table of its own"),
        ('dp.create_auto_cdc_from_snapshot_flow("ruled", "s", ["id"])', "INVALID_EXPECTATION", "follows snapshots"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(pipeline, flow: str, condition: str, what: str):
    """What can't be a snapshot flow is refused with the call's line before anything is written."""
    target = (
        'dp.create_streaming_table("ruled", expect_all={"r": "id > 1"})'
        if "ruled" in flow
        else 'dp.create_streaming_table("t")'
    )
    case = pipeline(f"{VIEWS}\n{target}\n{flow}\n")
    with pytest.raises(InvalidPipeline) as caught:
        case.update()
    assert caught.value.condition == condition
    assert re.search(what, f"{caught.value.what} {caught.value.remedy}")
    assert ":" in str(caught.value.where)
    assert case.nothing_written()
