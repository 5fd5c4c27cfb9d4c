"""A rewrite of files as one commit: under the batch's id, only over the version that was looked at, and with every row accounted for."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from delta.exceptions import ConcurrentAppendException
from tests.unit.headwater_spark.recorded_writes import Conf
from tests.unit.headwater_spark.written_table import commit

from headwater_spark.delta_writes import file_rewrite as module
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_internals import DELTA
from headwater_spark.delta_writes.file_rewrite import (
    CHANGE_TYPE,
    DataFile,
    FileRewrite,
    Marks,
    RowCounts,
    file_rewrite,
)
from headwater_spark.java_classes import OPTION, PYTHON_UTILS

BATCH = BatchTransaction("p.f@3", 7, '{"flow": "f"}')
FILE = DataFile("a", 100, 1, rows=10)
MARKED = DataFile("b", 100, 1, rows=5, deleted=1, entry={"path": "b", "stats": "{}"})


class Seq(list[Any]):
    """A sequence of Scala's."""

    def length(self) -> int:
        return len(self)

    def apply(self, place: int) -> Any:
        return self[place]


def added(rows: int | None) -> Any:
    """A file that Delta has written."""
    number = SimpleNamespace(isEmpty=lambda: rows is None, get=lambda: rows)
    kind = SimpleNamespace(getSimpleName=lambda: "AddFile")
    return SimpleNamespace(
        getClass=lambda: kind, numPhysicalRecords=lambda: number, size=lambda: 9, name=f"new {rows}"
    )


def for_the_feed() -> Any:
    return SimpleNamespace(getClass=lambda: SimpleNamespace(getSimpleName=lambda: "AddCDCFile"), name="feed")


class Delta:
    """Delta's classes and one transaction of it; what is said to that, in order."""

    def __init__(self, *written: Any, version: int = 4, conflict: Exception | None = None) -> None:
        self.written, self.version, self.conflict = list(written), version, conflict
        self.said: dict[str, Any] = {}
        self.metrics: dict[str, int] = {}

    def action(self, text: str) -> Any:
        fields = json.loads(text)["add"]
        return SimpleNamespace(
            removeWithTimestamp=lambda _, changes: ("removed", fields["path"], changes), fields=fields
        )

    def begin(self) -> Any:
        def commit_if_needed(actions: Any, operation: Any, _: Any) -> None:
            if self.conflict is not None:
                raise self.conflict
            self.said["commit"] = (list(actions), operation)

        return SimpleNamespace(
            writeFiles=lambda *_: Seq(self.written), commitIfNeeded=commit_if_needed, readVersion=lambda: self.version,
            updateSetTransaction=lambda name, batch, _: self.said.update(transaction=(name, batch)),
            registerSQLMetrics=lambda _, metrics: self.metrics.update(metrics),
            readTxn=lambda: SimpleNamespace(addOne=lambda name: self.said.update(read=name)),
            trackReadPredicates=lambda *given: self.said.update(predicates=given),
            trackFilesRead=lambda files: self.said.update(files=[file.fields["path"] for file in files]),
        )  # fmt: skip

    @property
    def jvm(self) -> Any:
        class Metric(SimpleNamespace):
            def set(self, value: int) -> None:
                self.value = value

        sessions = SimpleNamespace(
            getActiveSession=lambda: SimpleNamespace(isDefined=lambda: False), setActiveSession=lambda _: None,
            clearActiveSession=lambda: None,
        )  # fmt: skip
        log = SimpleNamespace(startTransaction=self.begin)
        return SimpleNamespace(
            **{
                f"{DELTA}.DeltaLog": SimpleNamespace(forTable=lambda *_: log),
                f"{DELTA}.actions.Action": SimpleNamespace(fromJson=self.action),
                f"{DELTA}.DeltaOperations$MergePredicate": lambda *given: given,
                f"{DELTA}.DeltaOperations$Merge": lambda *_: "merge",
                f"{DELTA}.DeltaOperations$Write": lambda mode, *_: mode,
                "org.apache.spark.sql.SaveMode": SimpleNamespace(Append="append", Overwrite="overwrite"),
                "org.apache.spark.sql.execution.metric.SQLMetrics": SimpleNamespace(createMetric=lambda *_: Metric()),
                "org.apache.spark.sql.classic.SparkSession": sessions,
                OPTION: SimpleNamespace(apply=lambda value: value, empty=lambda: None),
                PYTHON_UTILS: SimpleNamespace(toSeq=Seq, toScalaMap=dict),
            }
        )  # fmt: skip

    @property
    def session(self) -> Any:
        spark = SimpleNamespace(sparkContext=lambda: None)
        return SimpleNamespace(_jvm=self.jvm, _jsparkSession=spark, conf=Conf())


