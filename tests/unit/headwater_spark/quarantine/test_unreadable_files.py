"""Which errors are about a file that can't be read, and how a query is made to leave files out."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException
from pyspark.sql.types import StructType
from tests.unit.headwater_spark.update_parts import plan_batch

from headwater_spark.quarantine import unreadable_files
from headwater_spark.quarantine.unreadable_files import (
    StrictReader,
    UnreadableFile,
    damaged_file,
    find_unreadable,
    without_files,
)
from headwater_spark.sources.plan_sources import MARK

TEXT = "SparkException: [FAILED_READ_FILE.{}] Encountered error while reading file {}.  SQLSTATE: KD001"
ERRORS = {
    "cut off": ([TEXT.format("NO_HINT", "file:///in/a%20b.json.gz"), "EOFException: end"], "/in/a b.json.gz"),
    "a footer": ([TEXT.format("CANNOT_READ_FILE_FOOTER", "file:/in/a.parquet")], "/in/a.parquet"),
    "elsewhere": ([TEXT.format("NO_HINT", "s3a://b/a.json")], "s3a://b/a.json"),
    "a row that FAILFAST refuses": (
        [TEXT.format("NO_HINT", "file:///in/a.json"), "SparkException: [MALFORMED_RECORD_IN_PARSING.X] no"],
        None,
    ),
    "another type": ([TEXT.format("PARQUET_COLUMN_DATA_TYPE_MISMATCH", "file:///in/a.parquet")], None),
    "gone": ([TEXT.format("FILE_NOT_EXIST", "file:///in/a.json")], None),
    "something else": (["SparkException: [DIVIDE_BY_ZERO] no"], None),
}


@pytest.mark.parametrize(("messages", "path"), ERRORS.values(), ids=ERRORS)
def test_which_errors_are_about_a_damaged_file(messages: list[str], path: str | None):
    """The file is named where its bytes are at fault, and only there."""
    assert damaged_file(messages) == path


class _Refusing:
    """A session whose JVM answers every call with an error."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    @property
    def _jvm(self):
        raise self.error


def test_a_size_that_cant_be_told_is_left_out_and_a_bug_is_not():
    """What the JVM throws is passed over; an error of our own code is not taken for it."""
    assert unreadable_files._size(_Refusing(Py4JError("gone")), "/a") is None
    with pytest.raises(AttributeError):
        unreadable_files._size(_Refusing(AttributeError("_jvm")), "/a")


def test_only_sparks_failures_tell_of_files():
    """A file is not called whole because our own code failed while it was looked at."""
    reader = StrictReader(None, "json", {}, StructType(), lambda error: [str(error)])
    with pytest.raises(AttributeError):
        reader.failure(["/a"])


def test_a_failure_of_spark_that_names_no_file(monkeypatch):
    """It says nothing about files, unless that is requested."""

    def failing(*_):
        raise AnalysisException("[X] It failed.")

    monkeypatch.setattr(StrictReader, "frame", failing)
    reader = StrictReader(None, "json", {}, StructType(), lambda error: [str(error)])
    assert reader.failure(["/a"]) is None
    with pytest.raises(AnalysisException):
        reader.failure(["/a"], others=True)


def test_only_a_batch_that_is_not_done_has_failed(tmp_path: Path):
    """Without one, the error is not about a batch's files, and none is read."""
    untouched: Any = None
    assert find_unreadable(untouched, tmp_path, list, []) == []
    plan_batch(tmp_path, 0, {"logOffset": 0}, done=True)
    assert find_unreadable(untouched, tmp_path, list, []) == []


@pytest.mark.parametrize(("batch", "files"), [(0, {"/in/a": 10}), (1, {"/in/b": 11, "/in/c": 12}), (2, {})])
def test_the_files_of_one_batch(tmp_path: Path, batch: int, files: dict[str, int]):
    """Those that came after the batch before, up to its end; a file that an earlier batch has read is not left out now."""
    for number, end in enumerate((0, 2, 2)):
        plan_batch(tmp_path, number, {"logOffset": end})
    log = tmp_path / "sources" / "0"
    log.mkdir(parents=True)
    for number, name in enumerate("abcd"):
        entry = {"path": f"file:///in/{name}", "timestamp": 10 + number, "batchId": number}
        (log / str(number)).write_text(f"v1\n{json.dumps(entry)}")
    assert unreadable_files._files(tmp_path, 0, 0, batch) == files


@pytest.mark.parametrize("alone", [None, ("/b", "cut off")])
def test_a_file_is_damaged_where_it_fails_alone(alone: tuple[str, str] | None):
    """One that is read well by itself (it was being replaced) is not left out; the others are looked at as well."""

    class Reader:
        def failure(self, paths: list[str]) -> tuple[str, str] | None:
            if paths == ["/b"]:
                return alone
            return ("/b", "some error") if "/b" in paths else None

    reader: Any = Reader()
    assert list(unreadable_files._damaged(reader, {"/a", "/b", "/c"})) == ([alone] if alone else [])


