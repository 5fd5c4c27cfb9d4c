"""Rows that break a quarantine rule are kept whole beside their table, once, whatever happens on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.in_step import Share, Steps, in_step
from tests.prepared_pipeline import conditions_of

from headwater.commands import command_line
from headwater.delta_log.commits import commit_file
from headwater.delta_log.table_history import head_version, table_exists
from headwater.errors import ExpectationViolated, RowsNotConserved, UnknownDataset
from headwater.graph.stored_manifest import stored_manifest
from headwater.storage.walking import remove_tree
from headwater.updates.news import has_news
from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.delta_writes.staged_append import StagedAppend
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.targets import judged
from headwater_spark.rules import one_pass
from headwater_spark.testing.local_session import forget_tables

SCHEMA = "id INT, amount INT, age INT"
RULES = """
@dp.expect("adult", "age >= 18")
@dp.expect_or_drop("valid_id", "id IS NOT NULL")
@dp.expect_all_or_quarantine({"pos": "amount > 0", "small": "amount < 100"})
"""
STREAM = f"""
@dp.table{RULES}def people():
    rows = spark.readStream.schema("{SCHEMA}").option("maxFilesPerTrigger", 1).json(LANDING)
    return rows.where("true").select("id", "amount", "age")
"""
TABLE = f"""
dp.create_streaming_table("people", expect_all={{"adult": "age >= 18"}}, expect_all_or_drop={{"valid_id": "id IS NOT NULL"}},
    expect_all_or_quarantine={{"pos": "amount > 0", "small": "amount < 100"}})

@dp.append_flow(target="people", name="first")
def first():
    return spark.readStream.schema("{SCHEMA}").json(LANDING)

@dp.append_flow(target="people", name="archive", once=True)
def archive():
    return spark.read.schema("{SCHEMA}").json(LANDING)
"""
VIEW = STREAM.replace("@dp.table", "@dp.materialized_view").replace("readStream", "read")
SIX = [(1, 10, 30), (None, 10, 30), (3, -1, 30), (None, -1, 10), (5, None, 10), (6, 500, 17)]
KEPT = [(1, 10, 30), (5, None, 10)]
HELD = [(None, -1, 10, "adult, valid_id, pos"), (3, -1, 30, "pos"), (6, 500, 17, "adult, small")]


def people(*rows: tuple[int | None, int | None, int]) -> list[dict[str, Any]]:
    """Rows of the source."""
    return [dict(zip(("id", "amount", "age"), row, strict=True)) for row in rows]


def held(case: Any, name: str = "people") -> list[tuple[Any, ...]]:
    """What the quarantine has of each row, and why."""
    return sorted(case.rows(f"{name}_quarantine", "id, amount, age, error_reason"), key=str)


def counts(case: Any, flow: str) -> list[tuple[int, int, int, dict[str, int]]]:
    """Rows written, dropped and quarantined, and failures by rule, of each batch that the event log tells of."""
    bodies = [r["details"]["flow_progress"] for r in case.events(flow=flow, event_type="flow_progress")]
    written = [
        body["metrics"]["num_output_rows"] for body in bodies if "num_output_rows" in body.get("metrics", {})
    ]
    judged = [body for body in bodies if "data_quality" in body]
    return [
        (
            rows,
            body["data_quality"]["dropped_records"],
            body["data_quality"]["quarantined_records"],
            {rule["name"]: rule["failed_records"] for rule in body["data_quality"]["expectations"]},
        )
        for rows, body in zip(written, judged, strict=True)
    ]


def the_worked_example_of_a_view(case: Share) -> Steps:
    """In a view: a row that breaks a drop and a quarantine rule is quarantined, once, with all names."""
    case.rewrite(VIEW)
    case.land(people(*SIX))
    check_the_worked_example(case, (yield)["people"])


def check_the_worked_example(case: Any, flow: FlowOutcome) -> None:
    """A row that breaks a drop and a quarantine rule is quarantined, once, with all names; every rule counts all rows."""
    assert (flow.input_rows, flow.output_rows, flow.dropped_rows, flow.quarantined_rows) == (6, 2, 1, 3)
    assert case.rows("people") == KEPT
    assert held(case) == sorted(HELD, key=str)
    assert counts(case, "people") == [(2, 1, 3, {"adult": 3, "valid_id": 2, "pos": 2, "small": 1})]


UNITED = f"""
@dp.table
@dp.expect_or_quarantine("pos", "amount > 0")
def people():
    rows = spark.readStream.schema("{SCHEMA}").json(LANDING + "/rows").select("id", "amount")
    lines = spark.readStream.text(LANDING + "/lines").selectExpr("CAST(value AS INT) AS id", "-1 AS amount")
    return rows.union(lines)
