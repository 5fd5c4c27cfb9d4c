"""What the page says of a pipeline whose storage can't be read: why, and nothing that is not known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.storage.conditions import StoreUnreachable
from headwater_airflow.page import pipeline_view as module
from headwater_airflow.page.history import History
from headwater_airflow.page.projects import PipelineEntry

GRAPH = SimpleNamespace(fits=lambda _: True, datasets=())


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is read, by its name; an error is raised."""
    parts: dict[str, Any] = {"observed_manifest": GRAPH, "read_history": History(), "known_homes": []}

    def part(name: str) -> Any:
        if isinstance(parts[name], Exception):
            raise parts[name]
        return parts[name]

    for name in parts:
        monkeypatch.setattr(module, name, lambda _, name=name: part(name))
    monkeypatch.setattr(module, "_datasets", lambda *_: ())
    monkeypatch.setattr(module, "picture", lambda _: None)
    return parts


@pytest.mark.parametrize("graph", [GRAPH, None])
def test_an_event_log_that_can_not_be_read(read: dict[str, Any], graph: Any):
    """The pipeline is not called new, nor silent: its state is not known, and the reason is there."""
    read |= {"observed_manifest": graph, "read_history": StoreUnreachable("away", remedy="Wait.")}
    view = _view()
    assert view.state == "broken"
    assert any("The event log can't be read: away" in trouble for trouble in view.troubles)
    read["read_history"] = History()
    assert (_view().state, _view().troubles) == ("new", ())


def test_a_graph_that_can_not_be_read(read: dict[str, Any]):
    """It is not said that no update has run; where there is none it is."""
    read["observed_manifest"] = StoreUnreachable("away")
    view = _view()
    assert (view.state, view.notes) == ("broken", ())
    read["observed_manifest"] = None
    assert "no update has run" in _view().notes[0]


def _view() -> module.PipelineView:
    project: Any = SimpleNamespace(spec=SimpleNamespace(dag_id="orders"), state_folder="orders")
    return module.pipeline_view(PipelineEntry("orders", project))
