"""The form of a run in a real browser: each parameter of the pipeline as what it is, and a required one that is missing holds the run up."""

from __future__ import annotations

import json

import httpx
import pytest
from tests.dags.browser import Browser, find_browser
from tests.dags.live_airflow import PASSWORD

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(find_browser() is None, reason="needs Chromium: on PATH, or HEADWATER_BROWSER"),
]
SUBMIT = "document.querySelector('[data-testid=trigger-dag-submit]')"
OPEN = (
    "(b => b && !b.disabled && (b.click(), true))(document.querySelector('[data-testid=trigger-dag-button]'))"
)
# What a person sees of each field: the kind of its input, and the value.
FIELDS = """(() => {
  const seen = {};
  for (const name of ["region", "day", "limit", "fast", "kind"]) {
    const field = document.querySelector(`input[name=element_${name}]`) || document.querySelector(`#element_${name}`);
    if (!field) return null;
    const shown = field.type == "checkbox" ? field.checked : (field.value || field.innerText || "");
    seen[name] = [field.getAttribute("role") || field.type || "choice", shown];
  }
  const choice = document.querySelector("#element_kind");
  seen.kind = ["choice", choice.innerText];
  return JSON.stringify(seen);
})()"""
# As a person types: React hears of a value that is set through the element's own property and told by an event.
TYPE = """(field => field && (Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, "north"),
  field.dispatchEvent(new Event("input", {bubbles: true})), true))(document.querySelector("#element_region"))"""


def test_the_form_has_the_parameters_and_waits_for_the_required_one(live_airflow, tmp_path_factory):
    """Text, date, number, switch and choice with their defaults; while the required one is empty the run can't be started."""
    login = {"username": "otto", "password": PASSWORD}
    token = httpx.post(f"{live_airflow.services.address}/auth/token", json=login).json()["access_token"]
    program = find_browser()
    assert program is not None
    browser = Browser(program, tmp_path_factory.mktemp("browser"), live_airflow.services.address, token)
    try:
        page = browser.visit("/dags/asked", OPEN, f"{SUBMIT}?.disabled", FIELDS)
        assert json.loads(page["until"]) == {
            "region": ["text", ""],
            "day": ["date", "2026-03-01"],
            "limit": ["spinbutton", "5"],
            "fast": ["checkbox", True],
            "kind": ["choice", "new"],
        }
        browser.visit("/dags/asked", OPEN, f"{SUBMIT}?.disabled", TYPE, f"!{SUBMIT}.disabled")
    finally:
        browser.close()
    assert live_airflow.client.runs("asked") == []
