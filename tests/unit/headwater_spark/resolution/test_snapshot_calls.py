"""Which snapshot a pipeline's columns are learnt from."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.written_table import commit

from headwater.checkpoints.snapshot_versions import VERSION_KEY, encoded
from headwater.definitions.change_flow import ChangeFlow
from headwater.definitions.snapshot_flow import SnapshotFlow
from headwater.errors import InvalidPipeline
from headwater_spark.resolution import snapshot_calls
from headwater_spark.resolution.snapshot_calls import first_snapshot, snapshots_file


@pytest.mark.parametrize(("versions", "latest"), [((), None), ((None,), None), ((7, 8), 8), ((7, None), 7)])
def test_where_the_record_of_versions_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, versions: tuple[int | None, ...], latest: int | None
):
    """The flow's function is asked for what follows the table's newest snapshot: the other tables of the pipeline are not refused for it."""
    asked: list[object] = []

    def following(_: object, __: object, version: object) -> Any:
        asked.append(version)
        return SimpleNamespace(frame="rows", kind="bigint")

    monkeypatch.setattr(snapshot_calls, "requested_snapshot", following)
    monkeypatch.setattr(snapshot_calls, "_nothing", lambda kind: kind)
    for version in versions:
        commit(tmp_path / "stock", metadata={} if version is None else {VERSION_KEY: encoded(version)})
    calls: Any = SimpleNamespace(state_folder=tmp_path, table_path=lambda _: tmp_path / "stock")
    changes = ChangeFlow(source="", keys=("id",), sequence_by=None)
    flow: Any = SimpleNamespace(target="stock", snapshots=SnapshotFlow(changes, following=lambda _: None))
    file = snapshots_file(calls, flow, "").path
    assert isinstance(file, Path)
    file.parent.mkdir(parents=True)
    file.write_text('{"numb')
    assert first_snapshot(calls, flow, SimpleNamespace())[0] == "rows"  # type: ignore[arg-type,comparison-overlap]
    assert asked == [latest]


class Rows:
    """In the place of a frame."""

    isStreaming = False  # noqa: N815 - Spark's name


class Stream(Rows):
    """In the place of a frame that is a stream."""

    isStreaming = True  # noqa: N815 - Spark's name


@pytest.mark.parametrize(
    ("answer", "condition", "what"),
    [
        (7, "NOT_A_DATAFRAME", "is int, not \\(DataFrame, version\\) or None"),
        (Rows(), "NOT_A_DATAFRAME", "is Rows, not \\(DataFrame, version\\)"),
        ((Rows(), 1, 2), "NOT_A_DATAFRAME", "is tuple"),
        ((7, 1), "NOT_A_DATAFRAME", "is tuple"),
        ((Stream(), 1), "NOT_A_DATAFRAME", "is a stream"),
        ((Rows(), True), "INVALID_CHANGE_FLOW", "is bool"),
        ((Rows(), None), "INVALID_CHANGE_FLOW", "is NoneType"),
    ],
)
def test_answers_that_are_no_snapshot(
    monkeypatch: pytest.MonkeyPatch, answer: Any, condition: str, what: str
):
    """What a flow's function gives is a whole state and a version that has an order, or nothing: all else is refused with the flow's line."""
    monkeypatch.setattr(snapshot_calls, "DataFrame", Rows)
    flow: Any = SimpleNamespace(name="stock", location="main.py:1")
    with pytest.raises(InvalidPipeline, match=what) as caught:
        snapshot_calls._snapshot(flow, answer)
    assert (caught.value.condition, caught.value.where) == (condition, "main.py:1")
    assert caught.value.remedy


def test_answers_that_are_none(monkeypatch: pytest.MonkeyPatch):
    """Nothing yet, in either form; and a snapshot as it was given."""
    monkeypatch.setattr(snapshot_calls, "DataFrame", Rows)
    flow: Any = SimpleNamespace(name="stock", location="main.py:1")
    assert [snapshot_calls._snapshot(flow, answer) for answer in (None, (None, None))] == [None, None]
    rows = Rows()
    snapshot = snapshot_calls._snapshot(flow, (rows, 3))
    assert snapshot is not None
    assert (snapshot.frame, snapshot.version) == (rows, 3)
