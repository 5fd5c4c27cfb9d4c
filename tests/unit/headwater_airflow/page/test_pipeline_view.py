"""What the page says of a pipeline whose storage can't be read: why, and nothing that is not known."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.storage.conditions import StoreUnreachable
from headwater_airflow.page import dataset_view, graph_picture, history
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


def test_boxes_stand_beside_what_they_read(monkeypatch: pytest.MonkeyPatch):
    """Of two columns the second is in the order of what its boxes read; one that reads nothing stays where it is."""
    columns = [["a", "b"], ["c", "d", "e"]]
    assert graph_picture._rows(columns, {("a", "d"): True, ("b", "c"): False}) == {
        "a": 0,
        "b": 1,
        "d": 0,
        "c": 1,
        "e": 2,
    }
    nothing: Any = SimpleNamespace(datasets=())
    monkeypatch.setattr(graph_picture, "_edges", lambda _: ({"a": "a"}, {}))
    one = graph_picture.picture(nothing)
    assert one.height - 2 * graph_picture._MARGIN == graph_picture.BOX_HEIGHT
    assert one.width - 2 * graph_picture._MARGIN == graph_picture.BOX_WIDTH


def test_counts_that_are_not_there():
    """Another version may leave them out."""
    assert [history._count(value) for value in ("7", 7, None, "")] == [7, 7, 0, 0]


@pytest.mark.parametrize(
    ("technique", "batches", "rows"), [("ROW_BASED", 2, 5), ("NO_OP", 2, 0), ("ROW_BASED", 0, 0)]
)
def test_rows_that_a_refresh_wrote(technique: str, batches: int, rows: int):
    """Those of its last batch; one that came to nothing wrote none, whatever was written before."""
    written: Any = [SimpleNamespace(output_rows=number) for number in (4, 5)][:batches]
    result: Any = SimpleNamespace(technique=technique, reason="why")
    refresh = dataset_view._refresh(result, written)
    assert (refresh.technique, refresh.reason) == (technique, "why")
    assert refresh.rows == rows


def test_how_each_flow_stands():
    """As in the newest update that it took part in; one that left it out says nothing of it, unless no other is known."""

    def record(update: str, flow: str, state: str, number: int) -> dict[str, Any]:
        return {
            "id": f"{update}-{number}", "event_type": "flow_progress", "timestamp": datetime(2026, 1, 1, 0, number, tzinfo=UTC), "error": None,
            "origin": {"update_id": update, "flow_name": flow, "dataset_name": flow, "epoch": 0},
            "details": {"flow_progress": {"status": state}},
        }  # fmt: skip

    progress = [
        record("u1", "a", "RUNNING", 1), record("u1", "a", "COMPLETED", 2), record("u1", "b", "FAILED", 3),
        record("u2", "a", "EXCLUDED", 4), record("u2", "b", "RUNNING", 5), record("u2", "c", "EXCLUDED", 6),
    ]  # fmt: skip
    stands = {
        flow: (result.update_id, result.state) for flow, result in history._newest_results(progress).items()
    }
    assert stands == {"a": ("u1", "COMPLETED"), "b": ("u2", "RUNNING"), "c": ("u2", "EXCLUDED")}