class Leaf:
    """A stream from a folder."""

    def equals(self, other: object) -> bool:
        """Whether it is the same stream."""
        return self is other


def two_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Leaf]:
    """A query over two folders whose batch 0, of a file ``a`` in each, has failed; every file is damaged."""
    (tmp_path / "offsets").mkdir()
    ends = ['{"logOffset":0}'] * 2
    (tmp_path / "offsets" / "0").write_text("\n".join(["v1", "{}", *ends]))
    for source in range(2):
        log = tmp_path / "sources" / str(source)
        log.mkdir(parents=True)
        entry = {"path": "file:///in/a", "timestamp": 10 + source, "batchId": 0}
        (log / "0").write_text(f"v1\n{json.dumps(entry)}")
    leaves = [Leaf(), Leaf()]
    monkeypatch.setattr(unreadable_files, "stream_leaves", lambda _: leaves)
    monkeypatch.setattr(unreadable_files, "_all_streams", lambda _: leaves)
    monkeypatch.setattr(unreadable_files, "reads_files", lambda _: True)
    monkeypatch.setattr(StrictReader, "of", lambda *_: None)
    monkeypatch.setattr(
        unreadable_files, "_damaged", lambda _, paths: ((path, "cut off") for path in sorted(paths))
    )
    monkeypatch.setattr(unreadable_files, "_size", lambda *_: 3)
    return leaves


def test_a_file_is_left_out_of_the_stream_that_it_belongs_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Two streams may read one file: that one of them leaves it out already says nothing of the other."""
    two_folders(tmp_path, monkeypatch)
    frame: Any = SimpleNamespace(sparkSession=None)
    first, second = find_unreadable(frame, tmp_path, list, [])
    assert [(one.source, one.path, one.modified) for one in (first, second)] == [
        (0, "/in/a", 10),
        (1, "/in/a", 11),
    ]
    assert find_unreadable(frame, tmp_path, list, [first]) == [second]
    assert find_unreadable(frame, tmp_path, list, [first, second]) == []


class Plan:
    """A node of a query: a stream where ``name`` is given, else what is over its children."""

    def __init__(self, *children: Plan, name: str = "") -> None:
        self.below, self.name = children, name

    def __repr__(self) -> str:
        return self.name or f"[{', '.join(map(repr, self.below))}]"

    def equals(self, other: Plan) -> bool:
        """Two reads of one folder are the same stream."""
        return self.name == other.name

    def children(self) -> Any:
        """As a sequence of Scala's."""
        return Children(self.below)

    def withNewChildren(self, children: Any) -> Plan:  # noqa: N802 - Spark's name
        """The node over other children."""
        return Plan(*children)


class Children(tuple[Plan, ...]):  # noqa: SLOT001
    """A sequence of Scala's."""

    def isEmpty(self) -> bool:  # noqa: N802 - Scala's name
        """Whether there is none."""
        return not self

    def updated(self, index: int, new: Plan) -> Children:
        """With another one at a place."""
        return Children([*self[:index], new, *self[index + 1 :]])


def query_over(plan: Plan) -> Any:
    """The frame of a query, or what is left of it when files are filtered out: named by the files."""

    def where(condition: Any) -> Any:
        return query_over(Plan(name=f"{plan} without {condition}"))

    execution = SimpleNamespace(analyzed=lambda: plan)
    jdf = SimpleNamespace(queryExecution=lambda: execution)
    return SimpleNamespace(_jdf=jdf, sparkSession=None, where=where)


class NotIn:
    """The column of a file's path, as far as the filter uses it."""

    def __init__(self, files: tuple[str, ...] = (), *, inside: bool = True) -> None:
        self.files, self.inside = files, inside

    def isin(self, files: list[str]) -> NotIn:
        """Whether the path is one of these."""
        return NotIn(tuple(files))

    def __invert__(self) -> NotIn:
        return NotIn(self.files, inside=not self.inside)

    def __str__(self) -> str:
        assert not self.inside
        return "+".join(self.files)


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ([], "[[in], [out], in]"),
        ([(0, "/a")], "[[in without file:///a+file:/a], [out], in without file:///a+file:/a]"),
        ([(1, "/a"), (1, "s3a://b/c")], "[[in], [out without file:///a+file:/a+s3a://b/c], in]"),
        ([(2, "/a")], "[[in], [out], in]"),
    ],
)
def test_files_are_filtered_out_at_the_streams_that_they_are_of(
    monkeypatch: pytest.MonkeyPatch, files: list[tuple[int, str]], left: str
):
    """In each place where the query reads that stream, in every spelling of a path; the other streams stay whole."""
    one, other = Plan(name="in"), Plan(name="out")
    frame = query_over(Plan(Plan(one), Plan(other), Plan(name="in")))
    monkeypatch.setattr(unreadable_files, "stream_leaves", lambda _: [one, other])
    monkeypatch.setattr(unreadable_files, "items", list)
    monkeypatch.setattr(unreadable_files, "frame_of", lambda plan, _: query_over(plan))
    columns = {"_metadata.file_path": NotIn()}
    monkeypatch.setattr(unreadable_files, "F", SimpleNamespace(col=columns.__getitem__))
    unreadable = [UnreadableFile(path, source, 0, 0, None, "cut off") for source, path in files]
    assert repr(without_files(frame, unreadable)._jdf.queryExecution().analyzed()) == left


