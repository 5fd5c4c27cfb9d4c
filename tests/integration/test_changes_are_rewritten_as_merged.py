"""AUTO CDC writes known changes into their files without a MERGE: rows, change feed, counts and checks are those of a MERGE."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from tests.change_table import SCHEMA, Changes, flow
from tests.seeds import SEED

from headwater.delta_log.commits import (
    commit_file,
    commit_head,
    commit_info,
    commit_versions,
    newest_version,
    read_actions,
)
from headwater_spark.auto_cdc import merge_history, merge_latest
from headwater_spark.auto_cdc.apply_changes import ChangeTarget
from headwater_spark.auto_cdc.on_driver import door
from headwater_spark.delta_writes import delta_internals
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
    """A random batch gives the same rows, the same change feed and the same counts of its commit, merged or rewritten."""
    seed = SEED
    print(f"HEADWATER_SEED={seed}")
    chance = random.Random(seed)
    merged = target(spark, tmp_path / "merged", FEED, **KINDS[kind])
    merged.apply(events(chance, 60))
    shutil.copytree(tmp_path / "merged", tmp_path / "rewritten")
    rewritten = copy(merged)
    rewritten.target = ChangeTarget(tmp_path / "rewritten" / "table", tmp_path / "rewritten" / "memory")
    batch = events(chance, 60)
    with monkeypatch.context() as patched:
        patched.setattr(door, "rewrite", never)
        merged.apply(batch)
    with monkeypatch.context() as patched:
        patched.setattr(merge_history if kind == "type 2" else merge_latest, "_merge", must_not)
        rewritten.apply(batch)
    assert sorted(rewritten.rows(), key=repr) == sorted(merged.rows(), key=repr)
    assert feed(rewritten) == feed(merged)
    counts = [BatchCommits(c.target.path, "tests.flow@0").find(2) for c in (merged, rewritten)]
    facts = [
        (c.version, c.rows, c.upserted, c.deleted, c.metadata["changes"], c.counted) for c in counts if c
    ]
    assert len(facts) == 2
    assert facts[0] == facts[1]
    assert [writer for writer, _ in writers(rewritten)] == ["merge", "driver_rewrite"]
    assert writers(merged)[1] == ("merge", "not in this test")
    metrics = [
        commit_info(read_actions(commit_file(c.target.path, facts[0][0]))) for c in (merged, rewritten)
    ]
    assert {m["operation"] for m in metrics} == {"MERGE"}
    names = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
    assert len({tuple(m["operationMetrics"][name] for name in names) for m in metrics}) == 1


class Stage:
    """A table that goes through the steps of ``STEPS``, one batch each. ``patched``: ends with the step."""

    def __init__(self, changes: Changes, patched: pytest.MonkeyPatch) -> None:
        self.changes, self.patched = changes, patched

    def sql(self, text: str) -> None:
        """``{t}`` is the table."""
        self.changes.spark.sql(text.format(t=f"delta.`{self.changes.target.path}`"))

    def moves_on(self) -> None:
        """Another writer deletes key 2 after the look-up."""
        rewrite = door.rewrite

        def late(*args: Any) -> str | None:
            self.delete(2)
            return rewrite(*args)

        self.patched.setattr(door, "rewrite", late)

    def conflicts(self) -> None:
        """Another writer deletes key 3, which is in the same file, between a rewrite's beginning and its end."""
        register = FileRewrite._register_metrics

        def slow(*args: Any) -> None:
            self.delete(3)
            register(*args)

        self.patched.setattr(FileRewrite, "_register_metrics", slow)

    def delete(self, key: int) -> None:
        """As another writer does."""
        DeltaTable.forPath(self.changes.spark, str(self.changes.target.path)).delete(f"key = {key}")

    def closed(self) -> None:
        """The setting closes the fast path."""
        self.changes.target = replace(self.changes.target, fast_path=False)

    def opened(self) -> None:
        """It is opened again; a merge would fail."""
        self.changes.target = replace(self.changes.target, fast_path=True)
        self.patched.setattr(merge_latest, "_merge", must_not)

    def other_delta(self, operation: Callable[[FileRewrite], Any]) -> None:
        """A part of Delta's is another one than here."""
        self.patched.setattr(FileRewrite, "_operation", operation)

    def without(self, name: str) -> None:
        """Delta has no such part."""
        self.other_delta(lambda rewrite: getattr(rewrite._jvm, name)())

    def constrained(self) -> None:
        """The table gets a constraint, and no merge may check it."""
        self.sql("ALTER TABLE {t} ADD CONSTRAINT known CHECK (city <> 'nowhere')")
        self.opened()


