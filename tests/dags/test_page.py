"""The page of pipelines: what it shows of what is on disk, and how it says what it can't show."""

from __future__ import annotations

import asyncio
import html
import re
import shutil
import statistics
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from airflow.api_fastapi.core_api.security import get_user
from anyio.to_thread import current_default_thread_limiter
from fastapi.testclient import TestClient
from httpx import ASGITransport, AsyncClient
from tests.dags.observed_pipeline import many_tables, tell_batch, write_observed_pipeline
from tests.dags.pipeline_folder import UpdateLog, write_pipeline

from headwater.checkpoints.layout import flow_checkpoint
from headwater.definitions.expectation import ViolationAction
from headwater.errors import FlowFailed
from headwater.event_log.details import FlowStatus, UpdateState, create_update, operation_progress
from headwater.event_log.writer import EventLogWriter
from headwater.graph.manifest import FILE_NAME, SourceEntry, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.storage.conditions import StoreUnreachable
from headwater_airflow.page.graph_picture import picture
from headwater_airflow.page.routes import make_app
from headwater_airflow.page.sparkline import points


@pytest.fixture
def page(roots, monkeypatch):
    """Ask for an address of the page as somebody who may read every DAG; gives its text."""
    allowed = SimpleNamespace(is_authorized_dag=lambda **_: True, is_authorized_view=lambda **_: True)
    for module in ("headwater_airflow.page.access", "airflow.api_fastapi.core_api.security"):
        monkeypatch.setattr(f"{module}.get_auth_manager", lambda: allowed)
    no_teams = SimpleNamespace(get_team_name=lambda _: None, get_dagmodel=lambda _: None)
    for module in ("headwater_airflow.page.access", "airflow.api_fastapi.core_api.security"):
        monkeypatch.setattr(f"{module}.DagModel", no_teams)
    app = make_app()
    app.dependency_overrides[get_user] = lambda: SimpleNamespace(name="somebody")
    client = TestClient(app)

    def ask(address="/pipelines/medallion", status=200):
        answer = client.get(address)
        assert answer.status_code == status, answer.text[:500]
        ask.headers = answer.headers
        return answer.text

    ask.app = app
    return ask


@pytest.fixture
def observed(roots):
    """The pipeline `medallion` after an update; its folder of state."""
    return write_observed_pipeline(roots)


def words(text):
    """What a reader sees: no marks, no blanks in a row."""
    body = text[text.index("<main>") :]
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", body).split()))


def test_the_list_has_every_pipeline_with_its_newest_update(page, observed, roots):
    """One that has not run, and one whose spec is broken, stand beside the others."""
    write_pipeline(roots / "pipelines" / "idle")
    write_pipeline(roots / "pipelines" / "wrong")
    (roots / "pipelines" / "wrong" / "pipeline.yml").write_text("name: wrong\nschedul: x\n")
    (roots / "pipelines" / "no pipeline").mkdir()
    shown = words(page("/"))
    assert re.search(r"medallion completed \d+ s ago \d+ s 3 0 0 \w+, \d+ s 9", shown)
    assert "idle not run yet" in shown
    assert "wrong broken" in shown
    assert "schedul" in shown
    assert "no pipeline " not in shown


def test_figures_are_those_of_pipelines_that_may_be_read(page, observed, monkeypatch):
    """Prometheus gets what its user may see, and no word of the others."""
    assert 'headwater_pipeline_readable{pipeline="medallion"} 1.0' in page("/metrics")
    monkeypatch.setattr("headwater_airflow.page.routes.may_read", lambda user, dag_id: dag_id != "medallion")
    assert "medallion" not in page("/metrics")


def test_a_list_without_pipelines_says_how_to_make_one(page):
    """Instead of an empty table."""
    assert "python -m headwater init" in page("/")


def test_a_pipeline_shows_each_dataset(page, observed):
    """State, age, backlog, throughput, rules, quarantine and checkpoint, and the graph."""
    text = page()
    shown = words(text)
    assert re.search(
        r"silver streaming table · batches completed \d+ s old version 0 none 92.3 % positive 3 3 healthy",
        shown,
    )
    assert "bronze streaming table" in shown
    assert "GROUP_AGGREGATE, 14 rows: it only grew" in shown
    assert "7 rows at the last batch" in shown
    assert text.count('class="box completed"') == 3
    assert text.count("<polyline") == 3
    assert text.count("<path d=") == 2


