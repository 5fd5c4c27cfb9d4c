"""Which pipeline an address of the page leads to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.errors import InvalidSpec
from headwater.graph.conditions import PipelineIdTaken
from headwater_airflow.page import projects


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Folders with pipelines: the id of each, or why it can't be read."""
    there: dict[str, Any] = {"shop": "shop", "store": "store"}

    def opened(folder: str, *, alone: bool = False) -> Any:
        pipeline_id = there[folder]
        if isinstance(pipeline_id, Exception):
            raise pipeline_id
        if not alone and list(there.values()).index(pipeline_id) != list(there).index(folder):
            raise PipelineIdTaken("Another folder has it.")
        return SimpleNamespace(pipeline_id=pipeline_id, spec=SimpleNamespace(dag_id=pipeline_id))

    monkeypatch.setattr(projects, "pipeline_folders", lambda: list(there))
    monkeypatch.setattr(projects, "pipeline_project", opened)
    return there


@pytest.mark.parametrize("suffix", ["", "_checks", "_maintenance", "_backfill", "_repair"])
def test_each_dag_of_a_pipeline_leads_to_it(folders: dict[str, Any], suffix: str):
    """Its own DAG, and those beside it."""
    entry = projects.project_of(f"store{suffix}")
    assert entry is not None
    assert entry.folder == "store"


def test_a_dag_that_is_called_like_one_beside_another_is_its_own(folders: dict[str, Any]):
    """The whole id comes first; an id that no pipeline has leads nowhere."""
    folders["other"] = "shop_checks"
    entry = projects.project_of("shop_checks")
    assert entry is not None
    assert entry.folder == "other"
    assert projects.project_of("nothing") is None


def test_of_two_with_one_id_the_first_has_it(folders: dict[str, Any]):
    """The state of one is never shown as the other's: the second has its trouble instead."""
    folders["zebra"] = "shop"
    entry = projects.project_of("shop")
    assert entry is not None
    assert entry.folder == "shop"
    first, _, last = projects.all_projects()
    assert (first.trouble, last.project) == (None, None)
    assert "Another folder has it." in str(last.trouble)


def test_a_pipeline_that_cannot_be_read_is_there_by_its_folder(folders: dict[str, Any]):
    """With its trouble and where that is; the others are as they were."""
    folders["shop"] = InvalidSpec("It has no name.", where="shop/pipeline.yml:1")
    broken, well = projects.all_projects()
    assert (broken.dag_id, broken.project) == ("shop", None)
    assert str(broken.trouble).endswith("(shop/pipeline.yml:1)")
    assert well.trouble is None
