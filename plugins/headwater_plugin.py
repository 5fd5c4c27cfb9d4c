"""What Airflow loads by itself: the page of pipelines, in the Browse menu and as a tab of each DAG, and links from tasks to it."""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from headwater_airflow.page.addresses import PREFIX, base_path


class _Page:
    """The page as an ASGI application, made at its first request: schedulers, workers and triggerers never make one."""

    def __init__(self) -> None:
        self._application: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._application is None:
            from headwater_airflow.page.routes import make_app

            self._application = make_app()
        await self._application(scope, receive, send)


def _links() -> list[Any]:
    from headwater_airflow.links import PipelinePageLink, SparkUiLink

    return [PipelinePageLink(), SparkUiLink()]


class HeadwaterPlugin(AirflowPlugin):  # type: ignore[misc]  # Airflow's types are not followed
    """The page."""

    name = "headwater"
    operator_extra_links = _links()
    fastapi_apps = [{"app": _Page(), "url_prefix": PREFIX, "name": "Headwater"}]  # noqa: RUF012 - as Airflow reads it
    external_views = [  # noqa: RUF012
        {
            "name": "Pipelines",
            "href": f"{base_path()}{PREFIX}/",
            "destination": "nav",
            "category": "browse",
            "url_route": "pipelines",
        },
        {
            "name": "Pipeline",
            "href": f"{base_path()}{PREFIX}/pipelines/{{DAG_ID}}",
            "destination": "dag",
            "url_route": "pipeline",
        },
    ]
