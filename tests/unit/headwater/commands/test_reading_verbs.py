"""``status``, ``lag``, ``events``, ``checkpoints`` and ``graph``, for people and for programs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from headwater.commands.command_line import main
from headwater.definitions.dataset import DatasetKind
from headwater.definitions.source import SourceKind
from headwater.event_log import details
from headwater.event_log.writer import EventLogWriter
from headwater.graph.manifest import DatasetEntry, FlowEntry, Manifest, SourceEntry
from headwater.graph.mermaid import mermaid
from headwater.incremental.techniques import Planned, Technique

VERBS = ["status", "lag", "events", "checkpoints"]


def call(done, capsys, verb, *more):
    project = done.project
    argv = [
        verb,
        str(project.folder),
        f"--storage={project.storage}",
        f"--warehouse={project.warehouse}",
        *more,
    ]
    code = main(argv)
    shown = capsys.readouterr()
    assert code == 0, shown.err
    return shown.out


@pytest.fixture
def told(done):
    """A finished pipeline with an update in its event log."""
    with EventLogWriter(done.project.state_folder, "orders", "orders", "u1") as log:
        log.emit("create_update", "Update u1 was requested.", details=details.create_update())
        log.emit(
            "flow_progress",
            "Flow gold is [at work].",
            flow="gold",
            dataset="gold",
            details=details.flow_progress(details.FlowStatus.STARTING),
        )
        plan = Planned(Technique.APPEND_ONLY, note="only new rows")
        log.emit(
            "planning_information", plan.message("gold"), flow="gold", dataset="gold", details=plan.details()
        )
        body = details.flow_progress(details.FlowStatus.COMPLETED, metrics={"num_output_rows": 1234})
        log.emit("flow_progress", "Flow gold is [done].", flow="gold", dataset="gold", details=body)
        log.emit("user_action", "Look at this.", level="WARN")
        body = details.update_progress(details.UpdateState.COMPLETED)
        log.emit("update_progress", "Update u1 is COMPLETED.", details=body)
    return done


def test_json_is_one_last_line(told, capsys):
    """Each verb prints one JSON object as the last line, with what it is asked for."""
    found = {verb: json.loads(call(told, capsys, verb, "--json").splitlines()[-1]) for verb in VERBS}
    assert found["status"]["update"]["state"] == "COMPLETED"
    assert found["status"]["flows"][0]["output_rows"] == 1234
    assert found["status"]["flows"][0]["technique"] == "APPEND_ONLY"
    assert {entry["dataset"] for entry in found["status"]["datasets"]} == {"bronze", "silver", "gold"}
    assert [flow["moved"] for flow in found["lag"]["flows"]] == [False, False, False]
    assert [event["level"] for event in found["events"]["events"]] == [
        "INFO",
        "INFO",
        "INFO",
        "INFO",
        "WARN",
        "INFO",
    ]
    entries = {entry["flow"]: entry for entry in found["checkpoints"]["checkpoints"]}
    assert set(entries) == {"bronze", "silver"}
    assert (entries["silver"]["epoch"], entries["silver"]["live"], entries["silver"]["last_batch"]) == (
        0,
        True,
        0,
    )
    assert entries["silver"]["offsets"] == ["version 1"]
    assert entries["silver"]["size"] > 0


def test_tables_for_people(told, capsys):
    """Without --json each verb prints a table in which brackets and numbers read as they should."""
    shown = call(told, capsys, "status")
    assert "1,234" in shown
    assert "only new rows" in shown[shown.index("Materialized views") :]
    assert "up to date" in call(told, capsys, "lag")
    assert "Flow gold is [done]." in call(told, capsys, "events")
    assert "files up to 0" in call(told, capsys, "checkpoints")


def test_lateness(done, capsys):
    """The shares are printed with the watermark to choose; a table that is none of the pipeline's is wrong use."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    rows = {"at": [noon] * 100, "came": [noon + timedelta(seconds=number) for number in range(100)]}
    gold = str(done.project.warehouse / "shop" / "gold")
    write_deltalake(gold, pa.table(rows), mode="overwrite", schema_mode="overwrite")
    with EventLogWriter(done.project.state_folder, "orders", "orders", "u1") as log:
        for late in (2, 0, 3):
            body = details.flow_progress(details.FlowStatus.RUNNING, metrics={"late_rows": late})
            log.emit("flow_progress", "A batch.", level="METRICS", flow="gold", dataset="gold", details=body)
    columns = ("gold", "--event-time=at", "--arrival=came")
    shown = call(done, capsys, "lateness", *columns)
    assert '.withWatermark("at", "2 minutes")' in shown
    assert "gold has left out 5 rows as late." in shown
    found = json.loads(call(done, capsys, "lateness", *columns, "--json").splitlines()[-1])
    assert (found["rows"], found["delays"]["0.5"], found["late_rows"]) == (100, "1 minute", {"gold": 5})
    roots = [f"--storage={done.project.storage}", f"--warehouse={done.project.warehouse}"]
    assert main(["lateness", str(done.project.folder), "nowhere", *roots]) == 2
    assert "bronze" in capsys.readouterr().err


