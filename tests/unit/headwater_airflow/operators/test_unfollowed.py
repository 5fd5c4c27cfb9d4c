"""Whom a cleared update wakes where the tasks of its tables are over: once for each table, and never beside its own task."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater_airflow.operators import unfollowed as module


class Table:
    """The task of a table."""

    def __init__(self, name: str, *outlets: Any) -> None:
        self.dataset, self.task_id, self.outlets = name, f"t_{name}", list(outlets)


class Run:
    """A run of a DAG with the tasks of three tables, one of which wakes nobody."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *,
        over: tuple[str, ...] = (),
        tries: int = 2,
        spoken: Any = None,
    ) -> None:
        tables = (Table("a", "asset a"), Table("b", "asset b"), Table("silent"))
        dag = SimpleNamespace(tasks=[*tables, SimpleNamespace(task_id="update", outlets=["other"])])
        self.task: Any = SimpleNamespace(
            get_dag=lambda: dag, outlets=[], log=SimpleNamespace(info=lambda *_: None)
        )
        self.instance: Any = SimpleNamespace(
            try_number=tries, dag_id="d", run_id="r",
            xcom_pull=lambda task_ids, map_indexes: (spoken or {}).get(task_ids),
        )  # fmt: skip
        self.announced: list[Any] = []
        self.asked: list[Any] = []
        monkeypatch.setattr(module, "DatasetUpdateOperator", Table)
        monkeypatch.setattr(
            module,
            "tasks_that_are_over",
            lambda *given: self.asked.append(given) or {f"t_{name}" for name in over},
        )
        monkeypatch.setattr(module, "newest_update", lambda *_: SimpleNamespace(update_id="u2"))
        monkeypatch.setattr(module, "flow_results", lambda _, update_id: f"results of {update_id}")
        monkeypatch.setattr(
            module, "announce_tables", lambda *given, **more: self.announced.append((*given[4:], more))
        )

    def announce(self) -> Any:
        """The tables that have an event, None where nothing was announced."""
        project: Any = SimpleNamespace(state_folder=None)
        module.announce_unfollowed(self.task, {"ti": self.instance}, project, "request")
        if not self.announced:
            return None
        ((tables, results, more),) = self.announced
        assert (results, more) == ("results of u2", {"of_newest": True})
        return tables


@pytest.mark.parametrize(
    ("over", "tries", "alone"),
    [
        (("a", "b"), 2, True),
        (("a", "b", "silent"), 2, True),
        (("a",), 2, False),
        ((), 2, False),
        (("a", "b"), 1, False),
    ],
)
def test_an_update_that_nobody_follows(
    monkeypatch: pytest.MonkeyPatch, over: tuple[str, ...], tries: int, alone: bool
):
    """The tasks of all tables that wake anybody were over before this try; the first try is followed by all."""
    run = Run(monkeypatch, over=over, tries=tries)
    assert module.is_followed_by_none(run.task, run.instance) is alone
    assert run.asked == ([("d", "r", ["t_a", "t_b"])] if tries > 1 else [])


@pytest.mark.parametrize(
    ("over", "spoken", "tables"),
    [
        (("a", "b"), {}, ["a", "b"]), (("b",), {}, ["b"]), ((), {}, []),
        (("a", "b"), {"t_a": {module.OF_UPDATES: ["u1", "u2"]}, "t_b": {module.OF_UPDATES: ["u1"]}}, ["b"]),
        (("a", "b"), {"t_a": {module.OF_UPDATES: None}, "t_b": "a text"}, ["a", "b"]),
    ],
)  # fmt: skip
def test_tables_whose_tasks_are_over(
    monkeypatch: pytest.MonkeyPatch, over: tuple[str, ...], spoken: dict[str, Any], tables: list[str]
):
    """Each has its event here, but where its own task has spoken for this very update."""
    run = Run(monkeypatch, over=over, spoken=spoken)
    assert run.announce() == [(name, f"asset {name}") for name in tables]


def test_nothing_is_announced_of_a_first_try_or_without_an_update(monkeypatch: pytest.MonkeyPatch):
    """The tasks of the tables do that."""
    assert Run(monkeypatch, over=("a", "b"), tries=1).announce() is None
    run = Run(monkeypatch, over=("a", "b"))
    monkeypatch.setattr(module, "newest_update", lambda *_: None)
    assert run.announce() is None
