"""Lag, freshness and health of 50 tables with 1,000 commits each, against a warm Spark session and against delta-rs."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from tests.benchmarks.frame.bench import Bench
from tests.benchmarks.frame.comparison import times_as_fast
from tests.benchmarks.frame.copying import LIMIT
from tests.benchmarks.frame.programs import session
from tests.benchmarks.frame.runs import Run, stopwatch, timed
from tests.benchmarks.peers.table_state import by_delta_rs, by_spark
from tests.pipeline_case import PipelineCase

from headwater.checkpoints.offsets import numbered
from headwater.graph.stored_manifest import stored_manifest
from headwater.metrics.checkpoint_health import pipeline_health
from headwater.metrics.freshness import pipeline_freshness
from headwater.metrics.lag import pipeline_lag

OURS, SPARK, NAIVE = "headwater", "Spark, warm", "delta-rs"
UNREAD = 10
ROWS = 7
SOURCE = """
def declare(number):
    @dp.table(name=f"t{{number}}")
    def table():
        return spark.readStream.format("delta").load("{root}/source" + str(number))

for number in range({tables}):
    declare(number)
"""


def test_observe(bench: Bench, tmp_path: Path) -> None:
    """Lag, freshness and health of all tables come 100 times as fast as from a Spark session that is warm."""
    measure(bench, tmp_path, session(whole=True))
    bench.finish()


def measure(bench: Bench, root: Path, spark: SparkSession) -> None:
    """All commits but the last ten have been read by the pipeline's flows."""
    tables, commits = bench.size("tables", 50, smoke=2), bench.size("commits", 1000, smoke=12)
    case = _observed(root, tables, commits)
    read = {str(root / f"source{number}"): commits - UNREAD for number in range(tables)}
    manifest = stored_manifest(case.project())
    assert manifest is not None

    def ours(_: int) -> Run:
        with stopwatch() as watch:
            project = case.project()
            lags = pipeline_lag(project, manifest)
            fresh = pipeline_freshness(project, manifest)
            health = pipeline_health(project, manifest)
        assert {(lag.backlog.versions, lag.backlog.records) for lag in lags} == {(UNREAD, UNREAD * ROWS)}
        assert len(lags) == len(fresh) == len(health) == tables
        assert {str(entry.health) for entry in health} == {"healthy"}, health
        assert all(entry.seconds is not None for entry in fresh)
        return watch.run

    def peer(find):
        def run(_: int) -> Run:
            with stopwatch() as watch:
                found = find()
            assert {(commits, rows) for commits, rows, _ in found.values()} == {(UNREAD, UNREAD * ROWS)}
            return watch.run

        return run

    logs = [Path(table) / "_delta_log" for table in read]
    contenders = {
        OURS: ours,
        SPARK: peer(lambda: by_spark(spark, read)),
        NAIVE: peer(lambda: by_delta_rs(read)),
        LIMIT: lambda _: timed(lambda: [_last_read(log) for log in logs]),
    }
    part = f"{tables} tables"
    bench.interleaved(part, contenders, least=3, most=7, warm=True)
    bench.compare(part, OURS, SPARK, times_as_fast(100))
    bench.compare(part, OURS, NAIVE)
    bench.compare(part, OURS, LIMIT)


def _last_read(log: Path) -> int:
    """The bytes of the commits that are unread: who wants to know of them has to read at least these."""
    names = sorted(name for name in os.listdir(log) if name.endswith(".json"))  # noqa: PTH208
    return sum(len((log / name).read_bytes()) for name in names[-UNREAD:])


def _observed(root: Path, tables: int, commits: int) -> PipelineCase:
    """A pipeline that has read each source at its first version, then was set to have read all but the last commits."""
    rows = pa.table({"id": pa.array(range(ROWS), pa.int64())})
    for number in range(tables):
        write_deltalake(str(root / f"source{number}"), rows)
    case = PipelineCase(root, SOURCE.format(root=root, tables=tables))
    assert case.update().state == "COMPLETED"
    for number in range(tables):
        _commit_often(root / f"source{number}", commits)
        _read_up_to(case, f"t{number}", commits - UNREAD)
    return case


def _commit_often(table: Path, commits: int) -> None:
    """Append to the log by hand, as many appends would; their files are never read. A checkpoint as Delta makes it."""
    now = int(time.time() * 1000)
    stats = json.dumps(
        {"numRecords": ROWS, "minValues": {"id": 0}, "maxValues": {"id": 6}, "nullCount": {"id": 0}}
    )
    for version in range(1, commits + 1):
        when = now - (commits - version) * 1000
        info = {
            "timestamp": when, "operation": "WRITE", "operationParameters": {"mode": "Append"},
            "operationMetrics": {"numOutputRows": str(ROWS), "numFiles": "1", "numOutputBytes": "600"},
        }  # fmt: skip
        add = {
            "path": f"part-{version:05}.parquet", "partitionValues": {}, "size": 600, "modificationTime": when,
            "dataChange": True, "stats": stats,
        }  # fmt: skip
        file = table / "_delta_log" / f"{version:020}.json"
        file.write_text(f"{json.dumps({'commitInfo': info})}\n{json.dumps({'add': add})}\n")
        os.utime(file, (when / 1000, when / 1000))
        if version == commits - commits % 10:
            DeltaTable(str(table)).create_checkpoint()


def _read_up_to(case: PipelineCase, flow: str, version: int) -> None:
    """Move a flow's position to the end of a version."""
    folder = case.checkpoint(flow).live_folder() / "offsets"
    last = folder / str(max(numbered(folder)))
    lines = last.read_text().split("\n")
    offset = json.loads(lines[-1])
    offset |= {"reservoirVersion": version + 1, "index": -1, "isStartingVersion": False}
    last.write_text("\n".join([*lines[:-1], json.dumps(offset)]))
    (folder / f".{last.name}.crc").unlink(missing_ok=True)
