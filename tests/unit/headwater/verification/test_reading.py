"""What a pipeline has set up for its operation is seen, also where one file makes the DAGs of all pipelines."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.graph.pipeline_project import open_project
from headwater.verification import reading
from headwater.verification.reading import _operation

DAY = 86400
CHECKOUT = Path(__file__).resolve().parents[4]
ALL = "from headwater_airflow.pipelines import pipeline_dags\nglobals().update(pipeline_dags())\n"


def test_the_shipped_pipeline(tmp_path: Path):
    """It has a check DAG, somebody to tell, and limits (features A058, A159)."""
    project = open_project(
        CHECKOUT / "jobs" / "pipelines" / "orders", storage=tmp_path / "storage", environment={}
    )
    operation = _operation(project)
    assert (operation.check_dag, operation.notified) == (True, True)
    assert operation.limits == ("lag_seconds", "freshness_minutes", "event_freshness")


CASES = {
    "all DAGs by one file": ("", (True, False)),
    "with a notifier": ("notifiers: [{notifier: a.B}]", (True, True)),
    "a notifier for failures only": ("notifiers: [{notifier: a.B, when: [failure]}]", (True, False)),
    "without checks": ("dags: [update]", (False, False)),
}


@pytest.mark.parametrize(("airflow", "expected"), CASES.values(), ids=list(CASES))
def test_a_folder_of_dags(tmp_path: Path, airflow: str, expected: tuple[bool, bool]):
    """The kinds of DAGs and the notifiers of pipeline.yml count."""
    folder = tmp_path / "pipelines" / "shop"
    folder.mkdir(parents=True)
    (folder / "pipeline.yml").write_text(f"name: shop\nairflow: {{{airflow}}}\n")
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "all.py").write_text(ALL)
    operation = _operation(open_project(folder, storage=tmp_path / "storage", environment={}))
    assert (operation.check_dag, operation.notified) == expected
    assert operation.limits == ()


def test_epochs_that_upkeep_would_have_removed(monkeypatch: pytest.MonkeyPatch):
    """Those that are not live and older than is kept; one of which no age is known is none."""
    ages = [(False, 8 * DAY), (True, 8 * DAY), (False, None), (False, 7 * DAY), (False, 7 * DAY + 1)]
    entries = [
        SimpleNamespace(flow="f", epoch=number, live=live, age=age) for number, (live, age) in enumerate(ages)
    ]
    monkeypatch.setattr(reading, "list_checkpoints", lambda _: entries)
    project: Any = SimpleNamespace(state_folder=None)
    assert reading._old_epochs(project, 7) == ("f, epoch 0", "f, epoch 4")
