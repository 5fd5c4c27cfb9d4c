"""One attempt of a task in a process of its own, which a test may kill: ``python attempt.py CONNECTION RUN``."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import tests.dags.airflow_home  # noqa: F401 - before Airflow

os.environ["AIRFLOW_CONN_SPARK_DEFAULT"] = sys.argv[1]

from headwater_airflow.operators.run_update import RunUpdateOperator

instance = SimpleNamespace(dag_id="shop", run_id=sys.argv[2], try_number=1, max_tries=3)
RunUpdateOperator(task_id="update", pipeline="shop").execute({"ti": instance, "params": {}})
