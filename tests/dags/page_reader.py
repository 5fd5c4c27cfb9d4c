"""Reads addresses of the page as a process of its own: the app of the plugin, asked by somebody who may read every DAG.

``python -m tests.dags.page_reader ADDRESS...`` prints JSON: for each address its status, its policy and its text.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from unittest.mock import patch

import tests.dags.airflow_home as airflow_home  # before Airflow


def main(addresses: list[str]) -> None:
    """Ask for each address."""
    assert airflow_home.HOME.is_dir()
    from airflow.api_fastapi.core_api.security import get_user
    from fastapi.testclient import TestClient

    from headwater_airflow.page.routes import make_app

    allowed = SimpleNamespace(is_authorized_dag=lambda **_: True, is_authorized_view=lambda **_: True)
    no_teams = SimpleNamespace(get_team_name=lambda _: None, get_dagmodel=lambda _: None)
    for module in ("headwater_airflow.page.access", "airflow.api_fastapi.core_api.security"):
        patch(f"{module}.get_auth_manager", lambda: allowed).start()
        patch(f"{module}.DagModel", no_teams).start()
    app = make_app()
    app.dependency_overrides[get_user] = lambda: SimpleNamespace(name="somebody")
    client = TestClient(app)
    answers = {address: client.get(address) for address in addresses}
    shown = {
        address: {
            "status": answer.status_code,
            "policy": answer.headers.get("content-security-policy", ""),
            "text": answer.text,
        }
        for address, answer in answers.items()
    }
    print("\n" + json.dumps(shown))


if __name__ == "__main__":
    main(sys.argv[1:])
