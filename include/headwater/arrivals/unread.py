"""What has come to the sources of a pipeline that it has not read yet: new files, messages, commits of other tables.

The position is that of the checkpoints, as for the lag. Tables that the pipeline writes itself do not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from headwater.checkpoints.layout import FlowCheckpoint, flow_checkpoint
from headwater.checkpoints.offsets import committed_offsets
from headwater.definitions.source import SourceKind
from headwater.graph.manifest import FlowEntry, Manifest, SourceEntry
from headwater.graph.pipeline_project import PipelineProject
from headwater.kafka.login import broker_connection
from headwater.kafka.offsets import Connect, FirstMessages, Partition, TopicReader
from headwater.metrics.backlog import Backlog
from headwater.metrics.fingerprint import source_fingerprint, source_key
from headwater.metrics.lag import SourceLag, with_configuration
from headwater.metrics.source_position import source_backlog
from headwater.storage.listing import looked_over

_MEASURES = {
    SourceKind.FILES: "files",
    SourceKind.KAFKA: "records",
    SourceKind.KINESIS: "records",
    SourceKind.DATASET: "versions",
    SourceKind.DELTA: "versions",
}
FIRST_RUN = "what it reads first is decided when it starts"


@dataclass(frozen=True)
class UnreadSource:
    """A source with something unread.

    Attributes:
        flow, source: who reads it, and what it is called; without secrets.
        measure: what is counted: files, records or versions.
        amount: how many; None where they can't be counted.
        mark: changes whenever there is something else to read, and with nothing else.
        seconds: the age of the oldest thing unread, where that is known.

    """

    flow: str
    source: str
    measure: str
    amount: int | None
    mark: str
    seconds: float | None = None

    @property
    def key(self) -> str:
        """The source within the pipeline."""
        return f"{self.flow} < {self.source}"


@dataclass(frozen=True)
class Unread:
    """All that is unread. ``unknown``: sources whose position can't be read now, in sentences."""

    sources: tuple[UnreadSource, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def marks(self) -> dict[str, str]:
        """The mark of each source, by its key."""
        return {source.key: source.mark for source in self.sources}

    @property
    def seconds(self) -> float:
        """The age of the oldest thing unread; 0 where it is not known."""
        return max((source.seconds or 0.0 for source in self.sources), default=0.0)

    def amounts(self) -> dict[str, int | None]:
        """How much there is by measure, over all sources; two flows that read one source count it once."""
        largest: dict[tuple[str, str], int | None] = {}
        for source in self.sources:
            name = (source.measure, source.source)
            other = largest.get(name, 0)
            known = other is not None and source.amount is not None
            largest[name] = max(other or 0, source.amount or 0) if known else None
        total: dict[str, int | None] = {}
        for (measure, _), amount in largest.items():
            before = total.get(measure, 0)
            total[measure] = None if before is None or amount is None else before + amount
        return total


def unread(project: PipelineProject, manifest: Manifest, *, connect: Connect | None = None) -> Unread:
    """Look at every source of the pipeline that lies outside of it. Blocks on files and brokers; never starts a JVM.

    Args:
        project: the pipeline.
        manifest: of its last update; before the first, the committed one.
        connect: opens a Kafka broker by its servers; by default as the spec says.

    """
    connect = _without_times(connect or broker_connection(project))
    sources: list[UnreadSource] = []
    unknown: list[str] = []
    with looked_over(project.state_folder / "checkpoints"):
        for flow, source in _outer_sources(project, manifest):
            checkpoint = flow_checkpoint(project.state_folder, flow.target, flow.name)
            backlog = source_backlog(
                flow, source, checkpoint, project.warehouse, connect=connect, store=project.object_store
            )
            entry = _entry(project, flow, source, backlog, checkpoint)
            if entry is not None:
                sources.append(entry)
            elif backlog.unknown:
                unknown.append(f"{flow.name}: {backlog.unknown}")
    return Unread(tuple(sources), tuple(unknown))


def _outer_sources(project: PipelineProject, manifest: Manifest) -> Iterator[tuple[FlowEntry, SourceEntry]]:
    own = {entry.location for entry in manifest.outputs if entry.location}
    names = {entry.name for entry in manifest.outputs}
    for flow in manifest.output_flows:
        if flow.once:
            continue
        filled = with_configuration(flow, project.configuration)
        for source in filled.sources:
            inner = source.kind is SourceKind.DATASET and source.name in names
            if inner or source.location in own or (flow.streaming and not source.streaming):
                continue
            yield filled, source


def _entry(
    project: PipelineProject,
    flow: FlowEntry,
    source: SourceEntry,
    backlog: Backlog,
    checkpoint: FlowCheckpoint,
) -> UnreadSource | None:
    undecided = backlog.moved is None and backlog.unknown is None
    if not backlog.moved and not undecided:
        return None
    measure = _MEASURES.get(source.kind, "records")
    amount = None if undecided or backlog.unknown else getattr(backlog, measure)
    mark = FIRST_RUN
    if not undecided:
        counts = (backlog.records, backlog.bytes, backlog.files, backlog.versions, backlog.unknown)
        # Files may be others of the same sizes; so may be what a view reads as a whole.
        content = (
            None
            if _is_counted(source)
            else source_fingerprint(source, project.warehouse, store=project.object_store)
        )
        parts = (_position(flow, source, checkpoint), counts, content)
        mark = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
    return UnreadSource(flow.name, SourceLag(source, backlog).name, measure, amount, mark, backlog.seconds)


def _is_counted(source: SourceEntry) -> bool:
    return source.streaming and source.kind is not SourceKind.FILES


def _position(flow: FlowEntry, source: SourceEntry, checkpoint: FlowCheckpoint) -> object:
    """Where the flow is in the source: the same amount from another position is other data."""
    if not source.streaming:
        state = checkpoint.read_state()
        return state.input_versions.get(source_key(source)) if state else None
    folder = checkpoint.live_folder()
    offsets = committed_offsets(folder)
    index = [entry for entry in flow.sources if entry.streaming].index(source)
    return (folder.name, offsets.source(index) if offsets is not None else None)


def _without_times(connect: Connect) -> Connect:
    """A broker that is not asked when a message was written: for that it would have to send one."""

    @contextmanager
    def opened(servers: str) -> Iterator[TopicReader]:
        with connect(servers) as topics:
            yield _WithoutTimes(topics)

    return opened


@dataclass(frozen=True)
class _WithoutTimes:
    topics: TopicReader

    def partitions(self, options: Any) -> list[Partition]:
        return self.topics.partitions(options)

    def bounds(self, partition: Partition) -> tuple[int, int]:
        return self.topics.bounds(partition)

    def first_messages(self, positions: Any) -> dict[Partition, FirstMessages]:  # noqa: ARG002 - the form of a TopicReader
        return {}