"""


def each_input_of_a_union_has_its_records(case: Share) -> Steps:
    """Behind a union of unlike sources a held row has the record and the file of its own input."""
    case.rewrite(UNITED)
    case.land(people(SIX[2]), "rows")
    case.land(["8"], "lines")
    report = yield
    assert report.state == "COMPLETED", report.error
    rows = case.rows("people_quarantine", "id, _source_record, _file", "id")
    assert [(row[0], json.loads(row[1]), row[2].rpartition("/landing/")[2]) for row in rows] == [
        (3, {"id": 3, "amount": -1, "age": 30}, "rows/00001.json"),
        (8, {"value": "8"}, "lines/00002.json"),
    ]


def what_is_kept_of_a_row(case: Share) -> Steps:
    """The row and its record whole, the file, the flow, the batch, the time; the second batch stands beside the first."""
    case.rewrite(
        STREAM.replace('.select("id", "amount", "age")', '.select("id", "amount", F.lit(20).alias("age"))')
    )
    case.land(people(SIX[2]))
    case.land(people(SIX[5], SIX[0]))
    assert (yield)["people"].batches == 2
    columns = "_row, _source_record, _file, _flow, _epoch, _batch, _status, _update_id, _source_offsets"
    first, second = case.rows("people_quarantine", columns, "_batch")
    assert json.loads(first[0]) == {"id": 3, "amount": -1, "age": 20}
    assert json.loads(first[1]) == {"id": 3, "amount": -1, "age": 30}
    assert first[2].endswith("00001.json")
    name = case.own("people")
    assert (first[3:7], second[3:7]) == ((name, 0, 0, "held"), (name, 0, 1, "held"))
    assert first[7]
    assert json.loads(first[8]) == [{"logOffset": 0}]
    assert case.rows("people_quarantine", "count(distinct _id), count(_quarantined_at)") == [(2, 2)]
    entry = stored_manifest(case.project()).dataset(name)
    assert entry.quarantine == f"{entry.location}_quarantine"


def flows_into_one_table_and_one_that_runs_once(case: Share) -> Steps:
    """Each flow judges its own rows; all that is kept out stands in one quarantine, under the flow's name."""
    case.rewrite(TABLE)
    case.land(people(*SIX))
    report = yield
    assert report.state == "COMPLETED", report.error
    assert [report[flow].quarantined_rows for flow in ("first", "archive")] == [3, 3]
    assert case.rows("people") == sorted(2 * KEPT)
    assert sorted(row[0] for row in case.rows("people_quarantine", "_flow")) == sorted(
        3 * [case.own("first"), case.own("archive")]
    )
    assert (yield)["archive"].quarantined_rows == 0
    assert len(case.rows("people_quarantine", "_id")) == 6


def judge_from_memory(patch: pytest.MonkeyPatch) -> None:
    """Keep batches while they are judged, as where they can't be judged in the pass that writes them."""
    patch.setattr(judged, "can_collect", lambda *_: False)


