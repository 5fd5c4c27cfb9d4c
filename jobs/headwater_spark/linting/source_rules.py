"""What is read, and how: HW106, HW107, HW201, HW202, HW501."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headwater.definitions.finding import Finding, finding
from headwater.definitions.source import SourceKind
from headwater.definitions.source_location import SourceLocation
from headwater.delta_log.versions import read_commit
from headwater.errors import SourceUnreachable
from headwater.graph.manifest import SourceEntry
from headwater.storage.conditions import STORE_ERRORS
from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place, located
from headwater_spark.linting.flow_case import FlowCase, StreamLeaf

_TOLERANT = ("skipchangecommits", "readchangefeed", "ignorechanges", "ignoredeletes")
_CHANGES = {"MERGE", "UPDATE", "DELETE"}
_REPLACES = {"TRUNCATE", "RESTORE"}
_CORRECTED = (
    'Read it with .option("skipChangeCommits", "true") to take appended rows only, or follow its changes with '
    '.option("readChangeFeed", "true").'
)
# Passing over the commits would pass over every delivery.
_WHOLE = (
    "Read it as a whole, spark.read.table(...) in a @dp.materialized_view, or have a table follow its states: "
    'dp.create_auto_cdc_from_snapshot_flow. Its change feed can be read, too: .option("readChangeFeed", "true").'
)
_LIMITS = {
    "kafka": ("maxoffsetspertrigger",),
    "kinesis": ("maxrecordspertrigger",),
    "files": ("maxfilespertrigger", "maxbytespertrigger", "cloudfiles.maxfilespertrigger", "cloudfiles.maxbytespertrigger"),
}  # fmt: skip
_OPTION = {"kafka": "maxOffsetsPerTrigger", "kinesis": "maxRecordsPerTrigger", "files": "maxFilesPerTrigger"}
_FILES = ("json", "csv", "parquet", "text", "orc", "avro", "xml", "binaryfile", "cloudfiles")
_FILES_OF_DELTA = 1000
_LARGE = 64 << 30
# What limits a batch from a Delta table, or lets it begin behind its first snapshot.
_BOUNDS_OF_DELTA = {"maxfilespertrigger", "maxbytespertrigger", "startingversion", "startingtimestamp"}
_SHUFFLE = "spark.sql.shuffle.partitions"


def forgotten_caches(case: FlowCase) -> Iterator[Finding]:
    """HW106."""
    if case.source is None:
        return
    where, file = case.source
    for line in sorted(set(file.calls(where.line, ("cache", "persist")))):
        yield finding(
            "HW106",
            "The function caches a DataFrame. It is called again for every update, and what it caches is never released.",
            "Leave it out. What several tables share belongs in a materialized view that they read.",
            SourceLocation(where.file, line),
            case.dataset.name,
        )


def frozen_settings(case: FlowCase) -> Iterator[Finding]:
    """HW107."""
    stateful = case.nodes_of(
        "Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "FlatMapGroupsInPandasWithState", "TransformWithStateInPySpark"
    )  # fmt: skip
    if not stateful or case.source is None:
        return
    _, file = case.source
    for line in file.settings(_SHUFFLE):
        yield finding(
            "HW107",
            f"{_SHUFFLE} is set here. A query with state keeps the number that it had at its first start: "
            "another value changes nothing, until a full refresh.",
            "Choose it before the first start, under `spark` in pipeline.yml.",
            SourceLocation(file.label, line),
            case.dataset.name,
        )


def streams_of_changing_tables(case: FlowCase) -> Iterator[Finding]:
    """HW201 and HW202."""
    entry = case.pipeline.manifest.flow(case.flow.name)
    for source in entry.sources:
        if not source.streaming or source.kind not in (SourceKind.DATASET, SourceKind.DELTA):
            continue
        if _tolerates(case, source):
            continue
        mode_of = case.pipeline.evaluation.output_mode_of
        if source.kind is SourceKind.DATASET and any(
            not mode_of(flow).kind.only_adds_rows
            for flow in case.pipeline.registry.flows() if flow.target == source.name
        ):  # fmt: skip
            yield case.find(
                "HW201",
                f"It reads {source.name!r} as a stream, and each batch replaces rows of that table: the next update fails.",
                f'Read it as a batch, dp.read("{source.name}"), follow its changes with .option("readChangeFeed", "true"), or give its aggregation a watermark, so that it only appends.',
                ("read_stream", "table"),
            )
        if source.kind is SourceKind.DELTA:
            yield from _changed_before(case, source)


def first_loads(case: FlowCase) -> Iterator[Finding]:
    """HW501."""
    for leaf in case.stream_leaves:
        kind = _kind(leaf)
        if kind is None or case.is_stub(leaf.path) or any(option in leaf.options for option in _LIMITS[kind]):
            continue
        begins = "startingoffsets" if kind == "kafka" else "initialposition"
        if kind != "files" and leaf.options.get(begins, "latest") == "latest":
            continue  # nothing of the past is read
        names = ("subscribe", "subscribepattern", "streamname")
        what = next((leaf.options[name] for name in names if name in leaf.options), leaf.path)
        option = _OPTION[kind]
        yield case.find(
            "HW501",
            f"Nothing limits a batch from {what!r}: the first update reads all that is there at once.",
            f'If that is much, set .option("{option}", ...): the update then takes it in several batches.',
            ("load", "table", *_FILES),
        )


def large_first_loads(case: FlowCase) -> Iterator[Finding]:
    """HW501 of Delta tables: their own limit is in files, whatever their size."""
    for source in case.pipeline.manifest.flow(case.flow.name).sources:
        if not source.streaming or source.kind is not SourceKind.DELTA:
            continue
        if any(name.lower() in _BOUNDS_OF_DELTA for name in source.options):
            continue
        size = _first_batch(located(case.pipeline.project.warehouse, source.location or source.path or ""))
        if size is not None and size > _LARGE:
            yield case.find(
                "HW501",
                f"The first update reads about {size >> 30} GB of {source.name or source.location!r} in one batch: {_FILES_OF_DELTA} "
                "files, which is the limit where none is set.",
                'Set .option("maxBytesPerTrigger", "10g"): the update then takes it in several batches. Or load it as one batch and go '
                "on from there: `headwater backfill DIR --tables NAME --then-stream`.",
                ("table", "load", "read_stream"),
            )


def _first_batch(table: Place) -> int | None:
    """The bytes of the files that the first batch from a table reads, by their mean size; None where there is no table."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from deltalake.exceptions import DeltaError

    try:
        files = pa.table(delta_table(table).get_add_actions())
    except (DeltaError, OSError, *STORE_ERRORS):
        return None
    count, total = int(files.num_rows), int(pc.sum(files.column("size_bytes")).as_py() or 0)
    return total * min(count, _FILES_OF_DELTA) // max(count, 1)