def test_a_flows_batches_are_listed_newest_first(page, observed):
    """With rows, seconds and what was left to read."""
    shown = words(page("/pipelines/medallion/flows/bronze"))
    assert [int(batch) for batch in re.findall(r"0 (\d) \d\d \d\d 1 1 1\.2 7", shown)] == [2, 1, 0]
    page("/pipelines/medallion/flows/nothing", 404)


def test_the_inspector_shows_epochs_and_positions(page, observed):
    """Of every flow, with what is wrong with one."""
    (flow_checkpoint(observed, "silver", "silver").epoch_folder(0) / "offsets" / "0").write_text("")
    shown = words(page("/pipelines/medallion/checkpoints"))
    assert "bronze bronze 0 healthy 0" in shown
    assert "files up to 0" in shown
    assert "silver silver 0 sick" in shown
    assert "the file is empty" in shown
    # The doctor's finding, with remedies and their cost, and the way to the form that carries one out.
    assert "silver: OFFSETS_" in shown or "silver: CHECKPOINT_" in shown
    assert "headwater repair medallion silver --action" in shown
    assert 'href="/dags/medallion_repair" target="_top"' in page("/pipelines/medallion/checkpoints")


def test_advice_stands_on_a_page_of_its_own(page, observed, roots):
    """Findings with numbers, remedies, what to write and what it costs; without any it says so; names are escaped."""
    address = "/pipelines/medallion/advice"
    assert 'href="/headwater/pipelines/medallion/advice"' in page()
    shown = words(page(address))
    assert "bronze: NO_QUARANTINE" in shown
    assert "3 rows were dropped in the newest batches" in shown
    assert (
        "@dp.expect_or_quarantine('positive', 'amount > 0') (instead of @dp.expect_or_drop('positive', ...))"
        in shown
    )
    assert "a quarantine table, and part of a pass over the batch" in shown
    folder = roots / "pipelines" / "medallion"
    manifest = read_manifest(folder / FILE_NAME)
    sharp = [
        rule.model_copy(update={"name": "<b>"})
        for entry in manifest.datasets[:1]
        for rule in entry.expectations
    ]
    kept = [
        rule.model_copy(update={"action": ViolationAction.QUARANTINE})
        for entry in manifest.datasets[:1]
        for rule in entry.expectations
    ]
    for rules, wanted in ((sharp, "&lt;b&gt;"), (kept, "Nothing to advise.")):
        datasets = tuple(
            entry.model_copy(update={"expectations": tuple(rules)}) for entry in manifest.datasets
        )
        (folder / FILE_NAME).write_text(manifest.model_copy(update={"datasets": datasets}).to_json())
        text = page(address)
        assert wanted in text
        assert "<b>" not in text
    (observed / "system" / "events" / "_delta_log" / f"{0:020d}.json").write_text("{")
    assert "There is no advice:" in words(page(address))
    page("/pipelines/nothing/advice", 404)


def test_a_failed_table_shows_its_own_error(page, observed):
    """In red, in the graph too; an update that runs on shows as running."""
    log = UpdateLog(observed, "request-2", "update-2")
    log.update(UpdateState.RUNNING)
    log.flow("silver", FlowStatus.FAILED, error=FlowFailed("Bad <cast> of amount."), will_retry=False)
    log.close()
    text = page()
    assert "Bad &lt;cast&gt; of amount." in text
    assert 'class="box failed"' in text
    assert '<span class="badge running">running</span>' in text


def test_a_continuous_update_shows_since_when_it_runs(page, observed, monkeypatch):
    """Also when its first records are further back than the page reads, and nothing but signs of life has come for long."""
    monkeypatch.setattr("headwater_airflow.page.history._RECORDS", 4)
    log = UpdateLog(observed, "request-2", "update-2")
    log.writer.emit("create_update", "begun", details=create_update())
    log.update(UpdateState.RUNNING)
    for batch in range(3):
        tell_batch(log, "bronze", batch + 3, rows=5)
    log.writer.emit("operation_progress", "alive", details=operation_progress("CONTINUOUS", "RUNNING", None))
    log.close()
    shown = words(page())
    assert re.search(r"Running for \S+ Datasets|Running for [\d.]+ ?s", shown), shown[:400]
    assert "update-2" in shown
    assert "last batch" in shown
    assert "Took" not in shown.partition("Datasets")[0]


