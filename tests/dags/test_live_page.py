"""The page in a running Airflow: who gets what, and where it is found."""

from __future__ import annotations

import httpx
import pytest
from tests.dags.live_airflow import PASSWORD, USERS

from headwater_airflow.page.addresses import PREFIX
from headwater_airflow.page.routes import make_app

pytestmark = pytest.mark.timeout(300)
# Every address that the page has, so that none is added unguarded.
ROUTES = {route.path: sorted(route.methods) for route in make_app().routes}
ADDRESSES = [PREFIX + path.replace("{dag_id}", "medallion").replace("{flow}", "silver") for path in ROUTES]


@pytest.fixture(scope="module")
def browsers(live_airflow):
    """A client for each user, logged in with a cookie as a browser is; `None` is somebody who is not."""
    address = live_airflow.services.address
    clients = {None: httpx.Client(base_url=address)}
    for user in USERS:
        answer = httpx.post(f"{address}/auth/token", json={"username": user, "password": PASSWORD})
        clients[user] = httpx.Client(base_url=address, cookies={"_token": answer.json()["access_token"]})
    yield clients
    for client in clients.values():
        client.close()


def test_the_page_has_routes_that_only_read():
    """All of them answer GET and nothing else."""
    assert len(ROUTES) >= 4
    assert all(methods == ["GET"] for methods in ROUTES.values())


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_route_is_guarded(browsers, address):
    """401 without a login, 403 without the right to read the DAG; a viewer sees it, and can't post to it."""
    assert browsers[None].get(address).status_code == 401
    assert browsers["nora"].get(address).status_code == 403
    answer = browsers["vera"].get(address)
    assert answer.status_code == 200
    assert "medallion" in answer.text
    assert browsers["vera"].post(address).status_code == 405
    assert browsers[None].get(address, headers={"Authorization": "Bearer x.y.z"}).status_code in (401, 403)


@pytest.mark.parametrize("address", ["/docs", "/redoc", "/openapi.json", "/style.css"])
def test_nothing_else_is_served_below_it(browsers, address):
    """No documentation of routes, no files."""
    assert browsers["vera"].get(f"{PREFIX}{address}").status_code in (404, 405)


def test_a_forbidden_name_does_not_tell_what_exists(browsers):
    """Without the right, the answer is the same whether there is such a pipeline or not."""
    for dag_id in ("medallion", "nothing"):
        assert browsers["nora"].get(f"{PREFIX}/pipelines/{dag_id}").status_code == 403
    assert browsers[None].get(f"{PREFIX}/pipelines/nothing").status_code == 401


def test_airflow_offers_the_page(browsers):
    """In the Browse menu and as a tab of each DAG; and the plugin was loaded without an error."""
    plugins = browsers["admin"].get("/api/v2/plugins").json()["plugins"]
    (found,) = [plugin for plugin in plugins if plugin["name"] == "headwater"]
    views = {view["destination"]: view for view in found["external_views"]}
    assert views["nav"]["href"] == "/headwater/"
    assert views["dag"]["href"] == "/headwater/pipelines/{DAG_ID}"
    assert browsers["admin"].get("/api/v2/plugins/importErrors").json()["total_entries"] == 0