class Dying:
    """A writer of tables that ends before or after its commit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, writer: type, method: str) -> None:
        self._patch, self._place = monkeypatch, (writer, method)
        self._write = getattr(writer, method)

    def update(self, case: Any, moment: str) -> None:
        """An update that ends "before the table" or "after the table"; the quarantine has its rows."""

        def dying(*arguments: Any) -> None:
            if moment == "after the table":
                self._write(*arguments)
            raise RuntimeError(moment)

        with self._patch.context() as patched:
            patched.setattr(*self._place, dying)
            assert case.update().state == "FAILED"
        assert len(held(case)) == 3
        assert table_exists(case.table("people")) == (moment == "after the table")


def test_a_crash_between_the_commits(pipeline, monkeypatch):
    """A batch that is judged from memory, and was left before its table's commit, then after it, comes again: nothing is doubled or
    missing, and its counts are in the log once.
    """
    case = pipeline(STREAM)
    case.land(people(*SIX))
    judge_from_memory(monkeypatch)
    dying = Dying(monkeypatch, DeltaAppend, "write")
    dying.update(case, "before the table")
    dying.update(case, "after the table")
    flow = case.update()["people"]
    assert (flow.output_rows, flow.dropped_rows, flow.quarantined_rows) == (2, 1, 3)
    assert case.rows("people") == KEPT
    assert held(case) == sorted(HELD, key=str)
    assert counts(case, "people") == [(2, 1, 3, {"adult": 3, "valid_id": 2, "pos": 2, "small": 1})]


def test_rules_that_change(pipeline, monkeypatch):
    """Rows that a killed driver quarantined by the old rules are judged anew: each row is in just one of the tables. So it is where
    the next one is killed after its table's commit, and counts are in the log once. A full refresh reads all again: none is in
    the quarantine of before.
    """
    case = pipeline(STREAM)
    case.land(people(*SIX))
    dying = Dying(monkeypatch, StagedAppend, "commit")
    dying.update(case, "before the table")
    case.rewrite(STREAM.replace("amount > 0", "amount < 0").replace("amount < 100", "true"))
    dying.update(case, "after the table")
    flow = case.update()["people"]
    assert (flow.output_rows, flow.dropped_rows, flow.quarantined_rows) == (2, 1, 3)
    assert case.rows("people") == [(3, -1, 30), (5, None, 10)]
    assert [row[0] for row in held(case)] == [1, 6, None]
    assert counts(case, "people") == [(2, 1, 3, {"adult": 3, "valid_id": 2, "pos": 3, "small": 0})]
    case.rewrite(STREAM.replace("amount > 0", "amount > -5"))
    case.update(full_refresh=("people",))
    assert case.rows("people") == [(1, 10, 30), (3, -1, 30), (5, None, 10)]
    assert held(case) == [(6, 500, 17, "adult, small")]


def a_rule_that_comes_and_goes(case: Share) -> Steps:
    """A batch that the Delta sink wrote and nobody marked is known when the flow is judged now, and the other way round."""
    plain = STREAM.replace("expect_all_or_quarantine", "expect_all_or_drop")
    case.rewrite(plain)
    for source, quarantined in ((plain, 0), (STREAM, 1)):
        case.rewrite(source)
        case.land(people(SIX[0], SIX[2]))
        report = yield
        assert report.state == "COMPLETED", report.error
        last = max((case.checkpoint("people").epoch_folder(0) / "commits").glob("[0-9]*"))
        last.unlink()  # as if the driver had been killed before it marked the batch
        last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
        expected = quarantined
    case.rewrite(plain)
    assert (yield).state == "COMPLETED"
    assert case.rows("people") == 2 * [SIX[0]]
    assert len(held(case)) == expected == 1


def fail_before_anything_is_written(case: Share) -> Steps:
    """A row that breaks a rule of kind fail leaves neither table nor quarantine, and the message has both records."""
    case.rewrite(
        STREAM.replace('@dp.expect("adult"', '@dp.expect_or_fail("adult"').replace(
            '"id", "amount", "age"', '"id", "amount", (F.col("age") - 1).alias("age")'
        )
    )
    case.land([{"id": 7, "amount": -1, "age": 18, "password": "hunter2"}, *people(SIX[0])])
    error = (yield).error
    assert isinstance(error, ExpectationViolated)
    assert (
        f"[EXPECTATION_VIOLATION.VERBOSITY_ALL] Flow '{case.own('people')}' failed to meet the expectation."
        in error.what
    )
    assert "Violated expectations: 'adult'." in error.what
    assert """Input data: '{"id": 7, "amount": -1, "age": 18""" in error.what
    assert """Output record: '{"id": 7, "amount": -1, "age": 17}'. Missing input data: false""" in error.what
    assert not table_exists(case.table("people"))
    assert not case.table("people_quarantine").exists()


def columns_that_come_and_change(case: Share) -> Steps:
    """A new column joins the quarantine; one of another type stays in the JSON alone, and nothing breaks."""
    case.rewrite(STREAM)
    case.land(people(SIX[2]))
    yield
    wider = STREAM.replace(
        '"id", "amount", "age"', '"id", "amount", "age", F.lit("x").alias("note"), F.lit(1).alias("_row")'
    )
    case.rewrite(wider)
    case.land(people(SIX[2]))
    assert (yield).state == "COMPLETED"
    case.rewrite(
        wider.replace('"id", "amount", "age"', '"id", F.col("amount").cast("string").alias("amount"), "age"')
    )
    case.land(people(SIX[2]))
    report = yield
    rows = case.rows("people_quarantine", "amount, note, _row", "_batch")
    assert rows[0][:2] == (-1, None)
    assert rows[1][:2] == (-1, "x")
    assert json.loads(rows[1][2])["_row"] == 1
    assert report.state in ("COMPLETED", "FAILED")
    if report.state == "COMPLETED":
        assert rows[2][:2] == (None, "x")
        assert json.loads(rows[2][2])["amount"] == "-1"


