"""Which DAGs a file of all pipelines makes, and what keeps one from having some."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.errors import InvalidSpec
from headwater_airflow import pipelines as module


class Pipelines:
    """Folders with pipelines: the id of each, or why it can't be read; ``errors``: what Airflow is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ids: dict[str, Any] = {"orders": "orders", "store": "store"}
        self.kinds: tuple[str, ...] = ("update", "checks")
        self.errors: dict[str, str] | None = None
        self.wanted: str | None = None
        self.made: list[str] = []
        makers = {
            kind: (suffix, lambda *_, kind=kind, **__: self.dag(kind))
            for kind, (suffix, _) in module._KINDS.items()
        }
        monkeypatch.setattr(module, "_KINDS", makers)
        monkeypatch.setattr(module, "get_parsing_context", lambda: SimpleNamespace(dag_id=self.wanted))
        monkeypatch.setattr(module, "require_pipeline_root", lambda _: None)
        monkeypatch.setattr(module, "pipeline_folders", lambda _: list(self.ids))
        monkeypatch.setattr(module, "pipeline_project", self.opened)
        monkeypatch.setattr(module, "_may_make", lambda *_: True)
        monkeypatch.setattr(module, "read_pipeline", lambda folder, project: self.task(folder, project))
        monkeypatch.setattr(module, "record_import_errors", lambda errors: setattr(self, "errors", errors))

    def opened(self, folder: str, _: Any = None, *, alone: bool = False) -> Any:
        one = self.ids[folder]
        if isinstance(one, Exception):
            raise one
        first = next(name for name, other in self.ids.items() if other == one)
        if not alone and folder != first:
            raise InvalidSpec("Another folder has this id.")
        airflow = SimpleNamespace(dags=self.kinds)
        return SimpleNamespace(pipeline_id=one, spec=SimpleNamespace(dag_id=one, airflow=airflow))

    def task(self, folder: str, project: Any) -> Any:
        return SimpleNamespace(pipeline=folder, dag_id=project.spec.dag_id, airflow=project.spec.airflow)

    def dag(self, kind: str) -> Any:
        self.made.append(kind)
        return SimpleNamespace(validate=lambda: None)

    def ids_made(self) -> list[str]:
        """The ids of the DAGs."""
        return [name.removeprefix("dag:") for name in module.pipeline_dags()]


@pytest.fixture
def pipelines(monkeypatch: pytest.MonkeyPatch) -> Pipelines:
    """Two pipelines with two DAGs each."""
    return Pipelines(monkeypatch)


def test_each_pipeline_has_the_dags_that_it_names(pipelines: Pipelines):
    """In the order of their kinds; nothing is wrong, and Airflow hears that, too."""
    assert pipelines.ids_made() == ["orders", "orders_checks", "store", "store_checks"]
    assert pipelines.errors == {}


def test_a_task_makes_its_own_dag_alone(pipelines: Pipelines):
    """Other DAGs would cost it seconds; errors of other pipelines are those of the process that parses all."""
    pipelines.wanted = "store_checks"
    assert pipelines.ids_made() == ["store_checks"]
    assert (pipelines.made, pipelines.errors) == (["checks"], None)


def test_a_task_whose_dag_is_gone_is_told_why(pipelines: Pipelines):
    """Its log has what is wrong with the pipelines."""
    pipelines.wanted, pipelines.ids["store"] = "store", InvalidSpec("It has no name.")
    assert pipelines.ids_made() == []
    assert list(pipelines.errors or {}) == ["store"]


def test_what_is_wrong_with_one_is_its_own(pipelines: Pipelines):
    """The others have their DAGs."""
    pipelines.ids["orders"] = ValueError("odd")
    assert pipelines.ids_made() == ["store", "store_checks"]
    assert pipelines.errors == {"orders": "ValueError: odd"}


def test_of_two_with_one_id_the_first_has_it(pipelines: Pipelines):
    """The second has an error; no DAG is made twice."""
    pipelines.ids["zebra"] = "orders"
    assert pipelines.ids_made() == ["orders", "orders_checks", "store", "store_checks"]
    assert list(pipelines.errors or {}) == ["zebra"]


def test_an_id_that_is_one_beside_another(pipelines: Pipelines):
    """A pipeline may be called like the checks of one before it: it has no DAGs, and says whose id that is."""
    pipelines.ids["zebra"] = "orders_checks"
    assert "orders_checks_checks" not in pipelines.ids_made()
    assert "of the pipeline in 'orders'" in (pipelines.errors or {})["zebra"]


def test_ids_of_a_pipeline():
    """Those of the kinds that its spec names."""
    spec: Any = SimpleNamespace(dag_id="shop", airflow=SimpleNamespace(dags=("repair", "update", "backfill")))
    assert module.dag_ids(spec) == ["shop", "shop_backfill", "shop_repair"]
