"""The page's addresses. All of them are read-only; each needs a login and permission to read the DAG.

Decision 0101.
"""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi import Path as PathParameter
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, PlainTextResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from headwater.checkpoints.listing import CheckpointEntry, list_checkpoints
from headwater.telemetry.exposition import CONTENT_TYPE, as_text, samples
from headwater_airflow.page import wording
from headwater_airflow.page.access import LOGGED_IN, MAY_READ_DAG, MAY_SEE_PLUGINS, may_read
from headwater_airflow.page.addresses import PREFIX, base_path
from headwater_airflow.page.advice import pipeline_advice
from headwater_airflow.page.diagnoses import diagnoses
from headwater_airflow.page.pipeline_view import pipeline_view, read_part
from headwater_airflow.page.projects import URL_NAME, PipelineEntry, all_projects, project_of

_REFRESH_SECONDS = 20
_threads = ThreadPoolExecutor(8, thread_name_prefix="headwater-request")
_POLICY = (
    "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
_templates = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=select_autoescape(default=True, default_for_string=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.globals.update(
    age=wording.age,
    ago=wording.ago,
    clock=wording.clock,
    percent=wording.percent,
    rows=wording.rows,
    size=wording.size,
)

Name = Annotated[str, PathParameter(pattern=URL_NAME)]


def make_app() -> FastAPI:
    """The application that Airflow mounts below ``/headwater``."""
    app = FastAPI(
        title="Headwater", dependencies=[LOGGED_IN], docs_url=None, redoc_url=None, openapi_url=None
    )
    app.add_api_route(
        "/", _of_its_own(pipelines), response_class=HTMLResponse, dependencies=[MAY_SEE_PLUGINS]
    )
    app.add_api_route(
        "/metrics", _of_its_own(metrics), response_class=PlainTextResponse, dependencies=[MAY_SEE_PLUGINS]
    )
    for path, handler in (
        ("/pipelines/{dag_id}", pipeline),
        ("/pipelines/{dag_id}/flows/{flow}", flow_batches),
        ("/pipelines/{dag_id}/checkpoints", checkpoints),
        ("/pipelines/{dag_id}/advice", advice),
    ):
        app.add_api_route(
            path, _of_its_own(handler), response_class=HTMLResponse, dependencies=[MAY_READ_DAG]
        )
    app.add_exception_handler(RequestValidationError, _not_a_name)
    return app


def _of_its_own(handler: Callable[..., Response]) -> Callable[..., Any]:
    """The handler in one of the page's own threads.

    Airflow's server has a few threads for all its own routes. A page is asked for again and again, and where a store or a broker does
    not answer each of them holds its thread for minutes: pages would soon hold all.
    """

    async def answer(**given: Any) -> Response:
        return await asyncio.get_running_loop().run_in_executor(_threads, partial(handler, **given))

    # As FastAPI reads it; not as a wrapper, which it would call like the handler itself.
    answer.__signature__ = inspect.signature(handler, eval_str=True)  # type: ignore[attr-defined]
    return answer


def pipelines(request: Request, user: Any = LOGGED_IN) -> HTMLResponse:
    """All pipelines whose DAG the user may read."""
    visible = [entry for entry in all_projects() if may_read(user, entry.dag_id)]
    return _page("pipelines.html", request, views=[pipeline_view(entry) for entry in visible])


def metrics(user: Any = LOGGED_IN) -> PlainTextResponse:
    """The figures of all pipelines whose DAG the user may read, for Prometheus."""
    visible = [entry.project for entry in all_projects() if may_read(user, entry.dag_id)]
    text = as_text(samples(project for project in visible if project is not None))
    return PlainTextResponse(text, headers={"Cache-Control": "no-store"}, media_type=CONTENT_TYPE)


def pipeline(request: Request, dag_id: Name, user: Any = LOGGED_IN) -> HTMLResponse:
    """One pipeline: its graph, its datasets, its updates."""
    visible = _visible(dag_id, user)
    if visible is None:
        return _page("no_pipeline.html", request, status=404, dag_id=dag_id)
    return _page("pipeline.html", request, view=pipeline_view(visible))


def flow_batches(request: Request, dag_id: Name, flow: Name, user: Any = LOGGED_IN) -> HTMLResponse:
    """The batches of a flow over time."""
    view = pipeline_view(_project(dag_id, user))
    batches = view.history.batches.get(flow, ())
    if not batches and flow not in {name for dataset in view.datasets for name in dataset.flows}:
        raise HTTPException(404, "There is no such flow.")
    return _page("flow.html", request, view=view, flow=flow, batches=batches[::-1])


def checkpoints(request: Request, dag_id: Name, user: Any = LOGGED_IN) -> HTMLResponse:
    """Every epoch of every flow's checkpoint."""
    pipeline_entry = _project(dag_id, user)
    assert pipeline_entry.project is not None
    nothing: list[CheckpointEntry] = []
    unread: list[str] = []
    state_folder = pipeline_entry.project.state_folder
    entries = read_part(lambda: list_checkpoints(state_folder), nothing, "The checkpoints", unread)
    view = pipeline_view(pipeline_entry)
    health = {(entry.dataset, entry.flow): entry for dataset in view.datasets for entry in dataset.health}
    findings, troubles = diagnoses(pipeline_entry.project)
    return _page(
        "checkpoints.html",
        request,
        view=view,
        entries=entries,
        health=health,
        findings=findings,
        # The view's own look at them may have met the same.
        doctor_troubles=[*(trouble for trouble in unread if trouble not in view.troubles), *troubles],
        repair=f"{base_path()}/dags/{view.dag_id}_repair",
    )


def advice(request: Request, dag_id: Name, user: Any = LOGGED_IN) -> HTMLResponse:
    """What to do about the pipeline, with the numbers that say so."""
    pipeline_entry = _project(dag_id, user)
    assert pipeline_entry.project is not None
    view = pipeline_view(pipeline_entry)
    findings, troubles = pipeline_advice(pipeline_entry.project, view.manifest)
    return _page("advice.html", request, view=view, findings=findings, advice_troubles=troubles)


def _visible(dag_id: str, user: Any) -> PipelineEntry | None:
    """The pipeline of a DAG. The address may name a DAG beside it that Airflow has never seen: the pipeline's own decides, too."""
    entry = project_of(dag_id)
    if entry is not None and not may_read(user, entry.dag_id):
        raise HTTPException(403, "Forbidden")
    return entry


def _project(dag_id: str, user: Any) -> PipelineEntry:
    entry = _visible(dag_id, user)
    if entry is None or entry.project is None:
        raise HTTPException(404, "There is no such pipeline.")
    return entry


async def _not_a_name(request: Request, _: Exception) -> HTMLResponse:
    return _page("no_pipeline.html", request, status=404, dag_id="")


def _page(template: str, request: Request, *, status: int = 200, **values: Any) -> HTMLResponse:
    nonce = secrets.token_urlsafe(16)
    text = _templates.get_template(template).render(
        base=base_path() + PREFIX, here=request.url.path, nonce=nonce, refresh=_REFRESH_SECONDS, **values
    )
    headers = {
        "Content-Security-Policy": _POLICY.format(nonce=nonce),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
    return HTMLResponse(text, status, headers)
