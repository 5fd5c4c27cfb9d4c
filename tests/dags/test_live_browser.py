"""The page in a real browser, inside Airflow: it renders, in light and dark, and its button leads to the repair DAG."""

from __future__ import annotations

import httpx
import pytest
from tests.dags.browser import Browser, find_browser
from tests.dags.live_airflow import PASSWORD

from headwater.checkpoints.layout import flow_checkpoint

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(find_browser() is None, reason="needs Chromium: on PATH, or HEADWATER_BROWSER"),
]
FRAME = "document.querySelector('iframe')?.contentDocument?.querySelector('.graph .box')?.textContent"


@pytest.fixture(scope="module")
def browser(live_airflow, tmp_path_factory):
    """A browser that is logged in as a viewer."""
    login = {"username": "vera", "password": PASSWORD}
    token = httpx.post(f"{live_airflow.services.address}/auth/token", json=login).json()["access_token"]
    program = find_browser()
    assert program is not None
    session = Browser(program, tmp_path_factory.mktemp("browser"), live_airflow.services.address, token)
    yield session
    session.close()


def test_the_page_renders_in_light_and_dark(browser):
    """Graph, tables and sparklines are there, the page's own policy blocks none of it, and both colour schemes differ."""
    ready = "document.querySelectorAll('.graph .box').length"
    light = browser.visit("/headwater/pipelines/medallion", ready)
    dark = browser.visit("/headwater/pipelines/medallion", ready, dark=True)
    assert light["until"] == 3
    assert "silver" in light["text"]
    assert light["errors"] == dark["errors"] == []
    assert light["background"] != dark["background"]


def test_airflow_frames_it_as_a_tab(browser):
    """The tab *Pipeline* of the DAG shows the graph within Airflow's own interface."""
    assert "bronze" in browser.visit("/dags/medallion/plugin/pipeline", FRAME)["until"]


def test_a_sick_checkpoint_leads_to_the_repair_dag(browser, live_airflow):
    """The inspector shows condition and remedies; its button opens the repair DAG, where the form is."""
    state = live_airflow.folder / "storage" / "pipelines" / "medallion"
    offsets = flow_checkpoint(state, "silver", "silver").epoch_folder(0) / "offsets" / "0"
    whole = offsets.read_text()
    offsets.write_text("")
    try:
        button = "document.querySelector('.finding a.button')?.getAttribute('href')"
        page = browser.visit("/headwater/pipelines/medallion/checkpoints", button)
        assert "headwater repair medallion silver" in page["text"]
        assert page["until"] == "/dags/medallion_repair"
        shown = "document.body.innerText.includes('medallion_repair')"
        assert browser.visit(page["until"], shown)["until"]
    finally:
        offsets.write_text(whole)