def test_what_cant_be_read_is_said_and_the_rest_is_shown(page, observed, roots):
    """A broken event log, a table that is gone, a broken manifest: never a page of Python."""
    shutil.rmtree(roots / "warehouse" / "shop" / "gold")
    shown = words(page())
    assert "its table is not there any more" in shown
    (observed / "system" / "events" / "_delta_log" / f"{99:020d}.json").write_text("{")
    for file in (observed / "system" / "events" / "_delta_log").iterdir():
        file.write_text("{")
    shown = words(page())
    assert "The event log can't be read" in shown
    assert "silver streaming table" in shown
    (roots / "pipelines" / "medallion" / FILE_NAME).write_text("{")
    assert "The manifest can't be read: manifest.json is not a manifest" in words(page())


def test_what_is_out_of_date_is_said(page, observed, roots, monkeypatch):
    """Sources that changed since, and an update whose driver has not written for long."""
    (roots / "pipelines" / "medallion" / "transformations" / "tables.py").write_text("# changed\n")
    assert "The sources have changed since" in words(page())
    log = UpdateLog(observed, "request-2", "update-2")
    log.update(UpdateState.RUNNING)
    log.close()

    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(minutes=11)

    monkeypatch.setattr("headwater_airflow.page.pipeline_view.datetime", Later)
    shown = words(page())
    assert "has not written a record for 10 minutes" in shown
    assert "no sign of life" in shown


def test_a_pipeline_that_never_ran_says_so(page, roots):
    """With the graph, if a manifest is committed; without, it says what is missing."""
    folder = write_pipeline(roots / "pipelines" / "medallion")
    shown = words(page())
    assert "No update has run yet" in shown
    assert "silver streaming table" in shown
    assert "new, no data yet" in shown
    assert "There is no checkpoint yet" in words(page("/pipelines/medallion/checkpoints"))
    assert "no batch of this flow yet" in words(page("/pipelines/medallion/flows/silver"))
    (folder / FILE_NAME).unlink()
    assert "The graph is not known yet" in words(page())


def test_a_view_that_is_not_stored_is_never_behind(page, roots):
    """It has no data, no backlog and no checkpoint of its own: those who read it have."""
    write_pipeline(
        roots / "pipelines" / "medallion",
        {"bronze": (), "clicks": ("bronze",)},
        kinds={"clicks": "temporary_view"},
    )
    assert re.search(r"clicks temporary view · batches – – – – no rules 0 0 –", words(page()))


def test_the_tab_of_a_check_dag_shows_its_pipeline(page, observed):
    """And that of any other DAG says that it has none."""
    assert page("/pipelines/medallion_checks").count("<polyline") == 3
    assert "not made from a pipeline" in page("/pipelines/some.other-dag", 404)


def test_names_in_addresses_are_plain(page):
    """Nothing else reaches a path or the page."""
    for address in ("/pipelines/{}", "/pipelines/{}/checkpoints", "/pipelines/medallion/flows/{}"):
        for name in ("%2e%2e", "a b", "x%00", "-x", "x" * 129, "%3Cscript%3E", "ä"):
            assert "<script>" not in page(address.format(name), 404)


def test_nothing_of_the_page_comes_from_elsewhere(page, observed):
    """A policy that allows only what carries this answer's nonce; not stored, framed by Airflow only."""
    nonces = set()
    for _ in range(2):
        text = page()
        policy = page.headers["content-security-policy"]
        nonces.add(re.search(r"script-src 'nonce-([^']+)'", policy)[1])
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'self'" in policy
        assert page.headers["cache-control"] == "no-store"
        assert "http://" not in text.replace("http-equiv", "")
        assert "style=" not in text
    assert len(nonces) == 2