def upsert(key: int, at: int, name: str | None = "b", city: str = "y") -> tuple[Any, ...]:
    """An event."""
    return (key, at, "U", name, city)


OTHER_INTERNALS = ("merge", "this Delta has other internals")
BROKEN = r"(?i)constraint|not null"
# What is done before a batch, the batch, and what wrote it with the reason; a text: how it fails.
STEPS: dict[str, tuple[Callable[[Stage], None], list[tuple[Any, ...]], tuple[str, str | None] | str]] = {
    "an empty table": (lambda stage: None, [upsert(1, 1), upsert(2, 1), upsert(3, 1)], ("merge", "the table has no file yet")),
    "a conflict": (Stage.conflicts, [upsert(1, 2), upsert(5, 1)], ("merge", "another commit was in the way")),
    "moved on": (Stage.moves_on, [upsert(1, 3), upsert(4, 1)], ("merge", "the table has moved on since it was looked up")),
    "closed": (Stage.closed, [upsert(1, 4, "c")], ("merge", "closed by pipelines.cdc.fastPath")),
    "opened again": (Stage.opened, [upsert(1, 5, "d")], ("driver_rewrite", None)),
    "no such class": (lambda stage: stage.without("org.apache.spark.sql.delta.NoSuchThing"), [upsert(1, 6)], OTHER_INTERNALS),
    "no such package": (lambda stage: stage.without("no.such.package"), [upsert(1, 7)], OTHER_INTERNALS),
    "no such method": (lambda stage: stage.other_delta(lambda r: r._delta_transaction.noSuchMethod(1)), [upsert(1, 8)], OTHER_INTERNALS),
    "a failure within": (lambda stage: stage.other_delta(lambda r: r._jvm.java.lang.Integer.parseInt("x")), [upsert(1, 9)], "NumberFormatException|For input string"),
    "an update that breaks a constraint": (Stage.constrained, [upsert(4, 2), upsert(1, 10, "e", "nowhere")], BROKEN),
    "an insert that breaks a constraint": (Stage.opened, [upsert(4, 2), upsert(6, 2, "e", "nowhere")], BROKEN),
    "an update with a NULL": (Stage.opened, [upsert(4, 2), upsert(1, 10, None)], BROKEN),
    "an insert with a NULL": (Stage.opened, [upsert(4, 2), upsert(6, 2, None)], BROKEN),
    "sound again": (Stage.opened, [upsert(4, 2, "f")], ("driver_rewrite", None)),
    "another column": (lambda stage: stage.sql("ALTER TABLE {t} ADD COLUMNS (note STRING)"), [upsert(1, 11)], ("merge", "the table has other columns than the flow")),
    "row tracking": (lambda stage: stage.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"), [upsert(1, 12)], ("merge", "the table has rowTracking")),
    "deletion vectors": (lambda stage: stage.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"), [upsert(1, 13)], ("merge", "the table has deletionVectors")),
}  # fmt: skip


@pytest.mark.timeout(240)
def test_what_is_merged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """What the fast path leaves to MERGE, and what it takes, is in the commits' metadata with the reason; whatever another
    writer commits meanwhile, the rows of both are kept, and a batch that fails leaves nothing behind.
    """
    monkeypatch.setattr(delta_internals, "_WARNED", set())
    changes = target(spark, tmp_path, {})
    creation = DeltaTable.replace(spark).location(str(changes.target.path)).addColumn("key", "INT")
    creation = creation.addColumn("at", "INT").addColumn("name", "STRING", nullable=False)
    creation.addColumn("city", "STRING").execute()
    outcomes: dict[str, Any] = {}
    for name, (prepare, batch, wanted) in STEPS.items():
        with pytest.MonkeyPatch.context() as patched:
            prepare(Stage(changes, patched))
            before = newest_version(changes.target.path)
            try:
                changes.apply(batch)
                outcomes[name] = writers(changes)[-1]
            except Exception as error:
                as_wanted = isinstance(wanted, str) and re.search(wanted, str(error))
                unchanged = newest_version(changes.target.path) == before
                outcomes[name] = wanted if as_wanted and unchanged else f"{unchanged=}, {error}"
    assert outcomes == {name: wanted for name, (_, _, wanted) in STEPS.items()}
    assert [row[:4] for row in changes.rows("key")] == [(1, 13, "b", "y"), (4, 2, "f", "y"), (5, 1, "b", "y")]
    assert len([r for r in caplog.records if r.name == "headwater.delta"]) == 1
