"""AUTO CDC writes known changes into their files without a MERGE: rows, change feed, counts and checks are those of a MERGE."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from deltalake import DeltaTable as LogReader
from pyspark.sql import SparkSession
from tests.change_table import SCHEMA, Changes, flow
from tests.seeds import SEED
from tests.spark_jobs import jobs_since, last_job

from headwater.delta_log.commits import (
    commit_file,
    commit_head,
    commit_info,
    commit_versions,
    newest_version,
    read_actions,
)
from headwater.delta_log.file_entries import file_entries
from headwater_spark.auto_cdc import merge_history, merge_latest
from headwater_spark.auto_cdc.apply_changes import ChangeTarget
from headwater_spark.auto_cdc.on_driver import door, marking
from headwater_spark.delta_writes import deletion_marks, delta_internals
from headwater_spark.delta_writes.batch_commits import BatchCommits
from headwater_spark.delta_writes.file_rewrite import FileRewrite

KINDS: dict[str, dict[str, Any]] = {
    "type 1, sequence left out": {"except_columns": ("op", "at")},
    "type 2": {"history": True, "except_columns": ("op", "at")},
}
FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}


def events(chance: random.Random, count: int) -> list[tuple[Any, ...]]:
    """Events of 60 keys: some late, some deletes, some equal in key and sequence."""
    return [
        (chance.randrange(60), chance.randrange(100), chance.choice("UUUUD"), chance.choice([None, "a", "b", "é"]), str(chance.randrange(3)))
        for _ in range(count)
    ]  # fmt: skip


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


def feed(changes: Changes, version: int) -> list[tuple[Any, ...]]:
    """The changes of the table from a version on."""
    reader = changes.spark.read.format("delta").option("readChangeFeed", "true")
    rows = reader.option("startingVersion", version).load(str(changes.target.path)).drop("_commit_timestamp")
    # The table's own properties are commits, too: versions are the same for both ways.
    return sorted((tuple(row) for row in rows.collect()), key=repr)


def copied(changes: Changes, root: Path, name: str) -> Changes:
    """The same table and what it remembers, once more."""
    shutil.copytree(changes.target.path.parent, root / name)
    other = copy(changes)
    other.target = ChangeTarget(root / name / "table", root / name / "memory")
    return other


def vectors_of(changes: Changes) -> int:
    """How many rows of the table are only marked as deleted, as the log says."""
    path = changes.target.path
    entries = file_entries(path, newest_version(path) or 0, {file.name for file in path.glob("*.parquet")})
    live = {Path(uri).name for uri in LogReader(str(path)).file_uris()}
    vectors = [
        entry["deletionVector"]
        for name, entry in entries.items()
        if name in live and entry.get("deletionVector")
    ]
    return sum(int(vector["cardinality"]) for vector in vectors)


def facts_of(changes: Changes, version: int) -> dict[str, Any]:
    """What the commit of a batch says of itself, however it was written."""
    commit = BatchCommits(changes.target.path, "tests.flow@0").find(2)
    assert commit is not None
    info = commit_info(read_actions(commit_file(changes.target.path, commit.version)))
    names = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
    return {
        "version": commit.version - version, "rows": commit.rows, "upserted": commit.upserted, "deleted": commit.deleted,
        "changes": commit.metadata["changes"], "counted": commit.counted, "operation": info["operation"],
        "metrics": {name: info["operationMetrics"][name] for name in names},
    }  # fmt: skip


# Each kind, with what other commands have left in its table, and the ways in which the batch is written beside a MERGE. With
# deletion vectors the way is chosen; without, files are written again.
WITH_VECTORS = ("DELETE FROM {t} WHERE key % 7 = 3", "UPDATE {t} SET city = 'moved' WHERE key % 7 = 5")
CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "type 1, sequence left out": ((), ("rewritten",)),
    "type 2": (WITH_VECTORS, ("rewritten", "marked")),
}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", CASES)
def test_the_change_feed_is_a_merges(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    """A random batch gives the same rows, the same change feed and the same counts of its commit whether it is merged, written
    into its files, or, where other commands have left deletion vectors, old rows are marked as deleted; and whoever reads.
    """
    print(f"HEADWATER_SEED={SEED}")
    chance, (commands, ways) = random.Random(SEED), CASES[kind]
    properties = {**FEED, **(VECTORS if commands else {})}
    merged = Changes(spark, tmp_path / "merged", flow(**KINDS[kind]), SCHEMA, properties)
    merged.apply(events(chance, 60))
    for command in commands:
        spark.sql(command.format(t=f"delta.`{merged.target.path}`"))
    left = vectors_of(merged)
    assert (left > 0) == bool(commands)
    arms = {"merged": merged, **{way: copied(merged, tmp_path, way) for way in ways}}
    version, batch, jobs = newest_version(merged.target.path) or 0, events(chance, 60), {}
    for name, changes in arms.items():
        before = last_job(spark)
        with monkeypatch.context() as patched:
            if name == "merged":
                patched.setattr(door, "rewrite", never)
            else:
                patched.setattr(merge_history if kind == "type 2" else merge_latest, "_merge", must_not)
                patched.setattr(marking, "is_marked", lambda *_, answer=name == "marked": answer)
            changes.apply(batch)
        jobs[name] = len(jobs_since(spark, before))
    rows, changed, facts = (
        sorted(merged.rows(), key=repr), feed(merged, version + 1), facts_of(merged, version)
    )  # fmt: skip
    assert len(rows) > 10
    assert facts["operation"] == "MERGE"
    assert writers(merged)[1] == ("merge", "not in this test")
    for name in ways:
        # A MERGE computes the table's state and searches its files.
        assert jobs[name] < jobs["merged"] - (5 if commands else 2)
        assert sorted(arms[name].rows(), key=repr) == rows
        assert feed(arms[name], version + 1) == changed
        assert facts_of(arms[name], version) == facts
        assert [writer for writer, _ in writers(arms[name])] == ["merge", "driver_rewrite"]
    if "rewritten" in arms and commands:
        assert vectors_of(arms["rewritten"]) < left
    if "marked" in arms:
        assert vectors_of(arms["marked"]) > 0
        by_spark = spark.read.format("delta").load(str(arms["marked"].target.path)).collect()
        assert sorted((tuple(row) for row in by_spark), key=repr) == rows


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

    def conflicts(self, key: int = 3) -> None:
        """Another writer deletes a key that is in the same file, between a rewrite's beginning and its end."""
        register = FileRewrite._register_metrics

        def slow(*args: Any) -> None:
            self.delete(key)
            register(*args)

        self.patched.setattr(FileRewrite, "_register_metrics", slow)

    def delete(self, key: int) -> None:
        """As another writer does."""
        DeltaTable.forPath(self.changes.spark, str(self.changes.target.path)).delete(f"key = {key}")

    def opened(self) -> None:
        """A merge would fail."""
        self.patched.setattr(merge_latest, "_merge", must_not)

    def other_delta(self, operation: Callable[[FileRewrite], Any]) -> None:
        """A part of Delta's is another one than here."""
        self.patched.setattr(FileRewrite, "_operation", operation)

    def without_vectors(self) -> None:
        """Delta has no such class that writes deletion vectors."""
        self.patched.setattr(marking, "is_marked", lambda *_: True)
        self.patched.setattr(deletion_marks, "_WRITER", "org.apache.spark.sql.delta.NoSuchThing")

    def takes_vectors(self) -> None:
        """The table gets deletion vectors, and no merge may write."""
        self.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
        self.opened()

    def marks(self) -> None:
        """Rows of even a small file are marked as deleted, and no merge may write."""
        self.patched.setattr(marking, "is_marked", lambda *_: True)
        self.opened()

    def marks_in_conflict(self) -> None:
        """Rows are marked, and another writer deletes key 5 of the same files meanwhile."""
        self.patched.setattr(marking, "is_marked", lambda *_: True)
        self.conflicts(5)

    def deleted_by_another(self) -> None:
        """Another writer has deleted key 5, which leaves a deletion vector or a file less; no merge may write."""
        self.delete(5)
        self.opened()

    def tracks_rows(self) -> None:
        """The table has a column more than the flow, and a feature that other writers would have to keep."""
        self.sql("ALTER TABLE {t} ADD COLUMNS (note STRING)")
        self.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")

    def constrained(self) -> None:
        """The table gets a constraint, and no merge may check it."""
        self.sql("ALTER TABLE {t} ADD CONSTRAINT known CHECK (city <> 'nowhere')")
        self.opened()


