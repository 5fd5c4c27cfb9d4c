"""An Airflow of the tests' own: must be imported before anything of Airflow is."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
HOME = Path(tempfile.mkdtemp(prefix="headwater-airflow-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)

SETTINGS = {
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(CHECKOUT / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(CHECKOUT / "plugins"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{HOME}/airflow.db",
    "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}',
    "NO_COLOR": "1",
}
os.environ.update(SETTINGS)


@cache
def migrate() -> None:
    """Make the database, once in a session."""
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
