"""What each target commits a batch with, and when it takes a batch for one that the table has."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JError
from tests.unit.headwater_spark.plain_rows import Frame, plain_functions
from tests.unit.headwater_spark.recorded_writes import RecordedFrame
from tests.unit.headwater_spark.written_table import commit

from headwater.definitions.flow import Replacement
from headwater_spark.delta_writes import delta_merge, delta_replace, staged_append
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.delta_writes.delta_internals import added_files, row_count
from headwater_spark.delta_writes.delta_merge import DeltaMerge, committing
from headwater_spark.delta_writes.delta_overwrite import DeltaOverwrite
from headwater_spark.delta_writes.delta_replace import DeltaReplace
from headwater_spark.delta_writes.staged_append import stage_append
from headwater_spark.execution.targets.auto_cdc import AutoCdc
from headwater_spark.execution.targets.user_function import APPLICATION, UserFunction
from headwater_spark.java_classes import OPTION, PYTHON_UTILS

BATCH = BatchTransaction("p.f@3", 7, '{"flow": "f"}')
IN_SETTINGS = {
    "spark.databricks.delta.write.txnAppId": "p.f@3",
    "spark.databricks.delta.write.txnVersion": "7",
    "spark.databricks.delta.commitInfo.userMetadata": '{"flow": "f"}',
}


def targets(table: Path) -> dict[str, Any]:
    """All that write to a Delta table."""
    change = SimpleNamespace(path=table)
    return {
        "append": DeltaAppend(table),
        "merge": DeltaMerge(table, ("id",)),
        "replace": DeltaReplace(table, Replacement(("id",), "at")),
        "overwrite": DeltaOverwrite(table),
        "changes": AutoCdc(change, SimpleNamespace(), None),  # type: ignore[arg-type]
    }


@pytest.mark.parametrize("name", targets(Path()))
@pytest.mark.parametrize(
    ("last", "has"), [({}, False), ({"p.f@3": 6}, False), ({"p.f@3": 7}, True), ({"p.f@3": 9}, True),
                      ({"p.f@2": 9}, False), ({"p.g@3": 9}, False)],
)  # fmt: skip
def test_a_batch_that_the_table_has(tmp_path: Path, name: str, last: dict[str, int], has: bool):
    """A table has a batch where the last number of this epoch's own id is the batch's, or a later one."""
    commit(tmp_path)
    commit(tmp_path, transactions=last)
    assert targets(tmp_path)[name].has(BATCH) is has


@pytest.mark.parametrize("name", targets(Path()))
def test_a_table_that_is_not_there(tmp_path: Path, name: str):
    """It has no batch."""
    assert targets(tmp_path / "none")[name].has(BATCH) is False


def test_a_batch_that_the_delta_sink_wrote(tmp_path: Path):
    """An append knows a batch under the query's own id, too, where it was given that id."""
    commit(tmp_path, transactions={"query": 7})
    assert DeltaAppend(tmp_path, query_id="query").has(BATCH)
    assert not DeltaAppend(tmp_path, query_id="other").has(BATCH)
    assert not DeltaAppend(tmp_path).has(BATCH)


@pytest.mark.parametrize(("partitions", "query"), [((), None), (("day",), None), ((), "query")])
def test_an_append(tmp_path: Path, partitions: tuple[str, ...], query: str | None):
    """One append with id, number and metadata of the batch, whatever the query's own id; Delta leaves out what it has by these."""
    rows = RecordedFrame()
    DeltaAppend(tmp_path, partitions, query_id=query).write(rows, BATCH)  # type: ignore[arg-type]
    (written,) = rows.writes
    assert written.words == {"format": "delta", "mode": "append"}
    assert written.options_given == {
        "mergeSchema": "true", "txnAppId": "p.f@3", "txnVersion": "7", "userMetadata": '{"flow": "f"}',
    }  # fmt: skip
    assert (written.partitions, written.path) == (partitions, str(tmp_path))


@pytest.mark.parametrize("fixed", [False, True])
def test_settings_of_a_merge(fixed: bool):
    """Inside the block a commit takes id, number and metadata; after it nothing of them is left, also after an error."""
    session = RecordedFrame().sparkSession
    copies = {"spark.databricks.delta.merge.materializeSource": "none"} if fixed else {}
    seen: list[dict[str, str]] = []

    def fail() -> None:
        with committing(session, BATCH, fixed_source=fixed):  # type: ignore[arg-type]
            seen.append(dict(session.conf.now))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert seen == [{**IN_SETTINGS, **copies}]
    assert session.conf.now == {}


