from __future__ import annotations

import tests.dags.airflow_home  # noqa: F401 - before Airflow
