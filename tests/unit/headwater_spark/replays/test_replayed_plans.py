"""A flow's query over records or files in place of its streams: which operators let a row through by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import flow

from headwater.errors import UsageError
from headwater_spark.replays import file_replay, replayed_query


class Sequence(list[Any]):
    """A sequence of Scala's."""

    def apply(self, index: int) -> Any:
        """What is at a place."""
        return self[index]

    def length(self) -> int:
        """How many there are."""
        return len(self)

    def head(self) -> Any:
        """The first."""
        return self[0]

    def last(self) -> Any:
        """The last."""
        return self[-1]

    def updated(self, index: int, new: Any) -> Sequence:
        """With another one at a place."""
        return Sequence([*self[:index], new, *self[index + 1 :]])

    def appended(self, new: Any) -> Sequence:
        """With one more."""
        return Sequence([*self, new])


class Plan:
    """A node of a query. A project has columns; ``streams``: whether a stream is below."""

    def __init__(
        self, kind: str, *below: Plan, columns: tuple[str, ...] = (), streams: bool | None = None
    ) -> None:
        self.kind, self.below, self.columns = kind, Sequence(below), Sequence(columns)
        self.streams = any(one.streams for one in below) if streams is None else streams

    def __repr__(self) -> str:
        shown = ", ".join([*self.columns, *map(repr, self.below)])
        return f"{self.kind}({shown})" if shown else self.kind

    def equals(self, other: Plan) -> bool:
        """Whether it is the same stream."""
        return self.kind == other.kind

    def isStreaming(self) -> bool:  # noqa: N802 - Spark's names
        """Whether it gives rows of a stream."""
        return self.streams

    def child(self) -> Plan:
        """What is below."""
        return self.below[0]  # type: ignore[no-any-return]

    def children(self) -> Sequence:
        """All that is below."""
        return self.below

    def output(self) -> Sequence:
        """The columns that come out."""
        return self.columns or self.child().output()

    def projectList(self) -> Sequence:  # noqa: N802
        """The columns of a project."""
        return self.columns

    def copy(self, columns: Sequence, child: Plan) -> Plan:
        """A project of other columns."""
        return Plan(self.kind, child, columns=tuple(columns))

    def withNewChildren(self, children: Sequence) -> Plan:  # noqa: N802
        """The node over others."""
        return Plan(self.kind, *children, columns=tuple(self.columns))


RECORDS = Plan("Records", columns=("a", "held"), streams=False)
STREAM = Plan("StreamingRelation", columns=("a",), streams=True)


