"""A history that is loaded once: where its stream begins, and what a second load does."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, run_of
from tests.unit.headwater_spark.written_table import commit

from headwater.backfills.conditions import RangeAlreadyWritten
from headwater.definitions.source import SourceKind
from headwater.delta_log.table_history import FlowCommit
from headwater.preflight.flow_start import StreamSource
from headwater_spark.backfills import then_stream as module

LOADED = FlowCommit(3, 0, ("p.orders@0-history", 0), 5, ({"reservoirVersion": 9},))
STREAMED = FlowCommit(4, 0, ("p.orders@0", 0), 5, ({"reservoirVersion": 9},))


class Loading:
    """One flow whose history is loaded: the steps that write."""

    def __init__(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        *commits: FlowCommit,
        epochs: tuple[int, ...] = (),
    ) -> None:
        self.steps: list[Any] = []
        one = flow()
        self.context = context_of(tmp_path, dataset(), flows=(one,))
        self.run = run_of(self.context, dataset(), one)
        start = SimpleNamespace(checkpoint=SimpleNamespace(epochs=lambda: list(epochs)), sources=())
        identity = SimpleNamespace(names=("p", "orders"))
        case = SimpleNamespace(start=start, commits=list(commits), identity=identity, flow=one)
        parts: dict[str, Any] = {
            "_case": lambda _: case, "flow_commits": lambda *_: list(commits), "_ends": lambda *_: ({"reservoirVersion": 12},),
            "_write": lambda _, ends, dry_run: self.steps.append(("write", ends, dry_run)) or 7,
            "open_at": lambda _, position, __, ___: self.steps.append(("open", position)) or "opened",
        }  # fmt: skip
        for name, part in parts.items():
            monkeypatch.setattr(module, name, part)

    def load(self, *, dry_run: bool = False) -> int:
        return int(module._load(self.run, dry_run=dry_run)["rows"])


def test_a_history_is_written_and_then_the_stream_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The stream begins where the history ended; a dry run opens nothing."""
    loading = Loading(tmp_path, monkeypatch)
    assert loading.load() == 7
    ends = ({"reservoirVersion": 12},)
    assert loading.steps == [("write", ends, False), ("open", ('{"reservoirVersion":12}',))]
    loading.steps.clear()
    assert loading.load(dry_run=True) == 7
    assert loading.steps == [("write", ends, True)]


def test_a_history_that_the_table_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """After a crash it is not written again, and the stream begins where that one ended, not where its sources end now."""
    loading = Loading(tmp_path, monkeypatch, STREAMED, LOADED)
    assert loading.load() == 0
    assert loading.steps == [("open", ('{"reservoirVersion":9}',))]


def test_a_stream_that_has_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its position stays; a table that a stream has begun to fill takes no history."""
    loading = Loading(tmp_path, monkeypatch, LOADED, epochs=(0,))
    assert loading.load() == 0
    assert loading.steps == []
    for commits, epochs in (((STREAMED,), ()), ((), (0,))):
        begun = Loading(tmp_path, monkeypatch, *commits, epochs=epochs)
        with pytest.raises(RangeAlreadyWritten):
            module._check_new(begun.context, dataset())
    for commits, epochs in (((), ()), ((LOADED,), (0,))):
        module._check_new(Loading(tmp_path, monkeypatch, *commits, epochs=epochs).context, dataset())


def test_where_a_stream_begins(tmp_path: Path):
    """With the version behind those that the history has read."""
    for _ in range(3):
        commit(tmp_path / "t")
    source = StreamSource(SourceKind.DELTA, "t", tmp_path / "t")
    (end,) = module._ends(context_of(tmp_path), (source,))
    assert (end["reservoirVersion"], end["index"], end["isStartingVersion"]) == (3, -1, False)
