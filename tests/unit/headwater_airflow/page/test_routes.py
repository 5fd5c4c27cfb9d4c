"""Which rights each address of the page asks for, before anything is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.api_fastapi.core_api.security import get_user
from fastapi import HTTPException
from fastapi.responses import HTMLResponse
from fastapi.testclient import TestClient

from headwater_airflow.page import access, routes
from headwater_airflow.page.projects import PipelineEntry

OF_ALL = ("/", "/metrics")
OF_ONE = tuple(f"/pipelines/shop{rest}" for rest in ("", "/flows/orders", "/checkpoints", "/advice"))


class Rights:
    """What the user has."""

    def __init__(self) -> None:
        self.menu = self.dag = True
        self.may_read = {"shop", "store"}


@pytest.fixture
def rights(monkeypatch: pytest.MonkeyPatch) -> Rights:
    """A user with every right."""
    mine = Rights()
    monkeypatch.setattr(routes, "may_read", lambda _, dag_id: dag_id in mine.may_read)
    return mine


@pytest.fixture
def client(rights: Rights, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """The page of a user who is logged in; ``shop`` is there, and what it shows is its address."""

    def need(right: str) -> Callable[[], None]:
        def check() -> None:
            if not getattr(rights, right):
                raise HTTPException(403, right)

        return check

    entries = [PipelineEntry("shop"), PipelineEntry("store"), PipelineEntry("secret")]
    monkeypatch.setattr(routes, "all_projects", lambda: entries)
    monkeypatch.setattr(routes, "project_of", lambda dag_id: entries[0] if dag_id == "shop" else None)
    monkeypatch.setattr(routes, "pipeline_view", lambda entry: entry)
    monkeypatch.setattr(routes, "samples", list)
    monkeypatch.setattr(routes, "as_text", lambda projects: f"{len(projects)} projects")
    monkeypatch.setattr(
        routes,
        "_page",
        lambda template, _, status=200, **more: HTMLResponse(
            ",".join([template, *(one.folder for one in more.get("views", ()))]), status
        ),
    )
    app = routes.make_app()
    app.dependency_overrides[get_user] = lambda: SimpleNamespace(name="somebody")
    app.dependency_overrides[access.MAY_SEE_PLUGINS.dependency] = need("menu")
    app.dependency_overrides[access.MAY_READ_DAG.dependency] = need("dag")
    with TestClient(app) as one:
        yield one


def test_who_may_read_everything_sees_it(client: TestClient):
    """Each address is there; a pipeline without a readable spec has a page of its own, and nothing below."""
    assert [client.get(address).status_code for address in (*OF_ALL, *OF_ONE)] == [
        200, 200, 200, 404, 404, 404,
    ]  # fmt: skip


def test_the_lists_need_the_menu_of_plugins(client: TestClient, rights: Rights):
    """Who may not use it sees neither all pipelines nor their figures, and one pipeline by its DAG."""
    rights.menu = False
    assert [client.get(address).status_code for address in OF_ALL] == [403, 403]
    assert client.get(OF_ONE[0]).status_code == 200


def test_the_pages_of_a_pipeline_need_its_dag(client: TestClient, rights: Rights):
    """Without the right to read the DAG that the address names, none of them is shown."""
    rights.dag = False
    assert {client.get(address).status_code for address in OF_ONE} == {403}
    assert client.get("/").status_code == 200


def test_the_pipelines_own_dag_decides_too(client: TestClient, rights: Rights):
    """An address may name a DAG beside it: who may not read the pipeline's own sees nothing, and is refused, not sent away."""
    rights.may_read = {"store"}
    assert {client.get(address).status_code for address in OF_ONE} == {403}


def test_lists_have_what_may_be_read_alone(client: TestClient, rights: Rights):
    """A pipeline whose DAG the user may not read is neither on the page nor in the figures."""
    assert client.get("/").text == "pipelines.html,shop,store"
    rights.may_read = {"store"}
    assert client.get("/").text == "pipelines.html,store"


def test_figures_are_of_what_may_be_read_alone(
    client: TestClient, rights: Rights, monkeypatch: pytest.MonkeyPatch
):
    """A pipeline whose spec can't be read has none; one whose DAG the user may not read shows none."""
    project: Any = SimpleNamespace(spec=SimpleNamespace(dag_id="shop"))
    other: Any = SimpleNamespace(spec=SimpleNamespace(dag_id="secret"))
    entries = [PipelineEntry("a", project), PipelineEntry("b", other), PipelineEntry("store")]
    monkeypatch.setattr(routes, "all_projects", lambda: entries)
    assert client.get("/metrics").text == "1 projects"
    rights.may_read = set()
    assert client.get("/metrics").text == "0 projects"


def test_nobody_sees_anything_without_a_login():
    """The net below every address, whatever is added to the page later."""
    app = routes.make_app()
    assert access.LOGGED_IN in app.router.dependencies
    assert access.LOGGED_IN.dependency is get_user


def test_names_in_addresses_are_names(client: TestClient):
    """What no DAG can be called is not looked for."""
    for name in (".hidden", "a%20b", "x" * 251):
        answer = client.get(f"/pipelines/{name}")
        assert (answer.status_code, answer.text) == (404, "no_pipeline.html")


@pytest.mark.parametrize(("flow", "status"), [("orders", 200), ("gone", 200), ("nothing", 404)])
def test_flows_that_have_a_page(client: TestClient, monkeypatch: pytest.MonkeyPatch, flow: str, status: int):
    """One that the pipeline has, before its first batch, too, and one that it has lost, as long as its batches are in the log."""
    view = SimpleNamespace(
        history=SimpleNamespace(batches={"gone": (1, 2)}), datasets=[SimpleNamespace(flows=("orders",))]
    )
    monkeypatch.setattr(routes, "_project", lambda *_: None)
    monkeypatch.setattr(routes, "pipeline_view", lambda _: view)
    assert client.get(f"/pipelines/shop/flows/{flow}").status_code == status
