"""AUTO CDC writes known changes into their files without a MERGE: rows, change feed, counts and checks are those of a MERGE."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from tests.change_table import SCHEMA, Changes, flow
from tests.seeds import SEED

from headwater.delta_log.commits import commit_file, commit_head, commit_info, commit_versions, read_actions
from headwater_spark.auto_cdc import merge_history, merge_latest
from headwater_spark.auto_cdc.on_driver import door
from headwater_spark.delta_writes.batch_commits import BatchCommits
from headwater_spark.delta_writes.file_rewrite import FileRewrite

KINDS: dict[str, dict[str, Any]] = {
    "type 1": {},
    "type 1, sequence left out": {"except_columns": ("op", "at")},
    "type 2": {"history": True, "except_columns": ("op", "at")},
}
FEED = {"delta.enableChangeDataFeed": "true"}


def events(chance: random.Random, count: int) -> list[tuple[Any, ...]]:
    """Events of 60 keys: some late, some deletes, some equal in key and sequence."""
    return [
        (chance.randrange(60), chance.randrange(100), chance.choice("UUUUD"), chance.choice([None, "a", "b", "é"]), str(chance.randrange(3)))
        for _ in range(count)
    ]  # fmt: skip


def target(spark: SparkSession, root: Path, properties: dict[str, str], **options: Any) -> Changes:
    """A table with such properties, made in several files, and how it is filled."""
    changes = Changes(spark, root, flow(**options), SCHEMA)
    for name, value in properties.items():
        spark.sql(f"ALTER TABLE delta.`{changes.target.path}` SET TBLPROPERTIES ('{name}' = '{value}')")
    return changes


def never(*_args: Any, **_options: Any) -> str:
    """In the place of a rewrite: nothing is written."""
    return "not in this test"


def writers(changes: Changes) -> list[tuple[str, str | None]]:
    """What wrote each batch, and why it was not the fast path, as the commits say."""
    heads = [
        commit_head(commit_file(changes.target.path, v)).metadata
        for v in commit_versions(changes.target.path)
    ]
    return [(metadata["engine"], metadata.get("engine_reason")) for metadata in heads if "batch" in metadata]


def must_not(*_args: Any, **_options: Any) -> None:
    """In the place of a merge."""
    raise AssertionError("merged")


def feed(changes: Changes) -> list[tuple[Any, ...]]:
    """All changes of the table, by version."""
    reader = changes.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1)
    rows = reader.load(str(changes.target.path)).drop("_commit_timestamp")
    # The table's own properties are commits, too: versions are the same for both ways.
    return sorted((tuple(row) for row in rows.collect()), key=repr)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", KINDS)
def test_the_change_feed_is_a_merges(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    """Random batches give the same rows, the same change feed and the same counts of each commit, merged or rewritten."""
    seed = SEED
    print(f"HEADWATER_SEED={seed}")
    chance = random.Random(seed)
    merged, rewritten = (
        target(spark, tmp_path / name, FEED, **KINDS[kind]) for name in ("merged", "rewritten")
    )
    module = merge_history if kind == "type 2" else merge_latest
    with monkeypatch.context() as patched:
        for number in range(2):
            batch = events(chance, 60)
            patched.setattr(door, "rewrite", never)
            merged.apply(batch)
            patched.undo()
            if number:
                patched.setattr(module, "_merge", must_not)
            rewritten.apply(batch)
            patched.undo()
    assert sorted(rewritten.rows(), key=repr) == sorted(merged.rows(), key=repr)
    assert feed(rewritten) == feed(merged)
    for number in range(1, 3):
        counts = [BatchCommits(c.target.path, "tests.flow@0").find(number) for c in (merged, rewritten)]
        assert counts[0] is not None
        assert counts[1] is not None
        facts = [
            (c.version, c.rows, c.upserted, c.deleted, c.metadata["changes"], c.counted) for c in counts if c
        ]
        assert facts[0] == facts[1]
    assert [writer for writer, _ in writers(rewritten)] == ["merge", "driver_rewrite"]
    assert writers(merged)[1] == ("merge", "not in this test")
    metrics = [
        commit_info(read_actions(commit_file(c.target.path, counts[0].version))) for c in (merged, rewritten)
    ]
    assert {m["operation"] for m in metrics} == {"MERGE"}
    names = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
    assert len({tuple(m["operationMetrics"][name] for name in names) for m in metrics}) == 1


def test_constraints_hold(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A row that breaks a constraint, or a NULL where none may be, fails the batch; nothing of it is there, and it can come again."""
    changes = target(spark, tmp_path, {})
    creation = (
        DeltaTable.replace(spark)
        .location(str(changes.target.path))
        .addColumn("key", "INT")
        .addColumn("at", "INT")
    )
    creation.addColumn("name", "STRING", nullable=False).addColumn("city", "STRING").execute()
    changes.apply([(1, 1, "U", "a", "x"), (2, 1, "U", "a", "x")])
    table = f"delta.`{changes.target.path}`"
    spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT known CHECK (city <> 'nowhere')")
    monkeypatch.setattr(merge_latest, "_merge", must_not)
    for bad in [
        (1, 2, "U", "b", "nowhere"),
        (3, 2, "U", "b", "nowhere"),
        (1, 2, "U", None, "y"),
        (3, 2, "U", None, "y"),
    ]:
        with pytest.raises(Exception, match=r"(?i)constraint|not null"):
            changes.apply([(2, 2, "U", "c", "y"), bad])
    assert changes.rows("key") == [(1, 1, "a", "x"), (2, 1, "a", "x")]
    changes.apply([(2, 2, "U", "c", "y")])
    assert changes.rows("key") == [(1, 1, "a", "x"), (2, 2, "c", "y")]