@pytest.fixture(autouse=True)
def plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds of nodes are their names, and records are a relation of their own."""
    monkeypatch.setattr(replayed_query, "simple_name", lambda node: node.kind)
    monkeypatch.setattr(file_replay, "simple_name", lambda node: node.kind)
    monkeypatch.setattr(replayed_query, "_records", lambda *_: RECORDS)


def project(child: Plan, *columns: str) -> Plan:
    return Plan("Project", child, columns=columns)


@pytest.mark.parametrize(
    ("query", "made"),
    [
        (STREAM, "Records(a, held)"),
        (project(STREAM, "b"), "Project(b, held, Records(a, held))"),
        (Plan("Filter", project(STREAM, "b")), "Filter(Project(b, held, Records(a, held)))"),
        (project(Plan("Filter", project(STREAM, "b")), "c"), "Project(c, held, Filter(Project(b, held, Records(a, held))))"),
        (Plan("Deduplicate", Plan("EventTimeWatermark", STREAM)), "Records(a, held)"),
        (Plan("DeduplicateWithinWatermark", Plan("CollectMetrics", STREAM)), "Records(a, held)"),
        (Plan("Aggregate", STREAM), None),
        (Plan("Filter", Plan("Generate", STREAM)), None),
        (project(Plan("Join", STREAM, STREAM), "b"), None),
        (Plan("Union", STREAM, STREAM), None),
    ],
)  # fmt: skip
def test_a_query_over_records(query: Plan, made: str | None):
    """Each row has the id of its record to the end; what was settled when the record first came is not asked again.

    Where a row may come of several records, or several of one, nothing is made.
    """
    plan = replayed_query._replaced(query, None)  # type: ignore[arg-type]
    assert (None if plan is None else repr(plan)) == made


ONE, OTHER = Plan("one", streams=True), Plan("other", streams=True)
STATIC = Plan("table", streams=False)


def over_files(query: Plan) -> str:
    """The query over files: of the first stream, and none of the second."""
    rows = {0: Plan("files", streams=False), 1: Plan("none", streams=False)}
    return repr(file_replay._replaced(query, [ONE, OTHER], rows, flow()))


@pytest.mark.parametrize(
    ("query", "made"),
    [
        (ONE, "files"),
        (Plan("Filter", Plan("Project", OTHER)), "Filter(Project(none))"),
        (Plan("Union", ONE, OTHER, STATIC), "Union(files, none, table)"),
        (Plan("Generate", Plan("EventTimeWatermark", ONE)), "Generate(files)"),
        (Plan("DeduplicateWithinWatermark", Plan("CollectMetrics", ONE)), "files"),
        (Plan("Join", STATIC, ONE), "Join(table, files)"),
        (Plan("Join", ONE, Plan("Aggregate", STATIC)), "Join(files, Aggregate(table))"),
        (Plan("Deduplicate", ONE), "Deduplicate(files)"),
    ],
)
def test_a_query_over_files(query: Plan, made: str):
    """Each stream is replaced by its own files; parts without a stream stay what they are."""
    assert over_files(query) == made


@pytest.mark.parametrize(
    "query", [Plan("Aggregate", ONE), Plan("Join", ONE, OTHER), Plan("Filter", Plan("Aggregate", ONE))]
)
def test_a_query_that_keeps_state(query: Plan):
    """The rows of a file depend on those of others there: refused, with what to do."""
    with pytest.raises(UsageError, match="keeps state") as caught:
        over_files(query)
    assert "undamaged copy" in caught.value.remedy


class Reader:
    """Reads files; those that are cut fail."""

    def __init__(self, *damaged: str) -> None:
        self.damaged = damaged

    def failure(self, paths: list[str], *, others: bool) -> tuple[str, str] | None:
        """As ``StrictReader.failure``."""
        assert others
        return (paths[0], "cut") if paths[0] in self.damaged else None


def replayable(monkeypatch: pytest.MonkeyPatch, *entries: tuple[str, int], reads: bool = True) -> Any:
    """The entries of files that can be read, and what takes the place of each stream."""
    frame: Any = SimpleNamespace(
        sparkSession=None, _jdf=SimpleNamespace(queryExecution=lambda: SimpleNamespace(analyzed=lambda: None))
    )
    monkeypatch.setattr(file_replay, "stream_leaves", lambda _: [ONE, OTHER])
    monkeypatch.setattr(file_replay, "reads_files", lambda _: reads)
    monkeypatch.setattr(file_replay.StrictReader, "of", lambda *_: Reader("/cut"))
    monkeypatch.setattr(file_replay, "_relation", lambda leaf, _frame, paths, _messages: (leaf.kind, paths))
    monkeypatch.setattr(file_replay, "_replaced", lambda _plan, _leaves, rows, _flow: rows)
    monkeypatch.setattr(file_replay, "frame_of", lambda plan, _: plan)
    rows = [{"_row": f'{{"path": "{path}", "source": {source}}}'} for path, source in entries]
    readable, made = file_replay.replayable_files(frame, flow(), rows, list)  # type: ignore[arg-type]
    return [rows.index(one) for one in readable], made


def test_files_that_can_be_read_now(monkeypatch: pytest.MonkeyPatch):
    """Each is read by the stream that it is of; one that is still damaged is left out."""
    readable, rows = replayable(monkeypatch, ("/a", 1), ("/cut", 0), ("/b", 0), ("/c", 1))
    assert sorted(readable) == [0, 2, 3]
    assert rows == {0: ("one", ["/b"]), 1: ("other", ["/a", "/c"])}
    assert replayable(monkeypatch, ("/cut", 0)) == ([], None)


def test_files_of_a_source_that_is_gone(monkeypatch: pytest.MonkeyPatch):
    """Another source at its place is not that source."""
    for entry, reads in ((("/a", 2), True), (("/a", 0), False)):
        with pytest.raises(UsageError, match="no longer reads"):
            replayable(monkeypatch, entry, reads=reads)


@pytest.mark.parametrize("plan", [None, "a plan"])
def test_a_query_that_can_be_replayed(monkeypatch: pytest.MonkeyPatch, plan: str | None):
    """Over the held rows in the place of its source; none where its rows are not those of records."""
    monkeypatch.setattr(replayed_query, "_replaced", lambda *_: plan)
    monkeypatch.setattr(replayed_query, "frame_of", lambda *given: given)
    analysed = SimpleNamespace(queryExecution=lambda: SimpleNamespace(analyzed=lambda: None))
    frame: Any = SimpleNamespace(_jdf=analysed)
    quarantined: Any = SimpleNamespace(sparkSession="session")
    wanted = None if plan is None else (plan, "session")
    assert replayed_query.query_over(frame, quarantined) == wanted