def test_event_filters(told, capsys):
    """The filters of ``events`` reach the log."""
    found = json.loads(call(told, capsys, "events", "--level=WARN", "--limit=5", "--json"))
    assert [event["message"] for event in found["events"]] == ["Look at this."]


def test_damaged_checkpoint_is_listed(told, capsys):
    """A checkpoint that can't be read is shown with its fault, and the others all the same."""
    (told.checkpoint("silver").epoch_folder(0) / "offsets" / "0").write_text("")
    entries = json.loads(call(told, capsys, "checkpoints", "--json"))["checkpoints"]
    assert [entry["problem"] is None for entry in entries] == [True, False]


def test_before_the_first_run(pipeline, capsys):
    """Verbs that need the graph say how to get it; the others have nothing to show."""
    assert "has not run yet" in call(pipeline, capsys, "status")
    project = pipeline.project
    for verb in ("lag", "graph"):
        assert main([verb, str(project.folder), f"--storage={project.storage}"]) == 2
        assert "validate" in capsys.readouterr().err


def test_stale_manifest_is_shown_with_a_warning(told, capsys):
    """A graph whose sources have changed since is still shown, and standard error says so."""
    (told.project.folder / "transformations" / "tables.py").write_text("# changed\n")
    project = told.project
    assert main(["graph", str(project.folder), f"--storage={project.storage}"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("flowchart LR")
    assert "sources have changed" in shown.err


def test_parameters_of_another_run_are_said(done, capsys, caplog):
    """The graph that is stored has the sources of its own parameters: an answer for others says so, and one without any does not."""
    spec = done.project.folder / "pipeline.yml"
    spec.write_text(spec.read_text() + "configuration: {landing: a}\n")
    call(done, capsys, "lag")
    assert "other parameters" not in caplog.text
    call(done, capsys, "lag", "--param", "landing=s3://nobucket/x")
    assert "other parameters" in caplog.text


def test_graph_as_mermaid(done):
    """Kinds have their shapes, streams full lines, whole reads dotted ones, and outside sources are drawn."""
    text = mermaid(done.manifest)
    assert 'd0[("bronze")]' in text
    assert 'd2[["gold"]]' in text
    assert "d0 --> d1" in text
    assert "d1 -.-> d2" in text
    assert f'[/"json: {done.landing}"/]' in text
    assert "s0 --> d0" in text


def test_graph_of_views_and_kafka():
    """A view is drawn round, a Kafka topic by its name, and an edge is drawn once for two flows."""
    topic = SourceEntry(kind=SourceKind.KAFKA, streaming=True, name="orders", format="kafka")
    manifest = Manifest(
        headwater_version="0",
        pipeline_id="p",
        pipeline_name="p",
        schema_name="s",
        source_hash="",
        datasets=(
            DatasetEntry(name="v", kind=DatasetKind.TEMPORARY_VIEW),
            DatasetEntry(name="t", kind=DatasetKind.STREAMING_TABLE, location="s/t"),
        ),
        flows=tuple(
            FlowEntry(name=name, target="t", streaming=True, inputs=("v",), sources=(topic,))
            for name in ("f", "g")
        ),
    )
    assert mermaid(manifest).splitlines() == [
        "flowchart LR",
        '    d0(["v"])',
        '    d1[("t")]',
        '    s0[/"kafka: orders"/]',
        "    s0 --> d1",
        "    d0 --> d1",
    ]


def test_graph_as_json(done, capsys):
    """The JSON form is the manifest, on one line."""
    assert Manifest.model_validate_json(call(done, capsys, "graph", "--format", "json")) == done.manifest
