"""AUTO CDC from snapshots: a table follows whole states of a source, each applied once over crashes, in both types.

One pipeline has all targets, and five updates: the second is killed before every commit of a snapshot, the fourth after it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pytest
from deltalake import DeltaTable
from tests.pipeline_case import PRELUDE, PipelineCase, UpdateReport
from tests.seeds import SEED

from headwater.checkpoints.snapshot_versions import SnapshotVersions
from headwater.definitions.change_conditions import DuplicateKey, NullKey, SnapshotOutOfOrder
from headwater.errors import InvalidPipeline
from headwater.testing.auto_cdc import expected_from_snapshots
from headwater_spark.execution import snapshot_flow

SOURCE = """
import os
SCHEMA = "id INT, name STRING, city STRING, tags ARRAY<STRING>"

def follow(target, folder, versions, **options):
    def following(latest):
        number = 1 if latest is None else versions.index(latest) + 2
        path = f"{LANDING}/{folder}/{number}.json"
        if number > len(versions) or not os.path.exists(path):
            return None
        return spark.read.schema(SCHEMA).json(path), versions[number - 1]

    dp.create_streaming_table(target, schema=options.pop("schema", None))
    dp.create_auto_cdc_from_snapshot_flow(target=target, source=following, keys=["id"], **options)

MONTHS = ["2026-01", "2026-02", "2026-03"]
follow("latest", "states", MONTHS, schema=SCHEMA)
follow("history", "states", MONTHS, stored_as_scd_type=2, schema=SCHEMA + ", __START_AT STRING, __END_AT STRING")
follow("moves", "states", MONTHS, stored_as_scd_type="2", track_history_except_column_list=["name"],
       schema=SCHEMA + ", __START_AT STRING, __END_AT STRING")
follow("refused", "refused", [5, 7, 6], schema=SCHEMA)

@dp.materialized_view
def users():
    return spark.read.schema("id INT, name STRING").json(f"{LANDING}/users")

@dp.temporary_view
def named():
    return dp.read("users").where("name is not null")

dp.create_streaming_table("copied")
dp.apply_changes_from_snapshot(target="copied", source="users", keys=["id"])
dp.create_streaming_table("copied_history")
dp.create_auto_cdc_from_snapshot_flow("copied_history", "named", ["id"], stored_as_scd_type=2, name="states")

@dp.table
def feed():
    changes = spark.readStream.option("readChangeFeed", "true").table("copied")
    return changes.select("id", F.col("_change_type").alias("change"))