def upsert(key: int, at: int, name: str | None = "b", city: str = "y") -> tuple[Any, ...]:
    """An event."""
    return (key, at, "U", name, city)


# What another Delta may lack, and a call that fails by itself.
MISSING: dict[str, Callable[[Any], Any]] = {
    "class": lambda jvm: getattr(jvm, "org.apache.spark.sql.delta.NoSuchThing")(),
    "package": lambda jvm: getattr(jvm, "no.such.package")(),
    "method": lambda jvm: jvm.java.lang.Object().noSuchMethod(1),
}


def fails_within(jvm: Any) -> Any:
    """A call that reaches its method."""
    return jvm.java.lang.Integer.parseInt("x")


OTHER_INTERNALS = ("merge", "this Delta has other internals")
BROKEN = r"(?i)constraint|not null"
# What is done before a batch, the batch, and what wrote it with the reason; a text: how it fails.
STEPS: dict[str, tuple[Callable[[Stage], None], list[tuple[Any, ...]], tuple[str, str | None] | str]] = {
    "an empty table": (lambda stage: None, [upsert(1, 1), upsert(2, 1), upsert(3, 1)], ("merge", "the table has no file yet")),
    "a conflict": (Stage.conflicts, [upsert(1, 2), upsert(5, 1)], ("merge", "another commit was in the way")),
    "moved on": (Stage.moves_on, [upsert(1, 3), upsert(4, 1)], ("merge", "the table has moved on since it was looked up")),
    "nothing in the way": (Stage.opened, [upsert(1, 5, "d")], ("driver_rewrite", None)),
    "no such class": (lambda stage: stage.other_delta(lambda rewrite: MISSING["class"](rewrite._jvm)), [upsert(1, 6)], OTHER_INTERNALS),
    "a failure within": (lambda stage: stage.other_delta(lambda rewrite: fails_within(rewrite._jvm)), [upsert(1, 9)], "NumberFormatException|For input string"),
    "an update that breaks a constraint": (Stage.constrained, [upsert(4, 2), upsert(1, 10, "e", "nowhere")], BROKEN),
    "an update with a NULL": (Stage.opened, [upsert(4, 2), upsert(1, 10, None)], BROKEN),
    "an insert with a NULL": (Stage.opened, [upsert(4, 2), upsert(6, 2, None)], BROKEN),
    "deletion vectors": (Stage.takes_vectors, [upsert(1, 11), upsert(5, 2), upsert(7, 1), upsert(8, 1)], ("driver_rewrite", None)),
    "marked": (Stage.marks, [upsert(1, 12), upsert(5, 3)], ("driver_rewrite", None)),
    "marked, in a conflict": (Stage.marks_in_conflict, [upsert(4, 3), upsert(5, 4)], ("merge", "another commit was in the way")),
    "marked, and breaks a constraint": (Stage.marks, [upsert(4, 4), upsert(1, 14, "e", "nowhere")], BROKEN),
    "deleted by another": (Stage.deleted_by_another, [upsert(1, 14), upsert(5, 5), upsert(7, 2)], ("driver_rewrite", None)),
    "other internals for vectors": (Stage.without_vectors, [upsert(1, 15)], OTHER_INTERNALS),
    "row tracking, and another column": (Stage.tracks_rows, [upsert(1, 17)], ("merge", "the table has rowTracking")),
}  # fmt: skip


