"""How far a flow is behind one of its sources.

Decision 0132.
"""

from __future__ import annotations

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.checkpoints.offsets import committed_offsets, kafka_initial_offset
from headwater.definitions.source import SourceKind
from headwater.delta_log.versions import table_head
from headwater.errors import CheckpointUnreadable, SourceUnreachable
from headwater.event_log.redaction import quoted
from headwater.graph.manifest import FlowEntry, SourceEntry
from headwater.kafka.offsets import BrokerTopics, Connect
from headwater.metrics.backlog import Backlog
from headwater.metrics.delta_backlog import delta_backlog, unread_since
from headwater.metrics.file_backlog import file_backlog
from headwater.metrics.fingerprint import fingerprint_version, source_fingerprint, source_key, source_table
from headwater.metrics.kafka_backlog import kafka_backlog
from headwater.metrics.kinesis_backlog import kinesis_backlog
from headwater.storage.access import ObjectStore
from headwater.storage.place import Place


def source_backlog(
    flow: FlowEntry,
    source: SourceEntry,
    checkpoint: FlowCheckpoint,
    warehouse: Place,
    *,
    connect: Connect = BrokerTopics,
    store: ObjectStore | None = None,
) -> Backlog:
    """What ``flow`` has not read of ``source`` yet; never raises, but says why it is not known.

    ``checkpoint``: the flow's folder in storage; ``connect``: opens a Kafka broker by its servers; ``store``: how S3 is reached,
    for files there.
    """
    try:
        if source.streaming:
            return _streaming(flow, source, checkpoint.live_folder(), warehouse, connect, store)
        return _batch(source, checkpoint.read_state(), warehouse, store)
    except (CheckpointUnreadable, SourceUnreachable) as error:
        return Backlog.because(f"{error.what} ({error.where})")
    except Exception as error:
        # Files, clients and logs may raise anything: the caller then starts Spark, which is always correct.
        return Backlog.because(f"the position is not known: {quoted(error)}")


def _streaming(
    flow: FlowEntry,
    source: SourceEntry,
    folder: Place,
    warehouse: Place,
    connect: Connect,
    store: ObjectStore | None,
) -> Backlog:
    index = [entry for entry in flow.sources if entry.streaming].index(source)
    offsets = committed_offsets(folder)
    offset = offsets.source(index) if offsets is not None else None
    table = source_table(source, warehouse)
    if table is not None:
        return delta_backlog(table, offset, source.options)
    if source.kind is SourceKind.KAFKA:
        began = kafka_initial_offset(folder, index) if offset is None else offset
        return kafka_backlog(source.options, began, connect)
    if source.kind is SourceKind.KINESIS:
        return kinesis_backlog(source.options, offset)
    if source.kind is SourceKind.FILES and source.path:
        return file_backlog(source.path, source.options, folder, index, offset, store=store)
    return Backlog.because(f"there is no measure for a source of format {source.format or source.kind}")


def _batch(
    source: SourceEntry, state: FlowState | None, warehouse: Place, store: ObjectStore | None
) -> Backlog:
    before = state.input_versions.get(source_key(source)) if state else None
    now = source_fingerprint(source, warehouse, store=store)
    table = source_table(source, warehouse)
    if now is None:
        what = source.name or source.location or source.path or source.format or source.kind
        return Backlog.because(f"what {what} is at can't be known")
    if before == now:
        return Backlog(seconds=0.0, moved=False)
    head = table_head(table) if table is not None else None
    if table is None or head is None:
        return Backlog(moved=True)
    version = fingerprint_version(before, head.table_id) if before else None
    if version is None and before:
        return Backlog.because(f"the table at {table} was recreated since it was last read", moved=True)
    unread = unread_since(table, -1 if version is None else version)
    return Backlog(
        unread.records, unread.bytes, unread.files, unread.versions, unread.seconds, True, unread.unknown
    )
