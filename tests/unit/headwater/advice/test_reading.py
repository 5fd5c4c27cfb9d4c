"""From real tables, checkpoints and event logs to facts, findings and lines: without a JVM."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from headwater.advice.reading import cores_of, pipeline_facts
from headwater.advice.rules import advise
from headwater.advice.stream_facts import stream_histories, updates_of_today
from headwater.commands.command_line import main
from headwater.event_log.details import FlowStatus, UpdateState, create_update, flow_progress, update_progress
from headwater.event_log.writer import EventLogWriter
from headwater.graph.pipeline_project import open_project

REPORT = {
    "durationMs": {"addBatch": 600, "triggerExecution": 1000},
    "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
    "stateOperators": [
        {
            "operatorName": "dedupe",
            "numRowsTotal": 7,
            "memoryUsedBytes": 900,
            "numRowsRemoved": 2,
            "customMetrics": {},
        }
    ],
    "sources": [{"endOffset": {"events": {"0": 5, "1": 6}}}],
}


def update(project, name, source_hash, *, batches=3, first=0, seconds=1.0, rows=100, left=0, report=REPORT):
    """Record an update of bronze in so many batches."""
    with EventLogWriter(project.state_folder, "orders", "orders", name) as log:
        log.emit("create_update", "Requested.", details=create_update(source_hash=source_hash))
        for batch in range(first, first + batches):
            metrics = {
                "num_input_rows": rows,
                "batch_duration_ms": int(seconds * 1000),
                "executor_time_ms": 400,
            }
            about = {"flow": "bronze", "dataset": "bronze", "batch_id": batch, "epoch": 0}
            body = flow_progress(FlowStatus.RUNNING, metrics=metrics, dropped=1)
            log.emit("flow_progress", "A batch.", level="METRICS", details=body, **about)
            text = {"stream_progress": {"progress_json": json.dumps(report)}}
            log.emit("stream_progress", "Spark's.", details=text, **about)
        body = flow_progress(FlowStatus.COMPLETED, metrics={"backlog_files": left})
        log.emit("flow_progress", "Done.", flow="bronze", dataset="bronze", epoch=0, details=body)
        log.emit("update_progress", "Done.", details=update_progress(UpdateState.COMPLETED))


def test_batches_are_read_with_what_spark_reported(done):
    """Durations, parts, state, watermark, partitions of topics, what was dropped and what was left."""
    update(done.project, "u1", "h")
    facts = pipeline_facts(done.project, done.manifest)
    bronze = next(flow for flow in facts.flows if flow.flow == "bronze")
    batch = bronze.batches[-1]
    assert [b.batch_id for b in bronze.batches] == [0, 1, 2]
    assert (batch.input_rows, batch.seconds, batch.executor_seconds) == (100, 1.0, 0.4)
    assert batch.phases["addBatch"] == 0.6
    assert (batch.state_rows, batch.state_bytes, batch.states[0].removed) == (7, 900, 2)
    assert batch.watermark == 1767225600.0
    assert bronze.left_over == (0,)
    assert bronze.sources[0].unread["files"] == 0
    table = facts.table("bronze")
    assert (table.files, table.dropped, table.guarded) == (1, 3, False)


def test_what_a_continuous_pipeline_says_of_maintenance(done):
    """Its maintenance DAG has no schedule, whatever the spec says."""
    (done.project.folder / "pipeline.yml").write_text("name: orders\nschema: shop\ntrigger: continuous\n")
    project = open_project(
        done.project.folder, storage=done.project.storage, warehouse=done.project.warehouse
    )
    facts = pipeline_facts(project, done.manifest)
    assert (facts.continuous, facts.maintained) == (True, False)
    plain = pipeline_facts(done.project, done.manifest)
    assert (plain.continuous, plain.maintained) == (False, True)


def test_only_the_definition_of_today_counts(done):
    """Batches of updates by other sources are not judged; nor those of an earlier epoch."""
    update(done.project, "u1", "old", batches=5, seconds=9.0)
    update(done.project, "u2", "new", batches=3, first=5)
    update(done.project, "u3", "old", batches=2, first=8)
    facts = pipeline_facts(done.project, done.manifest)
    batches = next(flow for flow in facts.flows if flow.flow == "bronze").batches
    assert [batch.batch_id for batch in batches] == [0, 1, 2, 3, 4, 8, 9]
    assert updates_of_today([]) is None


def test_reports_that_were_cut_leave_batches_known():
    """Without Spark's own report, or with one that is not JSON, a batch has its measures and nothing else."""
    record = {
        "origin": {"flow_name": "f", "update_id": "u", "batch_id": 0, "epoch": 0},
        "event_type": "flow_progress",
        "details": {"flow_progress": {"status": "RUNNING", "metrics": {"num_input_rows": 5}}},
    }
    cut = {
        **record,
        "event_type": "stream_progress",
        "details": {"stream_progress": {"progress_json": '{"dura'}},
    }
    (batch,) = stream_histories([record, cut], None)["f"].batches
    assert (batch.input_rows, batch.states, batch.phases, batch.watermark) == (5, (), {}, None)


@pytest.mark.parametrize(
    ("master", "cores"), [("local[3]", 3), ("local", 1), ("local[4, 2]", 4), ("spark://host:7077", None)]
)
def test_cores(master, cores):
    """Of a local master; a cluster's are not known."""
    assert cores_of({"spark.master": master}) == cores


def test_small_files_of_a_real_table(done):
    """Files, partitions and commits are seen in the table's log; a commit of many small files is a finding."""
    shutil.rmtree(done.table("silver"))
    for number in range(5):
        rows = pa.table({"id": [number] * 16, "part": [f"p{n}" for n in range(16)]})
        write_deltalake(str(done.table("silver")), rows, mode="append", partition_by=["part"])
    facts = pipeline_facts(done.project, done.manifest)
    silver = facts.table("silver")
    assert (silver.files, silver.partitions, [commit.files for commit in silver.commits]) == (
        80,
        16,
        [16] * 5,
    )
    finding = next(f for f in advise(facts) if f.code == "SMALL_FILES")
    assert (finding.dataset, finding.evidence[1]) == (
        "silver",
        "the newest 5 commits added 16 files each (median)",
    )


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
    return code, capsys.readouterr().out


def test_advise_for_people_and_for_programs(done, capsys):
    """Findings with evidence, remedies and their cost; the same as JSON; the code is 0."""
    for number in range(100):
        done.land(f"late-{number}.json")
    update(done.project, "u1", "h", batches=4, seconds=2.0)
    manifest = done.manifest
    limited = manifest.flows[0].sources[0].model_copy(update={"options": {"maxFilesPerTrigger": "1"}})
    flows = (manifest.flows[0].model_copy(update={"sources": (limited,)}), *manifest.flows[1:])
    done.manifest = manifest.model_copy(update={"flows": flows})
    done.store_manifest()
    code, text = call(done, capsys, "advise")
    assert code == 0
    assert "warning LIMIT_TOO_LOW  bronze" in text
    assert 'write: .option("maxFilesPerTrigger", 50) (instead of .option("maxFilesPerTrigger", 1))' in text
    assert "where: the read of the source" in text
    code, text = call(done, capsys, "advise", "--json")
    findings = json.loads(text.splitlines()[-1])["findings"]
    assert code == 0
    assert [finding.code for finding in advise(pipeline_facts(done.project, done.manifest))] == [
        f["code"] for f in findings
    ]
    assert findings[0]["remedies"][0]["settings"][0]["place"] == "the read of the source"
