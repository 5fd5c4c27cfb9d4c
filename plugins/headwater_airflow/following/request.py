"""What names a request: one run of a DAG, over all the attempts that Airflow makes."""

from __future__ import annotations

import uuid

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "headwater:airflow")


def request_id(dag_id: str, run_id: str, part: str = "") -> str:
    """The id under which an update, and its retries, write to the event log.

    ``part``: what of the pipeline the request is about, where a run makes several (one submit per table).
    """
    return str(uuid.uuid5(_NAMESPACE, f"{dag_id}\0{run_id}\0{part}"))
