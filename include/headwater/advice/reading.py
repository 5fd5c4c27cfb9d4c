"""The facts of a pipeline, from its manifest, event log, checkpoints and tables. No JVM is started."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlparse

from headwater.advice.facts import BatchFact, FlowFact, PipelineFacts, SourceFact
from headwater.advice.pace import is_uneven
from headwater.advice.stream_facts import StreamHistory, stream_histories, updates_of_today
from headwater.advice.table_facts import bytes_per_row, is_cloud_files, schemas_over_time, table_fact
from headwater.checkpoints.layout import FlowState, flow_checkpoint
from headwater.definitions.airflow_spec import CONTINUOUS
from headwater.definitions.intervals import longest_gap
from headwater.definitions.source import SourceKind
from headwater.definitions.trigger import Continuous, ProcessingTime
from headwater.errors import HeadwaterError
from headwater.event_log.reader import events
from headwater.event_log.redaction import redact_text
from headwater.graph.declared_schedule import schedule_of
from headwater.graph.manifest import FlowEntry, Manifest, SourceEntry
from headwater.graph.pipeline_project import PipelineProject
from headwater.metrics.backlog import Backlog
from headwater.metrics.file_history import ingested_files
from headwater.metrics.fingerprint import source_table
from headwater.metrics.lag import flow_lag
from headwater.metrics.pace import flow_interval

_RECORDS = 2000
_UPDATES = 200
_LOCAL = re.compile(r"local\[(\d+|\*)(?:,\s*\d+)?\]")
_LIMITS = ("maxFilesPerTrigger", "maxBytesPerTrigger", "maxOffsetsPerTrigger", "maxRecordsPerTrigger")
_MOST_FILES = 200
_REMOTE = (SourceKind.KAFKA, SourceKind.KINESIS)


def pipeline_facts(project: PipelineProject, manifest: Manifest, *, brokers: bool = True) -> PipelineFacts:
    """Read everything that the rules look at.

    Args:
        brokers: whether Kafka and Kinesis may be asked how far they are; without it that is not known.

    Raises:
        EventLogUnreadable: the event log is damaged.
    """
    began = events(project.state_folder, event_type="create_update", limit=_UPDATES)
    updates = updates_of_today(began)
    records = events(
        project.state_folder,
        event_type=("flow_definition", "flow_progress", "stream_progress", "dataset_definition"),
        limit=_RECORDS,
    )
    histories = stream_histories(records, updates)
    schemas = schemas_over_time(records, updates)
    flows = [_flow(project, manifest, flow, histories.get(flow.name, StreamHistory()), brokers) for flow in manifest.output_flows if flow.streaming and not flow.once]  # fmt: skip
    dropped = {flow.target: histories[flow.name].dropped for flow in manifest.flows if flow.name in histories}
    tables = [
        table_fact(
            manifest, project.warehouse, entry, dropped.get(entry.name, 0), schemas.get(entry.name, [])
        )
        for entry in manifest.tables
        if entry.location is not None
    ]
    trigger, airflow = project.spec.trigger, project.spec.airflow
    long = trigger if isinstance(trigger, ProcessingTime) else None
    schedule = schedule_of(project.spec, manifest)
    gap = longest_gap(schedule) if schedule and schedule != CONTINUOUS else None
    return PipelineFacts(
        str(project.folder),
        tuple(flows),
        tuple(table for table in tables if table is not None),
        long.interval.total_seconds() if long else None,
        long.run_for.total_seconds() if long else None,
        gap.total_seconds() if gap else None,
        airflow.maintenance_schedule is not None and not isinstance(trigger, Continuous),
        cores_of(project.spec.spark),
        isinstance(trigger, Continuous),
    )


def cores_of(spark: Mapping[str, str]) -> int | None:
    """The cores of a local master; None where the master is another, or its own default says one."""
    match = _LOCAL.fullmatch(spark.get("spark.master", "local[*]"))
    if match is None:
        return 1 if spark.get("spark.master") == "local" else None
    return os.cpu_count() if match[1] == "*" else int(match[1])


def _flow(
    project: PipelineProject, manifest: Manifest, flow: FlowEntry, history: StreamHistory, brokers: bool
) -> FlowFact:
    state = _state(project, flow)
    interval, place = flow_interval(project, manifest, flow.target, history.spark_conf)
    return FlowFact(
        flow.name,
        flow.target,
        history.batches,
        _sources(project, flow, history, brokers),
        flow.output_mode,
        interval,
        place,
        history.left_over,
        state.plan,
        state.state_settings,
        history.time_columns,
    )


def _state(project: PipelineProject, flow: FlowEntry) -> FlowState:
    try:
        return flow_checkpoint(project.state_folder, flow.target, flow.name).surviving_state() or FlowState()
    except (HeadwaterError, OSError):
        return FlowState()


def _sources(
    project: PipelineProject, flow: FlowEntry, history: StreamHistory, brokers: bool
) -> tuple[SourceFact, ...]:
    entries = [source for source in flow.sources if source.streaming]
    backlogs: dict[int, Backlog] = {}
    if brokers or not any(source.kind in _REMOTE for source in entries):
        backlogs = dict(enumerate(part.backlog for part in flow_lag(project, flow).sources))
    uneven = is_uneven(history.batches)
    facts = []
    for index, source in enumerate(entries):
        backlog = backlogs.get(index, Backlog())
        table = source_table(source, project.warehouse)
        options = {key.lower(): value for key, value in source.options.items()}
        files = source.kind is SourceKind.FILES and uneven
        facts.append(
            SourceFact(
                source.kind,
                _name(source),
                {name: options[name.lower()] for name in _LIMITS if name.lower() in options},
                is_cloud_files(source.options),
                _file_sizes(project, flow, index, history.batches) if files else (),
                bytes_per_row(table) if table is not None and uneven else None,
                history.partitions.get(source.name),
                {} if backlog.unknown else _unread(backlog),
                backlog.seconds,
            )
        )
    return tuple(facts)


def _unread(backlog: Backlog) -> dict[str, int]:
    measures = {
        "records": backlog.records,
        "files": backlog.files,
        "versions": backlog.versions,
        "bytes": backlog.bytes,
    }
    return {name: value for name, value in measures.items() if value is not None}


def _name(source: SourceEntry) -> str:
    place = Path(source.path or source.location or source.format or "the source").name
    return redact_text(source.name or place)


def _file_sizes(
    project: PipelineProject, flow: FlowEntry, index: int, batches: Sequence[BatchFact]
) -> tuple[tuple[int, ...], ...]:
    """The sizes of the files of the newest batches, as far as they are still there."""
    wanted = {batch.batch_id for batch in batches}
    try:
        files = ingested_files(project.state_folder, flow.target, flow.name)
    except (HeadwaterError, OSError):
        return ()
    by_batch: dict[int, list[int]] = {}
    for file in [f for f in files if f.source == index and f.batch in wanted][-_MOST_FILES:]:
        size = _size(file.path)
        if size is not None and file.batch is not None:
            by_batch.setdefault(file.batch, []).append(size)
    return tuple(tuple(sizes) for sizes in by_batch.values())


def _size(path: str) -> int | None:
    try:
        return Path(unquote(urlparse(path).path) if path.startswith("file:") else path).stat().st_size
    except OSError:
        return None