"""
FRAMED = """
dp.create_streaming_table("framed")
dp.apply_changes_from_snapshot(target="framed", snapshot_and_version=(spark.sql("QUERY"), VERSION), keys=["id"], stored_as_scd_type=2)
"""
OPTIONS: dict[str, dict[str, Any]] = {
    "latest": {},
    "history": {"stored_as_scd_type": 2},
    "moves": {"stored_as_scd_type": 2, "track_history_except_column_list": ("name",)},
}
MONTHS = ("2026-01", "2026-02", "2026-03")
State = list[dict[str, Any]]


def crash(*_: object) -> None:
    """What a SIGKILL leaves: nothing after this point happened."""
    message = "killed here"
    raise RuntimeError(message)


def commits(case: PipelineCase, table: str) -> int:
    """How many merges a table has."""
    return sum(commit["operation"] == "MERGE" for commit in DeltaTable(str(case.table(table))).history())


def put(case: PipelineCase, name: str, rows: Sequence[dict[str, Any]]) -> None:
    """Write a file of the landing folder, in the place of one of the same name."""
    path = case.landing / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


class RandomStates:
    """Random states, some at once, with a crash before and one after a commit: always the oracle's rows, each version once; also
    where the update after the second crash is a full refresh.
    """

    # How many come before each update.
    COMING = (0, 2, 0, 1, 0)

    def __init__(self) -> None:
        self.chance, self.states, self.version = random.Random(SEED), list[tuple[str, State]](), 0

    def state(self) -> State:
        """A snapshot of some of thirty keys."""
        chance = self.chance
        return [
            {"id": key, "name": chance.choice([None, "a", "b"]), "city": chance.choice(["x", "y"]), "tags": chance.choice([None, [], ["t"]])}
            for key in range(30)
            if chance.random() < 0.7
        ]  # fmt: skip

    def prepare(self, case: PipelineCase, update: int) -> None:
        for _ in range(self.COMING[update]):
            self.states.append((MONTHS[len(self.states)], self.state()))
            put(case, f"states/{len(self.states)}.json", self.states[-1][1])

    def check(self, case: PipelineCase, update: int, report: UpdateReport) -> None:
        failed = update in (1, 3)
        assert {report.statuses[table] for table in OPTIONS} == {"FAILED" if failed else "COMPLETED"}
        # What is killed after its commit has it.
        arrived = [] if update == 1 else self.states
        for table, options in OPTIONS.items():
            wanted = expected_from_snapshots(arrived, keys=["id"], **options)
            order = "id" if table == "latest" else 'id, "__START_AT"'
            assert case.rows(table, order=order) == [tuple(row.values()) for row in wanted], table
        if update == 4:
            records = case.events(flow="moves", level="METRICS")
            assert [r["origin"]["batch_id"] for r in records] == [0, 1, 2]
            compared = case.events(flow="moves", event_type="operation_progress", containing="CDC_SNAPSHOT")
            assert {r["details"]["operation_progress"]["status"] for r in compared} == {"COMPLETED"}
            assert case.version("moves") == self.version
        self.version = case.version("moves")


class Copies:
    """Each update compares a table or view with its target; one that did not change writes nothing; readers can follow."""

    def prepare(self, case: PipelineCase, update: int) -> None:
        if update == 0:
            put(
                case,
                "users/1.json",
                [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 3, "name": None}],
            )
        elif update == 1:  # the same rows in another file: the view is computed again
            (case.landing / "users/1.json").unlink()
            put(
                case,
                "users/2.json",
                [{"id": 3, "name": None}, {"id": 2, "name": "b"}, {"id": 1, "name": "a"}],
            )
        elif update == 2:
            (case.landing / "users/2.json").unlink()
            put(case, "users/3.json", [{"id": 1, "name": "c"}, {"id": 3, "name": "d"}])

    def check(self, case: PipelineCase, update: int, report: UpdateReport) -> None:
        if update < 2:
            assert case.rows("copied") == [(1, "a"), (2, "b"), (3, None)]
            assert commits(case, "copied") == 1
            assert case.version("users") == update
            return
        assert case.rows("copied") == [(1, "c"), (3, "d")]
        columns = 'id, name, "__START_AT" is null, "__END_AT" is null'
        assert case.rows("copied_history", columns, 'id, "__START_AT"') == [
            (1, "a", False, False), (1, "c", False, True), (2, "b", False, False), (3, "d", False, True),
        ]  # fmt: skip
        assert (2, "delete") in case.rows("feed")
        if update == 3:
            assert (report["copied"].batches, report["copied"].status) == (0, "COMPLETED")


class Refused:
    """A key twice, a NULL key, a version that is not above the last: refused by name, nothing of it is written."""

    SECOND: ClassVar[dict[int, State]] = {
        1: [{"id": 1, "name": "b"}, {"id": 2, "name": "b"}, {"id": 2, "name": "c"}],
        2: [{"id": None, "name": "b"}],
        4: [{"id": 4, "name": "b"}],
    }

    def prepare(self, case: PipelineCase, update: int) -> None:
        if update == 0:
            put(case, "refused/1.json", [{"id": 1, "name": "a"}])
            put(case, "refused/3.json", [])
        if update in self.SECOND:
            put(case, "refused/2.json", self.SECOND[update])

    def check(self, case: PipelineCase, update: int, report: UpdateReport) -> None:
        error, rows = report["refused"].error, case.rows("refused", select="id, name")
        assert rows == [(4, "b") if update == 4 else (1, "a")]
        assert isinstance(error, (type(None), DuplicateKey, NullKey, NullKey, SnapshotOutOfOrder)[update])
        if update in (1, 4):
            assert error is not None
            assert ("id = 2" if update == 1 else "6 after 7") in error.what
        if update == 4:
            log = DeltaTable(str(case.table("refused"))).history()
            written = [json.loads(c["userMetadata"]) for c in log if c.get("userMetadata")]
            assert [t["snapshot_version"]["value"] for t in written if "snapshot_version" in t] == [7, 5]


class Framed:
    """A tuple is applied when its version is new, and refused when it goes back; new columns flow through, lost ones fail."""

    GIVEN: ClassVar[dict[int, tuple[str, int]]] = {
        0: ("select 1 id, 'a' name", 3),
        1: ("select 1 id, 'b' name", 2),
        2: ("select 1 id, 'a' name, 2 age", 4),
        4: ("select 1 id, 'a' name", 5),
    }

    def prepare(self, case: PipelineCase, update: int) -> None:
        if update in self.GIVEN:
            query, version = self.GIVEN[update]
            text = FRAMED.replace("QUERY", query).replace("VERSION", str(version))
            case.write("transformations/framed.py", PRELUDE + text)

    def check(self, case: PipelineCase, update: int, report: UpdateReport) -> None:
        assert isinstance(report["framed"].error, SnapshotOutOfOrder) == (update == 1)
        if update < 2:
            assert commits(case, "framed") == 1
            return
        columns, order = 'id, name, age, "__START_AT", "__END_AT"', '"__START_AT"'
        assert case.rows("framed", columns, order) == [(1, "a", None, 3, 4), (1, "a", 2, 4, None)]
        if update == 4:
            assert "'age'" in str(report["framed"].error)


@pytest.mark.timeout(400)
def test_snapshots_of_all_kinds(pipeline: Callable[..., PipelineCase], monkeypatch: pytest.MonkeyPatch):
    """After each of the updates all targets have what their docstrings say: a failure names the target's class and the update."""
    print(f"HEADWATER_SEED={SEED}")
    case = pipeline(SOURCE)
    targets = (RandomStates(), Copies(), Refused(), Framed())
    wrong: dict[str, AssertionError] = {}
    for update in range(5):
        for target in targets:
            target.prepare(case, update)
        with monkeypatch.context() as broken:
            if update == 1:
                broken.setattr(snapshot_flow, "merge_snapshot", crash)
            if update == 3:
                broken.setattr(SnapshotVersions, "done", crash)
            chosen = (
                {"tables": ("latest", "moves", "refused", "framed"), "full_refresh": ("history",)}
                if update == 4
                else {}
            )
            report = case.update(**chosen)
        for target in targets:
            try:
                target.check(case, update, report)
            except AssertionError as error:
                wrong.setdefault(f"{type(target).__name__}, update {update}", error)
    assert wrong == {}


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