def rewrite_of(
    delta: Delta,
    monkeypatch: pytest.MonkeyPatch,
    files: list[DataFile],
    marks: list[Marks],
    vectors: Any = (),
) -> FileRewrite:
    """A rewrite whose vectors are these."""
    monkeypatch.setattr(module, "MarkWriter", lambda *_: SimpleNamespace(write=lambda _: vectors))
    return FileRewrite(delta.session, delta.jvm, delta.begin(), None, files, marks)


ROWS: Any = SimpleNamespace(_jdf=None)


@pytest.mark.parametrize(
    ("files", "marked", "counts", "rows"),
    [
        ([FILE], [], RowCounts(0, 2, 1), 9),
        ([FILE], [], RowCounts(3, 0, 0), 13),
        (
            [FILE],
            [2, 0],
            RowCounts(1, 2, 1),
            12,
        ),  # two of the three changed rows are marked: one came out of the file
        ([], [4], RowCounts(0, 1, 0), 1),
        ([], [4], RowCounts(2, 0, 1), 2),
    ],
)
def test_every_row_is_accounted_for(
    monkeypatch: pytest.MonkeyPatch, files: list[DataFile], marked: list[int], counts: RowCounts, rows: int
):
    """Files come out with the rows that stay, and those that are new or changed; with one more or less nothing is committed."""
    marks = [Marks(MARKED, marked)] if marked else []
    for number in (rows - 1, rows + 1):
        delta = Delta(added(number))
        reason = rewrite_of(delta, monkeypatch, files, marks).commit(ROWS, counts, BATCH)
        assert reason == "the files came out with another number of rows"
        assert "commit" not in delta.said
    delta = Delta(added(rows), for_the_feed())
    assert rewrite_of(delta, monkeypatch, files, marks, ["vector"]).commit(ROWS, counts, BATCH) is None
    actions, operation = delta.said["commit"]
    assert [getattr(one, "name", one) for one in actions] == [
        f"new {rows}", "feed", *(("removed", file.path, True) for file in files), "vector",
    ]  # fmt: skip
    assert operation == "merge"
    assert delta.said["transaction"] == ("p.f@3", 7)


def test_a_commit_without_rows(monkeypatch: pytest.MonkeyPatch):
    """Rows may only go: then no file is written."""
    delta = Delta(added(99))
    marks = [Marks(MARKED, [1])]
    assert (
        rewrite_of(delta, monkeypatch, [], marks, ["vector"]).commit(None, RowCounts(0, 0, 1), BATCH) is None
    )
    assert delta.said == {"transaction": ("p.f@3", 7), "commit": (["vector"], "merge")}


@pytest.mark.parametrize(
    ("written", "vectors", "conflict", "reason"),
    [
        (None, (), None, "a written file's number of rows is not known"),
        (10, None, None, "a row to be marked as deleted was deleted before"),
        (10, (), ConcurrentAppendException("beside"), "another commit was in the way"),
    ],
)
def test_what_is_left_to_a_merge(
    monkeypatch: pytest.MonkeyPatch,
    written: int | None,
    vectors: Any,
    conflict: Exception | None,
    reason: str,
):
    """A number that is not known, a row that has gone meanwhile, and a commit of another writer: nothing is committed."""
    delta = Delta(added(written), conflict=conflict)
    rewrite = rewrite_of(delta, monkeypatch, [FILE], [], vectors)
    assert rewrite.commit(ROWS, RowCounts(0, 1, 0), BATCH) == reason
    assert "commit" not in delta.said