def test_no_secret_is_on_any_page(page, observed, roots):
    """Not of the configuration, of a source's options or path, of a sink, of the environment."""
    folder = roots / "pipelines" / "medallion"
    spec = folder / "pipeline.yml"
    spec.write_text(spec.read_text() + "configuration: {db_password: canary-1}\nspark: {spark.x: canary-2}\n")
    manifest = read_manifest(folder / FILE_NAME)
    source = SourceEntry(
        kind="other",
        streaming=True,
        format="jdbc",
        path="jdbc:postgresql://user:canary-3@host",
        options={"password": "canary-4"},
    )
    flows = (manifest.flows[0].model_copy(update={"sources": (source,)}), *manifest.flows[1:])
    (folder / FILE_NAME).write_text(manifest.model_copy(update={"flows": flows}).to_json())
    for address in (
        "/",
        "/pipelines/medallion",
        "/pipelines/medallion/checkpoints",
        "/pipelines/medallion/flows/bronze",
    ):
        text = page(address)
        assert "medallion" in text
        assert "canary" not in text


def test_the_cost_of_a_page_grows_with_its_tables(page, roots, monkeypatch):
    """Ten times the tables, with 30 batches of each in the log, take less than twenty times as long, and not a hundred times: medians of
    five answers, after the first, in this process's own time.
    """
    # Other tests of this process may have imported it.
    for module in [module for module in sys.modules if module.partition(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, module)
    medians = {}
    for count in (5, 50):
        name = f"wide_{count}"
        write_observed_pipeline(roots, name, many_tables(count), batches=30)
        assert page(f"/pipelines/{name}").count('class="box completed"') == count
        times = []
        for _ in range(5):
            # What others do on the machine meanwhile says nothing of the page.
            started = time.process_time()
            page(f"/pipelines/{name}")
            times.append(time.process_time() - started)
        medians[count] = statistics.median(times)
        print(f"{count} tables: {medians[count] * 1000:.0f} ms, {[round(t * 1000) for t in times]}")
    assert medians[50] < 20 * medians[5]
    assert "pyspark" not in sys.modules


def test_boxes_stand_right_of_what_they_read(medallion, roots):
    """And no two stand in one place."""
    write_pipeline(roots / "pipelines" / "wide", many_tables(50))
    drawn = picture(read_manifest(roots / "pipelines" / "wide" / FILE_NAME))
    places = {(box.x, box.y) for box in drawn.boxes}
    column = {box.key: box.x for box in drawn.boxes}
    assert len(places) == 50
    for name, reads in many_tables(50).items():
        assert all(column[name] > column[start] for start in reads)
    assert max(x for x, _ in places) < drawn.width
    assert max(y for _, y in places) < drawn.height


def test_names_that_begin_alike_are_told_apart_in_the_graph(medallion, roots):
    """A name that is too long for its box loses its middle."""
    names = [f"orders_of_the_last_quarter_{number}" for number in range(3)]
    write_pipeline(roots / "pipelines" / "wide", dict.fromkeys(names, ()))
    drawn = picture(read_manifest(roots / "pipelines" / "wide" / FILE_NAME))
    assert [box.label for box in drawn.boxes] == [f"orders_of_th…t_quarter_{number}" for number in range(3)]


def test_a_line_of_one_value_is_no_line():
    """Two are, from 0 at the bottom to the highest at the top; all zeros are a flat line."""
    assert points([5]) == ""
    assert points([0, 10], 10, 24) == "0.0,22.0 10.0,2.0"
    assert points([0, 0], 10, 24) == "0.0,22.0 10.0,22.0"


def test_the_plugin_costs_other_processes_nothing():
    """Schedulers, workers and triggerers load it: neither the web server nor the page is imported for that."""
    import subprocess

    code = (
        "import sys, headwater_plugin as p;"
        "assert p.HeadwaterPlugin.external_views[1]['href'] == '/headwater/pipelines/{DAG_ID}';"
        "sys.exit('fastapi' in sys.modules or 'headwater_airflow.page.routes' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], env=_environment(), check=False).returncode == 0


def _environment():
    import os

    from tests.dags.airflow_home import CHECKOUT

    floors = os.pathsep.join(str(CHECKOUT / floor) for floor in ("include", "plugins"))
    return {**os.environ, "PYTHONPATH": floors}


def test_times_are_in_utc():
    """Whatever zone the log's moments carry."""
    from headwater_airflow.page.wording import age, clock, percent, rows

    assert clock(datetime(2026, 1, 1, 12, tzinfo=UTC)) == "2026-01-01 12:00:00"
    assert (age(None), age(59.9), age(3600), age(200000)) == ("–", "60 s", "60 min", "2.3 d")
    assert (percent(1.0), percent(0.99999), percent(None)) == ("100 %", "99.9 %", "–")
    assert rows(1234567) == "1\u202f234\u202f567"


def test_one_pipelines_trouble_is_not_that_of_the_list(page, observed, roots, monkeypatch):
    """A source that can't be read, a store that does not answer: each is said at its pipeline, and all others are shown."""
    write_pipeline(roots / "pipelines" / "idle")
    real = PipelineProject.source_hash

    def unreadable(project):
        if project.pipeline_id == "idle":
            raise PermissionError(13, "Permission denied")
        return real(project)

    def away(place):
        raise StoreUnreachable("The store does not answer.")

    monkeypatch.setattr(PipelineProject, "source_hash", unreadable)
    shown = words(page("/"))
    assert "idle not run yet The sources can't be read (PermissionError)" in shown
    assert "medallion completed" in shown
    monkeypatch.setattr("headwater_airflow.page.pipeline_view.known_homes", away)
    monkeypatch.setattr("headwater_airflow.page.routes.list_checkpoints", away)
    assert "The store does not answer." in words(page("/"))
    assert "The checkpoints can't be read: The store does not answer." in words(
        page("/pipelines/medallion/checkpoints")
    )


@pytest.mark.parametrize(
    ("kind", "details"),
    [
        ("update_progress", {"update_progress": {"state": "PAUSED"}}),
        ("create_update", {"create_update": {"parameters": {"day": 1}}}),
        ("flow_progress", {"flow_progress": {"status": "RUNNING", "metrics": {"num_input_rows": 1, "backlog_records": "x"}}}),
        ("flow_progress", {"flow_progress": {"status": "RUNNING", "data_quality": {"expectations": ["x"]}}}),
    ],
)  # fmt: skip
def test_records_of_another_version_take_no_page_away(page, observed, roots, kind, details):
    """A log with states and values that this version does not know: its pipeline is there, and so are all others, and their figures."""
    write_pipeline(roots / "pipelines" / "idle")
    with EventLogWriter(observed, "medallion", "medallion", "later", "r") as log:
        log.emit(kind, "m", flow="bronze", dataset="bronze", epoch=0, details=details)
    for address in ("/", "/pipelines/medallion"):
        assert "medallion" in words(page(address))
    assert "idle not run yet" in words(page("/"))
    assert 'headwater_pipeline_readable{pipeline="idle"} 1.0' in page("/metrics")


def test_pages_that_hang_leave_airflow_its_threads(page, observed, monkeypatch):
    """Many pages over a store that does not answer: Airflow's own routes, which share one pool of threads, go on."""
    answered = threading.Event()

    def hang(_):
        answered.wait(20)
        raise StoreUnreachable("The store does not answer.")

    monkeypatch.setattr("headwater_airflow.page.pipeline_view.observed_manifest", hang)

    async def ask():
        async with AsyncClient(transport=ASGITransport(page.app), base_url="http://test") as client:
            pages = [asyncio.create_task(client.get("/pipelines/medallion")) for _ in range(60)]
            await asyncio.sleep(2)
            free = current_default_thread_limiter().available_tokens
            answered.set()
            return free, {answer.status_code for answer in await asyncio.gather(*pages)}

    free, states = asyncio.run(ask())
    assert states == {200}
    assert free > 0


def test_a_long_name_has_a_page(page, observed, roots):
    """The DAGs beside one with the longest id have a word more, and flows are named by their tables, dots and all."""
    write_pipeline(roots / "pipelines" / "long", airflow=f"{{dag_id: {'d' * 128}}}", datasets={"a": ()})
    assert "No update has run yet" in words(page(f"/pipelines/{'d' * 128}_maintenance"))