def test_parts_that_delta_lacks(spark: SparkSession):
    """What Py4J raises for a class, a package and a method that are not there means another Delta; a failure within a call does not."""
    outcomes = {}
    for name, call in {**MISSING, "failure": fails_within}.items():
        with pytest.raises(Exception) as caught:
            call(spark._jvm)
        outcomes[name] = delta_internals.is_another_version(caught.value)
    assert outcomes == {**dict.fromkeys(MISSING, True), "failure": False}


@pytest.mark.timeout(240)
def test_what_is_merged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """What the fast path leaves to MERGE, and what it takes, is in the commits' metadata with the reason; whatever another
    writer commits meanwhile, the rows of both are kept, and a batch that fails leaves nothing behind.
    """
    monkeypatch.setattr(delta_internals, "_WARNED", set())
    changes = Changes(spark, tmp_path, flow())
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
            assert name != "marked" or vectors_of(changes) == 2
    assert outcomes == {name: wanted for name, (_, _, wanted) in STEPS.items()}
    assert [row[:4] for row in changes.rows("key")] == [
        (1, 17, "b", "y"), (4, 3, "b", "y"), (5, 5, "b", "y"), (7, 2, "b", "y"), (8, 1, "b", "y"),
    ]  # fmt: skip
    assert len([r for r in caplog.records if r.name == "headwater.delta"]) == 1
