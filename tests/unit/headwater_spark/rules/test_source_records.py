"""Of which sources the records are columns, that a query reads one by one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater_spark.rules import source_records as module

STREAMS = "org.apache.spark.sql.execution.streaming"


@pytest.mark.parametrize(
    ("kind", "source", "columnar"),
    [
        (f"{STREAMS}.runtime.StreamingRelation", "org.apache.spark.sql.delta.sources.DeltaDataSource", True),
        (f"{STREAMS}.runtime.StreamingRelation", "parquet", True), (f"{STREAMS}.runtime.StreamingRelation", "ORC", True),
        (f"{STREAMS}.runtime.StreamingRelation", "json", False), (f"{STREAMS}.runtime.StreamingRelationV2", "kafka", False),
        ("org.apache.spark.sql.execution.datasources.LogicalRelation", "", True),
    ],
)  # fmt: skip
def test_sources_of_columns(monkeypatch: pytest.MonkeyPatch, kind: str, source: str, columnar: bool):
    """Tables and files of columns; a topic's records, and lines of files, are read whole in any case."""
    monkeypatch.setattr(module, "class_name", lambda _: kind)
    leaf: Any = SimpleNamespace(dataSource=lambda: SimpleNamespace(className=lambda: source))
    assert module._is_columnar(leaf) is columnar


class Operator:
    """An operator over at most one other; ``columns``: those that it selects or gives."""

    def __init__(self, kind: str, child: Operator | None = None, columns: tuple[str, ...] = ()) -> None:
        self.kind, self.below, self.columns = kind, child, columns

    def child(self) -> Operator:
        """What it reads."""
        assert self.below is not None
        return self.below

    def children(self) -> Any:
        """As a sequence of Scala's."""
        return SimpleNamespace(updated=lambda place, new: (place, new))

    def withNewChildren(self, children: tuple[int, Operator]) -> Operator:  # noqa: N802 - Spark's name
        """The same over another child, whose columns it passes on."""
        assert children[0] == 0
        return Operator(self.kind, children[1])

    def projectList(self) -> Any:  # noqa: N802
        """What a projection selects."""
        return SimpleNamespace(appended=lambda column: (*self.columns, column))

    def copy(self, columns: tuple[str, ...], child: Operator) -> Operator:
        """A projection of other columns."""
        return Operator(self.kind, child, columns)

    def output(self) -> Any:
        """The columns that it gives."""
        last = self.columns[-1] if self.columns else None
        return SimpleNamespace(last=lambda: last if last is not None else self.child().output().last())

    def __repr__(self) -> str:
        return f"{self.kind}{list(self.columns)}" + (f" < {self.below!r}" if self.below else "")


LEAF = Operator("StreamingRelation", None, ("a", "b"))


@pytest.mark.parametrize(
    ("plan", "carried"),
    [
        (LEAF, "StreamingRelation['a', 'b', 'record']"),
        (Operator("Filter", LEAF), "Filter[] < StreamingRelation['a', 'b', 'record']"),
        (
            Operator("Project", Operator("Filter", LEAF), ("b",)),
            "Project['b', 'record'] < Filter[] < StreamingRelation['a', 'b', 'record']",
        ),
        (
            Operator("Filter", Operator("Project", LEAF, ("b",))),
            "Filter[] < Project['b', 'record'] < StreamingRelation['a', 'b', 'record']",
        ),
        (Operator("Aggregate", LEAF), "None"),
        (Operator("Project", Operator("Generate", LEAF), ("a",)), "None"),
    ],
)
def test_how_a_record_is_carried(monkeypatch: pytest.MonkeyPatch, plan: Operator, carried: str):
    """A projection selects it as well, a filter passes it on; above what makes other rows there is none."""
    monkeypatch.setattr(module, "simple_name", lambda node: node.kind)
    monkeypatch.setattr(module, "_is_columnar", lambda _: True)
    monkeypatch.setattr(module, "_leaf", lambda node, _: Operator(node.kind, None, (*node.columns, "record")))
    session: Any = None
    assert repr(module._carried(plan, session, cheap=False)) == carried
    assert module._carried(plan, session, cheap=True) is None


@pytest.mark.parametrize(("carried", "cheap"), [("a plan", False), (None, True)])
def test_a_query_with_records_or_without(monkeypatch: pytest.MonkeyPatch, carried: str | None, cheap: bool):
    """Where a row has no one record the query stays what it is."""
    asked: list[Any] = []
    monkeypatch.setattr(module, "_carried", lambda plan, _, cheap: asked.append((plan, cheap)) or carried)
    monkeypatch.setattr(module, "frame_of", lambda plan, _: f"the frame of {plan}")
    execution = SimpleNamespace(analyzed=lambda: "analysed")
    frame: Any = SimpleNamespace(sparkSession=None, _jdf=SimpleNamespace(queryExecution=lambda: execution))
    answer = module.with_source(frame, cheap=cheap)
    assert (answer is frame) is (carried is None)
    assert carried is None or answer == "the frame of a plan"
    assert asked == [("analysed", cheap)]
