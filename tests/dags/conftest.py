from __future__ import annotations

import json
import sys
from contextlib import nullcontext

import pytest
import tests.dags.airflow_home as airflow_home  # before Airflow
from tests.dags.pipeline_folder import write_pipeline
from tests.postgres_server import PROGRAMS, running_postgres

# Over a minute each; they come first, so that no process of tests waits long for another at the end.
LONG = ("test_a_real_pipeline_is_operated.py", "test_orders_dag_runs.py")


# xdist reads the groups in a hook of the same name: marks that came after it would count for nothing.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """One process of tests starts the running Airflow, and has all tests that need it; others, if any, have the rest."""
    for item in items:
        if "live_airflow" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("live"))
    # What takes the services elsewhere comes after those who need them where they are.
    items.sort(
        key=lambda item: (item.path.name not in LONG, "moved_airflow" in getattr(item, "fixturenames", ()))
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """What the services of a running Airflow wrote last stands beside a failure: nobody can look for it later."""
    report = yield
    if report.failed and (airflow := getattr(item, "funcargs", {}).get("live_airflow")):
        report.sections.append(("services of Airflow", airflow.last_lines()))
    return report


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


class FakeDriver:
    """Says what the driver of each attempt will do, and hears how it was called."""

    def __init__(self, folder) -> None:
        self.file = folder / "driver.json"

    def will(self, *attempts):
        """What each attempt does: flows, exit, report, killed."""
        self.file.write_text(json.dumps(attempts))

    @property
    def calls(self):
        """What each attempt was given."""
        calls = self.file.with_suffix(".calls")
        return [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []


@pytest.fixture
def driver(roots, monkeypatch):
    """In place of `spark-submit` and Spark: a program that writes real events. No Java, no jars."""
    program = roots / "spark-submit"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tests.dags.fake_spark_submit "$@"\n')
    program.chmod(0o755)
    fake = FakeDriver(roots)
    monkeypatch.setenv("FAKE_DRIVER", str(fake.file))
    monkeypatch.setenv("PYTHONPATH", str(airflow_home.CHECKOUT))
    monkeypatch.setattr("headwater_airflow.driver.submission.spark_submit", lambda: str(program))
    monkeypatch.setattr("headwater_airflow.driver.submission.java_environment", dict)
    monkeypatch.setattr(
        "headwater_airflow.driver.submission.submit_conf",
        lambda conf, local: {"spark.test.local": str(local), **conf},
    )
    return fake


@pytest.fixture(scope="session")
def live_airflow(request, tmp_path_factory):
    """A running Airflow for all tests that need one; takes about a quarter of a minute to start.

    On Postgres where it is installed, as in production: Airflow makes no backfill while another of its services writes to SQLite.
    """
    from tests.dags.live_airflow import LiveAirflow
    from tests.dags.web_hook import WebHook

    from headwater_demo.processes import ProcessTable

    # Otherwise each process of tests would start one.
    if getattr(request.config.option, "loadgroup", False):
        needing = [item for item in request.session.items if "live_airflow" in item.fixturenames]
        assert all(item.nodeid.endswith("@live") for item in needing)
    if not PROGRAMS:
        request.getfixturevalue("airflow_database")
    folder = tmp_path_factory.mktemp("live")
    database = running_postgres() if PROGRAMS else nullcontext()
    with database as server, WebHook() as hook, ProcessTable(folder) as processes:
        airflow = LiveAirflow(folder, processes, hook, server)
        airflow.start()
        yield airflow
        airflow.end()
