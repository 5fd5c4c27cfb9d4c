"""The process of the page, which is asked for one pipeline again and again: python -m tests.benchmarks.processes.page_server 2000.

It prints its resident memory after each request, in MB, with the request's number; and the seconds of each.
"""

from __future__ import annotations

import json
import sys
import time
from types import SimpleNamespace
from unittest.mock import patch

import tests.dags.airflow_home  # noqa: F401 - before Airflow
from airflow.api_fastapi.core_api.security import get_user
from fastapi.testclient import TestClient
from tests.benchmarks.frame.process_memory import resident

from headwater_airflow.page.routes import make_app

ADDRESSES = ("/", "/pipelines/many", "/pipelines/many/flows/table_00", "/metrics")


def main(requests: int) -> None:
    """Ask as somebody who may read every DAG."""
    allowed = SimpleNamespace(is_authorized_dag=lambda **_: True, is_authorized_view=lambda **_: True)
    no_teams = SimpleNamespace(get_team_name=lambda _: None, get_dagmodel=lambda _: None)
    for module in ("headwater_airflow.page.access", "airflow.api_fastapi.core_api.security"):
        patch(f"{module}.get_auth_manager", lambda: allowed).start()
        patch(f"{module}.DagModel", no_teams).start()
    app = make_app()
    app.dependency_overrides[get_user] = lambda: SimpleNamespace(name="somebody")
    client = TestClient(app)
    memory, seconds = [(0, resident())], []
    for number in range(1, requests + 1):
        address = ADDRESSES[number % len(ADDRESSES)]
        began = time.monotonic()
        answer = client.get(address)
        if address == ADDRESSES[1]:
            seconds.append(time.monotonic() - began)
        assert answer.status_code == 200, answer.text[:500]
        assert "table_00" in answer.text or address == "/", answer.text[:500]
        memory.append((number, resident()))
    print(json.dumps({"memory": memory, "seconds": seconds}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