UNIQUE = f"""
@dp.table
@dp.expect_unique(["id"], within="batch", action="quarantine")
@dp.expect_unique("amount", name="amount_once", within="table", action="drop")
def people():
    return spark.readStream.schema("{SCHEMA}").option("maxFilesPerTrigger", 1).json(LANDING)
"""


def keys_that_are_there_twice(case: Share) -> Steps:
    """Within a batch the least row of a key stays; within the table a key of an earlier batch is broken; NULL passes."""
    case.rewrite(UNIQUE)
    case.land(people((1, 10, 30), (1, 11, 30), (2, 12, 30), (None, 13, 1), (None, None, 2), (3, 12, 1)))
    case.land(people((1, 10, 31), (1, 14, 31), (4, None, 31)))
    flow = (yield)["people"]
    assert (flow.output_rows, flow.dropped_rows, flow.quarantined_rows) == (5, 2, 2)
    accepted = [row[:2] for row in case.rows("people", order="3, 1, 2")]
    assert sorted(accepted, key=str) == [(1, 10), (2, 12), (4, None), (None, 13), (None, None)]
    assert [row[:2] for row in held(case)] == [(1, 11), (1, 14)]


def a_key_twice_fails(case: Share) -> Steps:
    """With action fail nothing of the batch is written, and the error names the rule and the row."""
    case.rewrite(UNIQUE.replace('action="quarantine"', 'action="fail"'))
    case.land(people((1, 10, 30), (1, 11, 30)))
    error = (yield).error
    assert isinstance(error, ExpectationViolated)
    assert "'unique_id'" in error.what
    assert '"amount": 11' in error.what
    assert not case.table("people").exists()


CHANGES = """
dp.create_streaming_table("people", expect_all_or_quarantine={"whole": "age IS NOT NULL"})
dp.create_auto_cdc_flow(target="people", source="changes", keys=["id"], sequence_by="amount")

@dp.temporary_view
def changes():
    return spark.readStream.schema("id INT, amount INT, age INT").json(LANDING)
"""


def change_events_are_judged_before_they_are_merged(case: Share) -> Steps:
    """A change that breaks a rule is kept out of the table's history, and kept; the key's last good row stands."""
    case.rewrite(CHANGES)
    case.land([*people((1, 1, 30), (1, 2, 31)), {"id": 1, "amount": 3}, {"id": 2, "amount": 1}])
    flow = (yield)["people"]
    assert flow.quarantined_rows == 2
    assert case.rows("people", "id, amount, age") == [(1, 2, 31)]
    assert [row[:2] for row in held(case)] == [(1, 3), (2, 1)]
    assert case.rows("people_quarantine", "_source_record", "1")[0][0] is not None


def test_rows_that_are_lost_are_noticed(pipeline, monkeypatch):
    """A writer that loses rows silently fails the update, with the numbers."""
    case = pipeline(STREAM)
    case.land(people(*SIX))
    judge_from_memory(monkeypatch)
    write = DeltaAppend.write
    monkeypatch.setattr(DeltaAppend, "write", lambda self, rows, tx: write(self, rows.where("id = 1"), tx))
    error = case.update().error
    assert isinstance(error, RowsNotConserved)
    assert "6 rows were read, 1 were written, 1 dropped, 3 quarantined" in error.what


def test_what_one_pass_can_not_do(pipeline, monkeypatch):
    """More rows to keep out than the driver has room for, then files with other rows than were counted: what was written is
    left without a commit, and the batch is judged from memory, whole.
    """
    case = pipeline(STREAM)
    case.land(people(*SIX))
    with monkeypatch.context() as patched:
        patched.setattr(one_pass, "_MOST", 1)
        report = case.update()
    assert report.state == "COMPLETED", report.error
    assert (case.rows("people"), held(case)) == (KEPT, sorted(HELD, key=str))
    case.land(people(*SIX))
    stage = judged.stage_append
    monkeypatch.setattr(judged, "stage_append", lambda rows, *more: stage(rows.where("id = 1"), *more))
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert (case.rows("people"), held(case)) == (sorted(2 * KEPT), sorted(2 * HELD, key=str))
    assert counts(case, "people") == 2 * [(2, 1, 3, {"adult": 3, "valid_id": 2, "pos": 2, "small": 1})]