class Merge:
    """A Delta table that is merged into; the settings of the moment in which that is carried out."""

    def __init__(self, rows: Any, present: Frame | None = None) -> None:
        self.rows, self.present = rows, present
        self.said: dict[str, Any] = {}
        self.settings: dict[str, str] = {}

    def alias(self, _: str) -> Merge:
        return self

    def toDF(self) -> Any:  # noqa: N802
        return self.present

    def merge(self, source: Any, condition: Any) -> Merge:
        self.said["source"], self.said["condition"] = source, condition
        return self

    def __getattr__(self, name: str) -> Any:
        def say(*given: Any, **named: Any) -> Merge:
            self.said[name] = named or given
            return self

        return say

    def execute(self) -> None:
        self.settings = dict(self.rows.sparkSession.conf.now)


def test_a_merge(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Rows of a known key are updated, others inserted, in one commit of the batch; NULL equals NULL in a key."""
    plain_functions(monkeypatch, delta_merge)
    rows = RecordedFrame()
    merge = Merge(rows)
    monkeypatch.setattr(delta_merge, "DeltaTable", SimpleNamespace(forPath=lambda *_: merge))
    DeltaMerge(tmp_path, ("id", "part")).write(rows, BATCH)  # type: ignore[arg-type]
    assert merge.settings == IN_SETTINGS
    assert set(merge.said) == {
        "source", "condition", "withSchemaEvolution", "whenMatchedUpdateAll", "whenNotMatchedInsertAll",
    }  # fmt: skip
    same = {"t": {"id": 1, "part": None}, "s": {"id": 1, "part": None}}
    assert merge.said["condition"].of(same) is True
    for other in ({"id": 2, "part": None}, {"id": 1, "part": 0}, {"id": None, "part": None}):
        assert merge.said["condition"].of({**same, "s": other}) is False


def test_the_lower_of_two_sequences(monkeypatch: pytest.MonkeyPatch):
    """NULL is the lowest sequence; equal ones, also two NULLs, are not lower than each other."""
    plain_functions(monkeypatch, delta_replace)
    lower = delta_replace._lower("s", "t", "at")
    order = [None, 1, 2]
    for one in order:
        for other in order:
            pair = {"s": {"at": one}, "t": {"at": other}}
            assert lower.of(pair) is (order.index(one) < order.index(other))


def jvm_of() -> tuple[Any, dict[str, Any], Any]:
    """A JVM with Delta; the options it got, and the transaction that was begun."""
    options_given: dict[str, Any] = {}
    jvm, begun = MagicMock(), MagicMock()

    def scala_map(options: dict[str, str]) -> dict[str, str]:
        if options:
            options_given.update(options)
        return options

    setattr(jvm, PYTHON_UTILS, MagicMock(toScalaMap=scala_map))
    delta = MagicMock()
    delta.DeltaLog.forTable.return_value.startTransaction.return_value = begun
    setattr(jvm, "org.apache.spark.sql.delta.DeltaLog", delta.DeltaLog)
    command = MagicMock()
    command.writeAndReturnCommitData.return_value.actions.return_value.length.return_value = 0
    setattr(jvm, "org.apache.spark.sql.delta.commands.WriteIntoDelta", lambda *_: command)
    return jvm, options_given, begun


def test_a_staged_append(tmp_path: Path):
    """Files are written under id and number of the batch, and committed with its metadata by the same transaction."""
    jvm, options_given, begun = jvm_of()
    commit(tmp_path, transactions={"p.f@3": 6})
    rows: Any = SimpleNamespace(sparkSession=MagicMock(_jvm=jvm), _jdf=None)
    staged = stage_append(rows, tmp_path, BATCH)
    assert staged is not None
    assert options_given == {"mergeSchema": "true", "txnAppId": "p.f@3", "txnVersion": "7"}
    # Another commit of the flow is a conflict, and Delta does not load the table's state to know of earlier ones.
    begun.readTxn.return_value.addOne.assert_called_once_with("p.f@3")
    begun.txnVersion.assert_not_called()
    begun.commitIfNeeded.assert_not_called()
    getattr(jvm, OPTION).apply.reset_mock()
    staged.commit(BATCH.with_metadata(quality={"rows": 3}))
    begun.commitIfNeeded.assert_called_once()
    said = [call.args[0] for call in getattr(jvm, OPTION).apply.call_args_list]
    assert '{"flow": "f", "quality": {"rows": 3}}' in said


@pytest.mark.parametrize(("last", "staged"), [(6, True), (7, False), (8, False)])
def test_a_batch_that_was_staged_before(tmp_path: Path, last: int, staged: bool):
    """Of a batch that the table has, or a later one, no file is written."""
    jvm, _, begun = jvm_of()
    commit(tmp_path, transactions={"p.f@3": last})
    rows: Any = SimpleNamespace(sparkSession=MagicMock(_jvm=jvm), _jdf=None)
    assert (stage_append(rows, tmp_path, BATCH) is not None) is staged
    begun.commitIfNeeded.assert_not_called()


@pytest.mark.parametrize(
    ("error", "another"),
    [
        (Py4JError("Method startTransaction([]) does not exist"), True),
        (TypeError("'JavaPackage' object is not callable"), True),
        (Py4JError("the disk is full"), False),
    ],
)
def test_a_delta_whose_internals_are_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, another: bool
):
    """Nothing is staged, and the batch is written in two passes; what fails for another reason is raised."""
    jvm, _, begun = jvm_of()
    begun.readTxn.side_effect = error
    monkeypatch.setattr(staged_append, "warn_of_another_version", lambda *_: None)
    rows: Any = SimpleNamespace(sparkSession=MagicMock(_jvm=jvm), _jdf=None)
    with nullcontext() if another else pytest.raises(Py4JError, match="the disk"):
        assert stage_append(rows, tmp_path, BATCH) is None


def test_rows_of_staged_files():
    """The rows of all added files; None where Delta can't tell those of one. Other actions have none."""

    def file(kind: str, rows: int | None) -> Any:
        number = SimpleNamespace(isEmpty=lambda: rows is None, get=lambda: rows)
        return SimpleNamespace(
            getClass=lambda: SimpleNamespace(getSimpleName=lambda: kind), numPhysicalRecords=lambda: number
        )

    actions = [file("AddFile", 2), file("SetTransaction", 9), file("AddFile", 3)]
    assert row_count(added_files(actions)) == 5
    assert row_count(added_files([*actions, file("AddFile", None)])) is None


def test_a_users_function():
    """It gets the rows, the batch's number, and the flow's id in the session; nobody knows whether it wrote before."""
    rows, given = RecordedFrame(), []
    target = UserFunction(lambda frame, batch: given.append((frame, batch)), lambda _: None)  # type: ignore[arg-type]
    assert target.has(BATCH) is False
    assert target.passes == 2
    target.write(rows, BATCH)  # type: ignore[arg-type]
    assert given == [(rows, 7)]
    assert rows.sparkSession.conf.now == {APPLICATION: "p.f@3"}


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({}, {}),
        ({"new_columns": True}, {"overwriteSchema": "true"}),
        ({"condition": "day > 1"}, {"replaceWhere": "day > 1", "mergeSchema": "true"}),
        ({"condition": "day > 1", "new_columns": True}, {"replaceWhere": "day > 1", "mergeSchema": "true"}),
    ],
)
@pytest.mark.parametrize("once", [True, False])
def test_an_overwrite(tmp_path: Path, more: dict[str, Any], options: dict[str, str], once: bool):
    """A part keeps the columns of the others, and a table that keeps its columns knows its partitions. Only what is written once has the batch's id: the next refresh has no other."""
    rows = RecordedFrame()
    target = DeltaOverwrite(tmp_path, ("day",), once=once, **more)
    target.write(rows, BATCH)  # type: ignore[arg-type]
    (written,) = rows.writes
    identity = {"txnAppId": "p.f@3", "txnVersion": "7"} if once else {}
    assert written.options_given == {"userMetadata": BATCH.user_metadata, **identity, **options}
    partitions = ("day",) if "new_columns" in more else ()
    assert (written.words["mode"], written.partitions, written.path) == (
        "overwrite",
        partitions,
        str(tmp_path),
    )
    commit(tmp_path, transactions={"p.f@3": 7})
    assert target.has(BATCH) is once
