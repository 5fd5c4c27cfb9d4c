"""Who may read a DAG, with and without teams."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView

from headwater_airflow.page import access


def asked(
    monkeypatch: pytest.MonkeyPatch, *, team: str | None, teams: bool = True, known: bool = True
) -> tuple[Any, ...]:
    """What Airflow is asked of a user's right to read the DAG ``shop``."""
    questions: list[tuple[Any, ...]] = []

    def is_authorized_dag(*, method: str, details: Any, user: str) -> int:
        questions.append((method, details.id, details.team_name, user))
        return 0

    models = SimpleNamespace(
        get_team_name=lambda _: team, get_dagmodel=lambda _: SimpleNamespace() if known else None
    )
    monkeypatch.setattr(access, "DagModel", models)
    monkeypatch.setattr(access, "_has_teams", lambda: teams)
    monkeypatch.setattr(
        access, "get_auth_manager", lambda: SimpleNamespace(is_authorized_dag=is_authorized_dag)
    )
    assert access.may_read("somebody", "shop") is False
    (question,) = questions
    return question


def test_a_dag_is_asked_for_with_its_team(monkeypatch: pytest.MonkeyPatch):
    """Reading is what is asked for, in the name of the team that owns the DAG."""
    assert asked(monkeypatch, team="sales") == ("GET", "shop", "sales", "somebody")


def test_a_dag_of_no_team(monkeypatch: pytest.MonkeyPatch):
    """One that Airflow knows belongs to all; so does one that it does not know yet, where there are no teams."""
    assert asked(monkeypatch, team=None)[2] is None
    assert asked(monkeypatch, team=None, teams=False, known=False)[2] is None


def test_a_dag_that_is_not_known_yet_is_nobodys_where_there_are_teams(monkeypatch: pytest.MonkeyPatch):
    """It has no team that could be asked for, and must not be read by all: no team has the name that is asked for."""
    team = asked(monkeypatch, team=None, known=False)[2]
    assert team is not None
    assert not team.isidentifier()


def test_what_the_addresses_ask_for():
    """Reading, and no more, of the DAG; and the menu of plugins, not another one."""
    of_dag = inspect.getclosurevars(access.MAY_READ_DAG.dependency).nonlocals
    of_menu = inspect.getclosurevars(access.MAY_SEE_PLUGINS.dependency).nonlocals
    assert (of_dag["method"], of_dag.get("access_entity")) == ("GET", None)
    assert of_menu["access_view"] is AccessView.PLUGINS