READERS = (
    STREAM
    + """
@dp.materialized_view
def why():
    return spark.read.table("people_quarantine").groupBy("error_reason").count()

@dp.materialized_view
def which():
    return spark.sql("SELECT id, _rules, _batch, _status, _quarantined_at FROM people_quarantine")
"""
)


def a_quarantine_is_read_before_it_is_there(case: Share) -> Steps:
    """Until a row is kept out it reads as an empty table of the columns that it will have; its readers come after it."""
    case.rewrite(READERS)
    case.land(people(SIX[0]))
    report = yield
    assert report.state == "COMPLETED", report.error
    assert (case.rows("why"), case.rows("which")) == ([], [])
    assert not case.table("people_quarantine").exists()
    before = case.columns("which")
    case.land(people(*SIX))
    assert (yield).state == "COMPLETED"
    assert sum(row[1] for row in case.rows("why")) == 3
    assert case.columns("which") == before
    assert [row[:1] for row in case.rows("which", order="id")] == [(3,), (6,), (None,)]
    case.rewrite(
        STREAM + "\n@dp.table\ndef again():\n    return dp.read_stream('people_quarantine').select('id')\n"
    )
    assert (yield).state == "COMPLETED"
    assert len(case.rows("again")) == 3


SCENARIOS = (
    the_worked_example_of_a_view,
    each_input_of_a_union_has_its_records,
    what_is_kept_of_a_row,
    flows_into_one_table_and_one_that_runs_once,
    a_rule_that_comes_and_goes,
    fail_before_anything_is_written,
    columns_that_come_and_change,
    keys_that_are_there_twice,
    a_key_twice_fails,
    change_events_are_judged_before_they_are_merged,
    a_quarantine_is_read_before_it_is_there,
)


def test_rows_are_kept_whole(tmp_path: Path, spark: SparkSession):
    """Each scenario holds what its docstring says."""
    in_step(tmp_path, ("people", "first", "archive", "changes", "why", "which", "again"), SCENARIOS)
    forget_tables(spark)


def test_a_quarantine_that_is_not_there_is_no_stream(pipeline):
    """A stream of it is refused until there is one, with what can be done."""
    case = pipeline(STREAM + "\n@dp.table\ndef again():\n    return dp.read_stream('people_quarantine')\n")
    with pytest.raises(UnknownDataset, match="no row has been kept out") as caught:
        case.manifest()
    assert "as a batch" in caught.value.remedy


def test_a_quarantine_that_is_gone_is_missed(pipeline):
    """Its rows were read: an update is refused though nothing is new, until the quarantine is back or somebody gives it up. Before,
    a stream keeps out what a view does.

    Where a file of it is gone, a full refresh of its table brings the rows back.
    """
    case = pipeline(STREAM)
    case.land(people(*SIX))
    check_the_worked_example(case, case.update()["people"])
    quarantine, kept_out = case.table("people_quarantine"), len(held(case))

    def refusal() -> str:
        code, answer = case.run()
        assert (code, answer["flows"][0]["state"]) == (3, "FAILED")
        return str(answer["flows"][0]["error"]["condition"])

    away = quarantine.rename(case.root / "away")
    assert has_news(case.project()).reasons == ("the quarantine of people is gone",)
    assert refusal() == "QUARANTINE_GONE"
    away.rename(quarantine)
    assert conditions_of(case, "people") == []
    last = commit_file(quarantine, head_version(quarantine))
    whole = last.read_text()
    last.write_text("".join(line for line in whole.splitlines(keepends=True) if '"add"' not in line[:6]))
    assert refusal() == "TABLE_LOG_DAMAGED"
    last.write_text(whole)
    remove_tree(quarantine)
    repaired, answer = case.call(command_line.main, "people", "--action", "mend", "--yes", verb=["repair"])
    assert (repaired, answer["state"]) == (0, "COMPLETED")
    case.land(people(SIX[2]))
    assert case.update().state == "COMPLETED"
    assert (case.rows("people"), len(held(case))) == (KEPT, 1)
    for file in quarantine.glob("*.parquet"):
        file.unlink()
    case.land(people(SIX[2]))
    assert refusal() == "TABLE_FILES_GONE"
    assert case.update(full_refresh=("people",)).state == "COMPLETED"
    assert (case.rows("people"), len(held(case))) == (KEPT, kept_out + 2)
