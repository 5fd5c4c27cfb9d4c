"""What a flow's start will find, put together from the manifest, the checkpoint, the event log and the sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial

from headwater.checkpoints.flow_identity import FlowIdentity, flow_identity
from headwater.checkpoints.flow_role import FlowRole, flow_role
from headwater.checkpoints.inferred_schemas import locations_of
from headwater.checkpoints.layout import FlowState, flow_checkpoint
from headwater.definitions.dataset import DatasetKind
from headwater.definitions.output_kind import OutputKind
from headwater.definitions.source import SourceKind
from headwater.delta_log.table_history import table_exists, table_id
from headwater.doctor.known_positions import known_positions
from headwater.doctor.snapshots import has_snapshots
from headwater.event_log.user_actions import sent_since_drop
from headwater.graph.manifest import DatasetEntry, FlowEntry, Manifest, SourceEntry
from headwater.graph.pipeline_project import PipelineProject
from headwater.kafka.login import PROTOCOL, login_settings
from headwater.kafka.topics import BrokerFacts
from headwater.metrics.file_listing import file_paths
from headwater.metrics.fingerprint import source_table
from headwater.metrics.lag import with_configuration
from headwater.preflight.flow_start import FlowStart, Positions, StreamSource
from headwater.storage.listing import looked_over
from headwater.storage.place import Place

_SERVERS = "kafka.bootstrap.servers"


def flow_start(
    project: PipelineProject, manifest: Manifest, flow: FlowEntry, *, deep: bool = False, brokers: bool = True
) -> FlowStart:
    """The input of the checks for a flow, from storage as it is now.

    Raises:
        FlowStateDamaged: it is not known which epoch is live.
    """
    with looked_over():
        target = manifest.dataset(flow.target)
        checkpoint = flow_checkpoint(project.state_folder, flow.target, flow.name)
        state = checkpoint.surviving_state() or FlowState()
        table = destination(project, manifest, target)
        identity = flow_identity(project.state_folder, project.pipeline_id, flow.target, flow.name)
        positions = recorded_positions(project.state_folder, identity, flow.name, table, state.epoch)
        return FlowStart(
            project.pipeline_id,
            flow.name,
            flow.target,
            checkpoint,
            state,
            table,
            destination_id(target, table),
            is_sink=target.kind is DatasetKind.SINK,
            sources=stream_sources(project, flow, brokers=brokers),
            position=lambda batch: positions().get(batch),
            last_recorded=lambda: max(positions(), default=None),
            sent_before=partial(sent_since_drop, project.state_folder, flow.name, target.name),
            deep=deep,
            role=role_of(flow, target),
            declared=tuple(entry.name for entry in manifest.flows_into(flow.target)),
            quarantine=manifest.quarantine_path(project.warehouse, flow.target),
            known_identity=identity,
            has_copy=lambda: has_snapshots(project.state_folder, flow.target, flow.name),
            schemas=lambda: locations_of(project.state_folder, queries_of(manifest, flow)),
        )


def queries_of(manifest: Manifest, flow: FlowEntry) -> list[str]:
    """The names of the queries that a flow evaluates: its own, and those of the views that it reads."""
    stored = {entry.name for entry in manifest.outputs}
    queries = [flow]
    for query in queries:  # it grows
        of_views = [each for name in query.inputs if name not in stored for each in manifest.flows_into(name)]
        queries += [each for each in of_views if each not in queries]
    return [query.name for query in queries]


def role_of(flow: FlowEntry, target: DatasetEntry) -> FlowRole:
    """As what a flow runs, as the manifest has it."""
    return flow_role(
        view=target.kind is DatasetKind.MATERIALIZED_VIEW,
        snapshots=flow.output_mode is OutputKind.SNAPSHOT,
        once=flow.once,
        changes=flow.output_mode is OutputKind.CHANGES,
    )


def destination(project: PipelineProject, manifest: Manifest, target: DatasetEntry) -> Place | None:
    """The folder of the Delta table that a dataset's rows go to, None where they go elsewhere."""
    return manifest.table_path(project.warehouse, target.name) if target.location is not None else None


def destination_id(target: DatasetEntry, table: Place | None) -> str | None:
    """The identity of a flow's target, as an update records it: it changes when rows go elsewhere."""
    if table is not None:
        return table_id(table) if table_exists(table) else None
    if target.sink_format == "kafka":
        topic = next((value for key, value in target.sink_options.items() if key.lower() == "topic"), None)
        return f"kafka:{topic or '*'}"
    return f"{target.sink_format}:{target.name}"


def stream_sources(
    project: PipelineProject, flow: FlowEntry, *, brokers: bool = True
) -> tuple[StreamSource, ...]:
    """The streaming sources of a flow, with access to them; without ``brokers``, no Kafka broker is queried."""
    resolved = with_configuration(flow, project.configuration)
    return tuple(_source(source, project, brokers) for source in resolved.sources if source.streaming)


def _source(entry: SourceEntry, project: PipelineProject, brokers: bool) -> StreamSource:
    servers = entry.options.get(_SERVERS)
    ask_broker = brokers and entry.kind is SourceKind.KAFKA and servers
    return StreamSource(
        entry.kind,
        entry.name or entry.path or entry.format,
        source_table(entry, project.warehouse),
        entry.path,
        entry.options,
        BrokerFacts(servers, lambda: login_settings(project, servers, entry.options.get(PROTOCOL, "")))
        if ask_broker and servers
        else None,
        partial(file_paths, entry.path, entry.options, store=project.object_store)
        if entry.path and entry.kind is SourceKind.FILES
        else None,
        project.object_store,
    )


def recorded_positions(
    state_folder: Place, identity: FlowIdentity, flow: str, table: Place | None, epoch: int
) -> Callable[[], Mapping[int, Positions]]:
    """The end offsets of an epoch's batches as recorded outside the checkpoint; read on first use."""

    @lru_cache(maxsize=1)
    def positions() -> dict[int, Positions]:
        return known_positions(state_folder, identity, flow, table, epoch)

    return positions