def test_streams_that_can_not_be_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where the checkpoint has another number of positions than the query has streams, no file is left out."""
    leaves = two_folders(tmp_path, monkeypatch)
    leaves.append(Leaf())
    frame: Any = SimpleNamespace(sparkSession=None)
    assert find_unreadable(frame, tmp_path, list, []) == []


@pytest.mark.parametrize(
    ("batch", "files"), [(0, {"/in/0": 10}), (1, {"/in/1": 11, "/in/2": 12}), (2, {}), (3, {"/in/3": 13})]
)
def test_the_files_of_a_batch(tmp_path: Path, batch: int, files: dict[str, int]):
    """Those that the source listed after the end of the batch before, up to its own end, with their times."""
    (tmp_path / "offsets").mkdir()
    for number, end in enumerate((0, 2, 2, 3)):
        lines = ["v1", "{}", "-", json.dumps({"logOffset": end})]
        (tmp_path / "offsets" / str(number)).write_text("\n".join(lines))
    log = tmp_path / "sources" / "0"
    log.mkdir(parents=True)
    for number in range(4):
        entry = {"path": f"file:///in/{number}", "timestamp": 10 + number, "batchId": number}
        (log / str(number)).write_text(f"v1\n{json.dumps(entry)}")
    assert unreadable_files._files(tmp_path, 0, 1, batch) == files
    assert unreadable_files._log_offset(tmp_path, 0, batch) == -1


class Java:
    """An object of the JVM with a class, and with answers by the names of its methods."""

    def __init__(self, kind: str, **answers: Any) -> None:
        self._kind, self._answers = kind, answers

    def getClass(self) -> Any:  # noqa: N802 - Java's name
        """Its class."""
        return SimpleNamespace(getName=lambda: f"org.apache.spark.{self._kind}")

    def __getattr__(self, name: str) -> Any:
        return lambda: self._answers[name]


@pytest.mark.parametrize(
    ("kind", "source", "options", "files"),
    [
        ("StreamingRelation", "json", ("Path", "multiLine"), True),
        ("StreamingRelation", "org.apache.spark.sql.delta.sources.DeltaDataSource", ("path",), False),
        ("StreamingRelation", "rate", ("rowsPerSecond",), False),
        ("StreamingRelation", "rate", (), False),
        ("StreamingRelationV2", "json", ("path",), False),
    ],
)
def test_which_streams_are_of_files(
    monkeypatch: pytest.MonkeyPatch, kind: str, source: str, options: tuple[str, ...], files: bool
):
    """Those from a folder alone: a table's own files, and a source without a folder, are not read again one by one."""
    monkeypatch.setattr(unreadable_files, "items", list)
    pairs = [SimpleNamespace(_1=lambda name=name: name) for name in options]
    data = Java("DataSource", className=source, options=Java("Map", toSeq=pairs))
    assert unreadable_files.reads_files(Java(kind, dataSource=data)) is files


@pytest.mark.parametrize(
    ("path", "root"),
    [("/in/a b", "/in/a b"), ("file:///in/a%20b/day=*/x", "/in/a b"), ("s3a://b/in/{x,y}", "s3a://b/in")],
)
def test_how_a_stream_reads_its_files(monkeypatch: pytest.MonkeyPatch, path: str, root: str):
    """With the stream's own format, options and columns: what is about the stream alone, and our own marks, no batch knows."""
    monkeypatch.setattr(unreadable_files, "items", list)
    declared = {"Path": path, "multiLine": "true", "maxFilesPerTrigger": "1", f"{MARK}read": "1"}
    pairs = [SimpleNamespace(_1=lambda k=k: k, _2=lambda v=v: v) for k, v in declared.items()]
    schema = StructType().add("id", "long").add("_metadata", StructType().add("file_path", "string"))
    data = Java("DataSource", className="json", options=Java("Map", toSeq=pairs))
    leaf = Java("StreamingRelation", dataSource=data, schema=Java("Schema", json=schema.json()))
    session: Any = None
    reader = StrictReader.of(leaf, session, list)
    assert (reader.source_format, reader.options, reader.root) == ("json", {"multiLine": "true"}, root)
    assert reader.schema.names == ["id"]
