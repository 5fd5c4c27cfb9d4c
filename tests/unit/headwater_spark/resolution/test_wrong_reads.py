"""A read that does not fit what it reads is refused with what fits the flow that reads: its language and its kind."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.recorded_writes import Conf
from tests.unit.headwater_spark.update_parts import dataset, flow

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.source_location import SourceLocation
from headwater.errors import HeadwaterError, NotADataFrame, StreamingReadOfMaterializedView
from headwater.graph.registry import Registry
from headwater_spark.resolution import evaluation as module
from headwater_spark.resolution.evaluation import Evaluation

SNAPSHOTS: Any = SimpleNamespace()


def refusal(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: DatasetKind,
    *,
    streams: bool,
    reads: str,
    **of: Any,
) -> HeadwaterError:
    """The error of a flow that reads ``v``, of which the pipeline says what it is."""
    session: Any = SimpleNamespace(conf=Conf())
    evaluation = Evaluation(Registry(), session, tmp_path, {}, tmp_path / "stubs", tmp_path / "state")
    monkeypatch.setattr(evaluation.names, "dataset", lambda name: dataset(name, kind))
    monkeypatch.setattr(evaluation, "view_frame", lambda _: SimpleNamespace(isStreaming=streams))
    monkeypatch.setattr(evaluation, "schema_of", lambda _: None)
    monkeypatch.setattr(evaluation, "kind_of", lambda _: kind)
    monkeypatch.setattr(module, "no_actions", lambda _: module.nullcontext())
    reader: Any = SimpleNamespace(options_given={})
    reading = flow("f", location=SourceLocation(of.pop("file", "a.py"), 3), **of)
    with pytest.raises(HeadwaterError) as caught, evaluation.calling(reading):
        (evaluation.stream if reads == "stream" else evaluation.batch)("v", reader)
    return caught.value


@pytest.mark.parametrize(
    ("of", "remedy"),
    [
        ({}, 'dp.read_stream("v")'),
        ({"file": "a.sql"}, "FROM STREAM v"),
        ({"snapshots": SNAPSHOTS}, "A snapshot is a state as a whole: let 'v' read with spark.read"),
    ],
)
def test_a_stream_as_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: dict[str, Any], remedy: str
):
    """It is read as a stream; a flow of snapshots, which takes none, is shown what it does take."""
    error = refusal(tmp_path, monkeypatch, DatasetKind.TEMPORARY_VIEW, streams=True, reads="batch", **of)
    assert isinstance(error, NotADataFrame)
    assert remedy in error.remedy
    assert ("read_stream" in error.remedy) == (not of)


@pytest.mark.parametrize(
    ("file", "remedy"), [("a.py", 'dp.read("v")'), ("a.sql", "Leave STREAM out, FROM v")]
)
def test_a_batch_as_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, remedy: str):
    """A view of a batch has no stream: who wrote SQL is shown SQL."""
    error = refusal(
        tmp_path, monkeypatch, DatasetKind.TEMPORARY_VIEW, streams=False, reads="stream", file=file
    )
    assert isinstance(error, NotADataFrame)
    assert remedy in error.remedy


@pytest.mark.parametrize(
    ("file", "remedy"), [("a.py", 'Read it as a batch, dp.read("v")'), ("a.sql", "Leave STREAM out: FROM v.")]
)
def test_a_materialized_view_as_a_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, remedy: str
):
    """It is read as a batch: who wrote SQL is shown SQL."""
    error = refusal(
        tmp_path, monkeypatch, DatasetKind.MATERIALIZED_VIEW, streams=False, reads="stream", file=file
    )
    assert isinstance(error, StreamingReadOfMaterializedView)
    assert remedy in error.remedy
    assert error.where == f"{file}:3"
