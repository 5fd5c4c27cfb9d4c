"""Which tables of a backfill have an event, and with which rows."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater_airflow.operators import announcement as module


def flow(dataset: str = "orders", state: str = "COMPLETED", **more: Any) -> dict[str, Any]:
    """A flow of a backfill's report."""
    return {
        "dataset": dataset,
        "state": state,
        "mode": "append",
        "output_rows": 0,
        "replaced_rows": 0,
        **more,
    }


@pytest.mark.parametrize(
    ("part", "retried", "is_announced"),
    [
        (flow(output_rows=3), False, True),
        (flow(replaced_rows=3), False, True),
        (flow(), False, False),
        (flow(state="FAILED", output_rows=3), False, False),
        (flow(state="DONE_BEFORE", output_rows=3), False, False),
        (flow(state="DONE_BEFORE", output_rows=3), True, True),
        (flow("Orders", output_rows=3), False, True),
        (flow("items", output_rows=3), False, False),
    ],
)
def test_a_table_of_which_a_row_is_another(part: dict[str, Any], retried: bool, is_announced: bool):
    """Rows that came or went; what a retry finds done may not have been announced by the attempt that did it."""
    verdict = module._filled("orders", {"flows": [part]}, retried=retried)
    assert (verdict is not None) is is_announced


def test_updates_after_a_load_are_announced_by_theirs():
    """A flow of the update that follows a load of history has no mode; its rows come with the next update of the DAG."""
    update = {key: value for key, value in flow(output_rows=3).items() if key != "mode"}
    assert module._filled("orders", {"flows": [update]}, retried=True) is None
    history = {"flows": [update], "history": [{"dataset": "orders", "rows": 9}]}
    verdict = module._filled("orders", history, retried=False)
    assert verdict is not None
    assert verdict.output_rows == 9
    nothing = {"history": [{"dataset": "orders", "rows": 0}]}
    assert module._filled("orders", nothing, retried=False) is None
    assert module._filled("orders", nothing, retried=True) is not None


def test_rows_are_summed_and_the_newest_version_counts():
    """Over the flows of the table."""
    parts = [
        flow(output_rows=3, input_rows=5, dropped_rows=2, version=7),
        flow(output_rows=4, input_rows=4, quarantined_rows=1, version=9),
        flow(output_rows=1, version=None),
    ]
    verdict = module._filled("orders", {"flows": parts}, retried=False)
    assert verdict is not None
    assert (verdict.output_rows, verdict.input_rows, verdict.dropped_rows) == (8, 9, 2)
    assert (verdict.quarantined_rows, verdict.version) == (1, 9)


def test_only_tables_that_were_filled_have_an_event(monkeypatch: pytest.MonkeyPatch):
    """The outlets of the task are theirs: Airflow makes an event of each outlet."""
    events: list[Any] = []
    monkeypatch.setattr(module, "announce", lambda _, __, *of: events.extend(of))
    task: Any = SimpleNamespace(outlets=["a", "b"])
    project: Any = SimpleNamespace(source_hash=lambda: "hash")
    report = {"flows": [flow(output_rows=3), flow("items")], "backfill_id": "b1"}
    tables: Any = [("items", "b"), ("orders", "a")]
    module.announce_backfill(task, {}, project, tables, report, retried=False)
    assert task.outlets == ["a"]
    ((verdict, more),) = events
    assert (verdict.output_rows, more) == (3, {"rules": {}, "spec_hash": "hash", "backfill_id": "b1"})


def test_a_table_that_the_pipeline_lost_has_no_event(monkeypatch: pytest.MonkeyPatch):
    """The others have theirs; without a manifest nothing is known of any."""
    events: list[Any] = []
    manifest: Any = SimpleNamespace(outputs=[SimpleNamespace(name="orders")])
    monkeypatch.setattr(module, "read_manifest", lambda _: manifest)
    monkeypatch.setattr(module.WatchedDataset, "of", lambda _, name: name)
    monkeypatch.setattr(
        module, "_verdict", lambda table, *_, **__: SimpleNamespace(update_id=f"u of {table}")
    )
    monkeypatch.setattr(module, "event_details", lambda *given: given[-1])
    monkeypatch.setattr(module, "announce", lambda _, __, *of: events.extend(of))
    silenced: list[Any] = []
    monkeypatch.setattr(module, "silence", silenced.append)
    task: Any = SimpleNamespace(outlets=["a", "b"], log=SimpleNamespace(warning=lambda *_: None))
    project: Any = SimpleNamespace(folder=Path("shop"))
    tables: Any = [("gone", "b"), ("orders", "a")]
    module.announce_tables(task, {}, project, "r1", tables, [])
    assert (task.outlets, [details for _, details in events]) == (["a"], ["u of orders"])
    manifest = None
    module.announce_tables(task, {}, project, "r1", tables, [])
    assert (silenced, len(events)) == ([task], 1)
