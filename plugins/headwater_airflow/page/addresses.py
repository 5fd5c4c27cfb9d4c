"""Where the page is served. Imports nothing of the web server: every process of Airflow loads the plugin."""

from __future__ import annotations

from urllib.parse import urlsplit

from airflow.configuration import conf

PREFIX = "/headwater"


def base_path() -> str:
    """The path below which Airflow is served: empty, or like ``/airflow``."""
    return urlsplit(str(conf.get("api", "base_url", fallback=""))).path.rstrip("/")