def _tolerates(case: FlowCase, source: SourceEntry) -> bool:
    if any(source.options.get(key) == "true" for key in ("skipChangeCommits", "readChangeFeed")):
        return True
    end = f"/{(source.location or source.name).rstrip('/').rpartition('/')[2]}"
    leaves = [leaf for leaf in case.stream_leaves if f"/{leaf.path.strip('/')}".endswith(end)]
    return any(leaf.options.get(option, "false").lower() == "true" for leaf in leaves for option in _TOLERANT)


def _changed_before(case: FlowCase, source: SourceEntry) -> Iterator[Finding]:
    from deltalake.exceptions import TableNotFoundError

    path = located(case.pipeline.project.warehouse, source.location or source.path or "")
    try:
        history = delta_table(path).history(200)
    except (TableNotFoundError, OSError, *STORE_ERRORS):
        return
    changes = sorted({str(commit.get("operation")) for commit in history} & _CHANGES)
    overwritten = any(_overwrites(path, commit) for commit in history)
    if changes or overwritten:
        named = ", ".join([*changes, "overwrites"] if overwritten else changes)
        yield case.find(
            "HW202",
            f"It reads the table {path.name!r} as a stream, and that table gets updates ({named} in its log): "
            "the stream fails at the next one.",
            _WHOLE if overwritten else _CORRECTED,
            ("table", "load", "read_stream"),
        )


def _overwrites(table: Place, commit: Mapping[str, Any]) -> bool:
    """Whether a commit put other rows in the place of those that were there: the first write of a table, or compaction, does not."""
    parameters = commit.get("operationParameters") or {}
    modes = {str(parameters.get(name)).lower() for name in ("mode", "outputMode")}
    operation = str(commit.get("operation"))
    if not (modes & {"overwrite", "complete"} or operation in _REPLACES or "REPLACE TABLE" in operation):
        return False
    try:
        read = read_commit(table, int(commit["version"]))
    except SourceUnreachable:  # damage is for the update's own checks
        return False
    return read is not None and read.removes_data


def _kind(leaf: StreamLeaf) -> str | None:
    for kind in ("kafka", "kinesis"):
        if kind in leaf.format:
            return kind
    # Delta reads at most a thousand files at a time by default.
    short = leaf.format.rpartition(".")[2].removesuffix("fileformat")
    return "files" if short in _FILES else None
