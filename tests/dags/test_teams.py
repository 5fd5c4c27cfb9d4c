"""Where Airflow has teams, none sees the pipelines of another."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.api_fastapi.core_api.security import get_user
from fastapi.testclient import TestClient
from tests.dags.pipeline_folder import write_pipeline

from headwater_airflow.page.routes import make_app

# Which DAGs Airflow knows, and whose they are.
OWNERS = {"good": "blue", "good_checks": "blue", "shared": None}
PIPELINES = ("good", "shared", "unregistered")
PAGES = ("", "/checkpoints", "/flows/bronze")


@pytest.fixture
def ask(roots, monkeypatch):
    """Ask for an address as a viewer of some teams, or in another role; gives the answer."""
    for name in PIPELINES:
        write_pipeline(roots / "pipelines" / name)
    manager = SimpleAuthManager()
    dags = SimpleNamespace(
        get_team_name=OWNERS.get, get_dagmodel=lambda dag_id: dag_id if dag_id in OWNERS else None
    )
    for module in ("headwater_airflow.page.access", "airflow.api_fastapi.core_api.security"):
        monkeypatch.setattr(f"{module}.get_auth_manager", lambda: manager)
        monkeypatch.setattr(f"{module}.DagModel", dags)
    monkeypatch.setenv("AIRFLOW__CORE__MULTI_TEAM", "True")
    app = make_app()
    client = TestClient(app)

    def answer(address, *teams, role="viewer"):
        user = SimpleAuthManagerUser(username="somebody", role=role, teams=list(teams))
        app.dependency_overrides[get_user] = lambda: user
        return client.get(address)

    return answer


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("dag", ["good", "good_repair", "good_maintenance", "good_backfill", "good_checks"])
def test_another_teams_pipeline(ask, dag, page):
    """Neither by its own DAG nor by one beside it, which Airflow may never have seen."""
    assert ask(f"/pipelines/{dag}{page}", "red").status_code == 403
    assert ask(f"/pipelines/{dag}{page}").status_code == 403
    assert ask(f"/pipelines/{dag}{page}", role="admin").status_code == 200


def test_ones_own(ask):
    """Its own team sees it as before, by any of its addresses."""
    for dag in ("good", "good_checks", "good_repair"):
        assert ask(f"/pipelines/{dag}", "blue").status_code == 200


def test_a_pipeline_that_airflow_does_not_know(ask):
    """It has no team yet: whoever sees all teams sees it, and nobody else."""
    assert ask("/pipelines/unregistered", "red").status_code == 403
    assert ask("/pipelines/unregistered", role="admin").status_code == 200


def test_a_dag_without_a_team(ask):
    """Every team sees it, as in Airflow itself."""
    assert ask("/pipelines/shared", "red").status_code == 200


def test_the_list(ask):
    """It has what one may see."""
    red, blue, admin = (
        ask("/", *teams, role=role).text
        for teams, role in ((["red"], "viewer"), (["blue"], "viewer"), ([], "admin"))
    )
    assert [name for name in PIPELINES if f"/pipelines/{name}" in red] == ["shared"]
    assert [name for name in PIPELINES if f"/pipelines/{name}" in blue] == ["good", "shared"]
    assert [name for name in PIPELINES if f"/pipelines/{name}" in admin] == list(PIPELINES)


def test_without_teams_nothing_changes(ask, monkeypatch):
    """A pipeline whose DAG is not registered is shown to who may read DAGs."""
    monkeypatch.setenv("AIRFLOW__CORE__MULTI_TEAM", "False")
    assert ask("/pipelines/unregistered", "red").status_code == 200