def test_what_a_commit_says_of_itself(monkeypatch: pytest.MonkeyPatch):
    """Rows that only moved are counted apart from those that changed; a vector is new, or another one, or went with its file."""
    new, emptied = DataFile("c", 50, 1, rows=8), DataFile("d", 7, 1, rows=1, deleted=2)
    marks = [Marks(MARKED, [0]), Marks(new, [5]), Marks(emptied, [0])]
    delta = Delta(added(12))
    assert rewrite_of(delta, monkeypatch, [FILE], marks).commit(ROWS, RowCounts(1, 2, 2), BATCH) is None
    said = {name: metric.value for name, metric in delta.metrics.items() if metric.value}
    said.pop("executionTimeMs", None), said.pop("rewriteTimeMs", None)
    assert said == {
        "operationNumSourceRows": 5, "numTargetRowsInserted": 1, "numTargetRowsUpdated": 2, "numTargetRowsMatchedUpdated": 2,
        "numTargetRowsDeleted": 2, "numTargetRowsMatchedDeleted": 2, "numTargetRowsCopied": 9, "numTargetBytesAdded": 9,
        "numTargetBytesRemoved": 107, "numTargetFilesAdded": 1, "numTargetFilesRemoved": 2, "numTargetDeletionVectorsAdded": 1,
        "numTargetDeletionVectorsUpdated": 1, "numTargetDeletionVectorsRemoved": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("last", "version", "reason"),
    [
        (6, 4, None),
        (7, 4, "the table has the batch"),
        (9, 4, "the table has the batch"),
        (6, 5, "the table has moved on since it was looked up"),
    ],
)
def test_when_a_rewrite_begins(tmp_path: Path, last: int, version: int, reason: str | None):
    """Only where the table lacks the batch, and is at the version that was looked at."""
    commit(tmp_path, transactions={"p.f@3": last})
    with file_rewrite(Delta(version=version).session, tmp_path, 4, [FILE], BATCH) as opened:
        assert (opened if isinstance(opened, str) else None) == reason


@pytest.mark.parametrize("append", [False, True])
def test_what_conflicts_with_a_rewrite(tmp_path: Path, append: bool):
    """Rows that others add, and files that they remove, those with marks too; of rows that only come, the same batch alone."""
    commit(tmp_path)
    delta = Delta()
    session = delta.session
    marks = [Marks(MARKED, [0, 1, 2, 3, 4])]
    with file_rewrite(session, tmp_path, 4, [FILE], BATCH, append=append, marks=marks) as opened:
        assert isinstance(opened, FileRewrite)
        assert session.conf.now == {"spark.databricks.delta.commitInfo.userMetadata": BATCH.user_metadata}
    assert session.conf.now == {}
    assert delta.said.get("read") == "p.f@3"
    assert delta.said.get("files") == (None if append else ["a", "b"])
    assert delta.said.get("predicates") == (None if append else ([], False, True))


@pytest.mark.parametrize(
    ("columns", "written", "actions"),
    [
        (["id", CHANGE_TYPE], [added(10)], []),  # with a feed, and nothing in it
        (["id", CHANGE_TYPE], [added(10), for_the_feed()], ["new 10", "feed", ("removed", "a", True)]),
        (["id"], [added(10)], ["new 10", ("removed", "a", True)]),
    ],
)
def test_a_part_that_is_put_in_place(
    monkeypatch: pytest.MonkeyPatch, columns: list[str], written: list[Any], actions: list[Any]
):
    """New files take the place of the old ones; where no row came or went, both stay out, so that the feed shows nothing."""
    delta = Delta(*written)
    rewrite = rewrite_of(delta, monkeypatch, [FILE], [])
    monkeypatch.setattr(FileRewrite, "_options", lambda *_: None)
    rows: Any = SimpleNamespace(_jdf=None, columns=columns)
    rewrite.put(rows, "day > 1", BATCH)
    committed, operation = delta.said["commit"]
    assert [getattr(one, "name", one) for one in committed] == actions
    assert (operation, delta.said["transaction"]) == ("overwrite", ("p.f@3", 7))
    assert {name: metric.value for name, metric in delta.metrics.items()} == (
        {} if actions else {"numFiles": 0, "numOutputRows": 0, "numOutputBytes": 0}
    )


def test_the_rows_of_the_files(monkeypatch: pytest.MonkeyPatch):
    """Those that go, as the transaction sees the table, read as a table and not as a stream."""
    delta, asked = Delta(), list[Any]()
    started = delta.begin()
    started.snapshot = lambda: "as of the transaction"
    log = SimpleNamespace(createDataFrame=lambda *given: asked.append(given) or "rows")
    monkeypatch.setattr(module, "MarkWriter", lambda *_: None)
    monkeypatch.setattr(module, "DataFrame", lambda rows, session: (rows, session))
    session = delta.session
    rewrite = FileRewrite(session, delta.jvm, started, log, [FILE], [Marks(MARKED, [1])])
    assert rewrite.rows == ("rows", session)  # type: ignore[comparison-overlap]
    ((snapshot, files, streams, _),) = asked
    assert (snapshot, [file.fields["path"] for file in files], streams) == (
        "as of the transaction",
        ["a"],
        False,
    )
