from __future__ import annotations

import pytest

import tests.dags.airflow_home as airflow_home  # before Airflow
from tests.dags.pipeline_folder import write_pipeline


@pytest.fixture(scope="session")
def airflow_database():
    """Airflow's database, made once."""
    airflow_home.migrate()
    return airflow_home.HOME


@pytest.fixture
def roots(tmp_path, monkeypatch):
    """Folders of pipelines, storage and warehouse that are this test's own."""
    for name in ("pipelines", "storage", "warehouse"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(f"HEADWATER_{name.upper()}", str(tmp_path / name))
    monkeypatch.setenv("HEADWATER_HOME", str(airflow_home.CHECKOUT))
    return tmp_path


@pytest.fixture
def medallion(roots):
    """A pipeline of three tables, one reading the other, and its folder of state."""
    write_pipeline(roots / "pipelines" / "medallion")
    return roots / "storage" / "pipelines" / "medallion"
