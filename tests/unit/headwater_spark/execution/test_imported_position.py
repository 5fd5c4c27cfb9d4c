"""A flow goes on from a job's checkpoint once, and repeats a half-done batch only where its target leaves out what it has."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, run_of, sink, state_of

from headwater.definitions.dataset import Dataset
from headwater.definitions.expectation import Expectation, UniqueKey, ViolationAction
from headwater.definitions.output_kind import OutputKind
from headwater.definitions.sink import SinkKind
from headwater_spark.execution import imported_position as module
from headwater_spark.plans.output_mode import OutputMode

WARNED = Expectation("w", "id > 0", ViolationAction.WARN)
HELD = Expectation("q", "id > 0", ViolationAction.QUARANTINE)
UNIQUE = Expectation("u", "id", ViolationAction.DROP, unique=UniqueKey(("id",)))


class Imported:
    """What is asked of the copy."""

    def __init__(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: Dataset, kind: OutputKind
    ) -> None:
        self.asked: list[Any] = []
        monkeypatch.setattr(module, "import_checkpoint", lambda *given: self.asked.append(given) or 4)
        one = flow(target=target.name, import_checkpoint=str(tmp_path / "job"))
        self.context = context_of(tmp_path, target, flows=(one,), modes={one.name: OutputMode(kind)})
        streams = (SimpleNamespace(streaming=True), SimpleNamespace(streaming=False))
        manifest: Any = self.context.pipeline.manifest
        manifest.flows = (SimpleNamespace(name=one.name, sources=streams),)
        self.context.pipeline.project.object_store = None  # type: ignore[misc]
        self.run = run_of(self.context, target, one)


@pytest.mark.parametrize(
    ("target", "kind", "repeats"),
    [
        (dataset(), OutputKind.APPEND, True),
        (dataset(expectations=(WARNED,)), OutputKind.APPEND, True),
        (dataset(expectations=(HELD,)), OutputKind.APPEND, False),
        (dataset(expectations=(UNIQUE,)), OutputKind.APPEND, False),
        (dataset(), OutputKind.UPDATE, False),
        (sink(SinkKind.FUNCTION, "function", function=print), OutputKind.APPEND, False),
    ],
)  # fmt: skip
def test_which_targets_leave_out_a_batch_that_they_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: Dataset, kind: OutputKind, repeats: bool
):
    """Spark's own Delta sink alone: a batch that the job planned and did not mark as done would be doubled elsewhere."""
    imported = Imported(tmp_path, monkeypatch, target, kind)
    monkeypatch.setattr(type(imported.run), "destination_id", lambda _: "id")
    module.take_over(imported.run)
    ((job, checkpoint, epoch, of),) = imported.asked
    assert (job, checkpoint, epoch) == (tmp_path / "job", imported.run.checkpoint, 0)
    assert (of.repeats, of.sources, of.sink_id) == (repeats, 1, "id")
    (emitted,) = imported.context.events.emitted  # type: ignore[attr-defined]
    assert "after batch 4" in imported.context.said[0]  # type: ignore[attr-defined]
    assert emitted[2]["epoch"] == 0


def test_only_once_and_where_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A flow with a position of its own keeps it, whatever its declaration names; one that names no job begins at its start."""
    imported = Imported(tmp_path, monkeypatch, dataset(), OutputKind.APPEND)
    state_of(imported.context, epoch=3)
    module.take_over(imported.run)
    other = run_of(context_of(tmp_path / "other", dataset()), one=flow())
    module.take_over(other)
    assert imported.asked == []
