"""The example of values for Airflow's chart fits the product and docker-compose.yaml; that the chart takes them is not tried."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from headwater.runtime.secret_values import names_a_secret
from headwater_airflow.driver.target import target_of

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def values() -> dict[str, Any]:
    """The file."""
    loaded: dict[str, Any] = yaml.safe_load(
        (CHECKOUT / "docs" / "deployment" / "airflow-values.yaml").read_text()
    )
    return loaded


@pytest.fixture(scope="module")
def environment(values: dict[str, Any]) -> dict[str, str]:
    """The variables of all services."""
    return {entry["name"]: entry["value"] for entry in values["env"]}


def test_the_variables_are_ours(environment: dict[str, str]):
    """Each is read by our code, and the roots and the pool are there, the pool as in the Compose file."""
    code = "\n".join(
        path.read_text() for floor in ("include", "plugins") for path in (CHECKOUT / floor).rglob("*.py")
    )
    ours = {name for name in environment if name.startswith("HEADWATER_")}
    assert ours >= {"HEADWATER_STORAGE", "HEADWATER_WAREHOUSE", "HEADWATER_POOL"}
    assert [name for name in ours if f'"{name}"' not in code] == []
    pool = re.search(r"HEADWATER_POOL: (\w+)", (CHECKOUT / "docker-compose.yaml").read_text())
    assert pool is not None
    assert environment["HEADWATER_POOL"] == pool[1]


def test_drivers_have_a_connection_that_is_supported(environment: dict[str, str]):
    """No task could run without it; Kubernetes as Spark's master is refused."""
    fields = json.loads(environment["AIRFLOW_CONN_SPARK_DEFAULT"])
    connection = SimpleNamespace(
        conn_type=fields["conn_type"], host=fields["host"], port=None, extra_dejson={}
    )
    target = target_of(connection)
    target.refuse_unsupported("the example")
    assert target.local


def test_no_secret_is_in_the_file(values: dict[str, Any], environment: dict[str, str]):
    """Secrets are named, and made elsewhere; the four that each service has in the Compose file are among them."""
    assert [name for name in environment if names_a_secret(name)] == []
    assert values["data"]["metadataSecretName"]
    for name in ("fernetKeySecretName", "apiSecretKeySecretName", "jwtSecretName"):
        assert values[name]
    assert not {"fernetKey", "apiSecretKey", "jwtSecret"} & set(values)


def test_more_than_one_scheduler(values: dict[str, Any]):
    """As `make test-team` has it."""
    assert values["scheduler"]["replicas"] == 2