def test_what_is_merged(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What the fast path leaves to MERGE, and what it takes, is in the commits' metadata with the reason."""
    first, second = (
        [(1, 1, "U", "a", "x"), (2, 1, "U", "a", "x")],
        [(1, 2, "U", "b", "y"), (3, 1, "U", "c", "z")],
    )
    wanted = [(1, 2, "b", "y"), (2, 1, "a", "x"), (3, 1, "c", "z")]
    for name, reason in (
        ("delta.enableRowTracking", "the table has rowTracking"),
        ("delta.enableDeletionVectors", "the table has deletionVectors"),
    ):
        changes = target(spark, tmp_path / name, {name: "true"})
        changes.apply(first)
        changes.apply(second)
        assert changes.rows("key") == wanted
        assert writers(changes)[1] == ("merge", reason)
    more = target(spark, tmp_path / "more", {})
    more.apply(first)
    spark.sql(f"ALTER TABLE delta.`{more.target.path}` ADD COLUMNS (note STRING)")
    more.apply(second)
    assert [row[:4] for row in more.rows("key")] == wanted
    assert writers(more) == [
        ("merge", "the table has no file yet"),
        ("merge", "the table has other columns than the flow"),
    ]
    moved = target(spark, tmp_path / "moved", {})
    moved.apply(first)
    rewrite = door.rewrite

    def late(*args: Any) -> str | None:
        DeltaTable.forPath(spark, str(moved.target.path)).delete("key = 2")
        return rewrite(*args)

    with monkeypatch.context() as patched:
        patched.setattr(door, "rewrite", late)
        moved.apply(second)
    assert moved.rows("key") == [wanted[0], wanted[2]]
    assert writers(moved)[1] == ("merge", "the table has moved on since it was looked up")
    # The setting closes the fast path, and opens it again.
    moved.target = replace(moved.target, fast_path=False)
    moved.apply([(1, 3, "U", "c", "y")])
    moved.target = replace(moved.target, fast_path=True)
    moved.apply([(1, 4, "U", "d", "y")])
    assert moved.rows("key") == [(1, 4, "d", "y"), wanted[2]]
    assert writers(moved)[2:] == [("merge", "closed by pipelines.cdc.fastPath"), ("driver_rewrite", None)]


def test_other_internals_of_delta(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """Where Delta has no such parts, MERGE writes the batch and one warning says so; a failure of a part is raised."""
    changes = target(spark, tmp_path, {})
    changes.apply([(1, 1, "U", "a", "x")])
    for number, missing in enumerate(("org.apache.spark.sql.delta.NoSuchThing", "no.such.package")):
        with monkeypatch.context() as patched:
            patched.setattr(FileRewrite, "_operation", lambda self, name=missing: getattr(self._jvm, name)())
            changes.apply([(1, 10 + number, "U", "b", "x")])
    with monkeypatch.context() as patched:
        patched.setattr(FileRewrite, "_operation", lambda self: self._delta_transaction.noSuchMethod(1))
        changes.apply([(1, 20, "U", "c", "x")])
        patched.setattr(FileRewrite, "_operation", lambda self: self._jvm.java.lang.Integer.parseInt("x"))
        with pytest.raises(Exception, match=r"NumberFormatException|For input string"):
            changes.apply([(1, 30, "U", "d", "x")])
    assert changes.rows() == [(1, 20, "c", "x")]
    assert writers(changes)[1:] == [("merge", "this Delta has other internals")] * 3
    assert len([r for r in caplog.records if r.name == "headwater.delta"]) == 1


def test_others_commit_meanwhile(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is committed between a rewrite's beginning and its end is in its way where it is about the same rows: both are kept."""
    changes = target(spark, tmp_path, {})
    changes.apply([(key, 1, "U", "a", "x") for key in (1, 2, 3)])
    table = DeltaTable.forPath(spark, str(changes.target.path))
    register = FileRewrite._register_metrics

    def slow(*args: Any) -> None:
        table.delete("key = 2")
        register(*args)

    monkeypatch.setattr(FileRewrite, "_register_metrics", slow)
    changes.apply([(1, 2, "U", "b", "y"), (4, 1, "U", "c", "z")])
    assert changes.rows("key") == [(1, 2, "b", "y"), (3, 1, "a", "x"), (4, 1, "c", "z")]
