"""The sources of a query, taken from its analysed plan: exact whatever spelling the user chose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame

from headwater.definitions.source import SourceKind
from headwater.event_log.redaction import public_address
from headwater.graph.manifest import SourceEntry
from headwater.storage.place import Place, is_below, is_s3, of_spark
from headwater_spark.plans.plan_walk import (
    class_name,
    descends_from,
    items,
    pair_of,
    plan_leaves,
    simple_name,
)

# How a cloudFiles read says what its files are: JSON may be read as text.
MARK = "headwater."
FORMAT_OPTION = f"{MARK}format"
OVERWRITES_OPTION = f"{MARK}allowoverwrites"
# Where its files are, where Spark was given another spelling of it.
PATH_OPTION = f"{MARK}path"
_FILE_FORMATS = {"json", "csv", "parquet", "text", "orc", "avro", "xml", "binaryfile"}
# The last two refer to what stands in the plan itself, whose own leaves are listed.
_CONSTANT = {"LocalRelation", "OneRowRelation", "Range", "CommandResult", "CTERelationRef", "UnionLoopRef"}
# What lag, advice and the preflight checks need; no other options are recorded, so no secrets are.
_KEPT = {
    "kafka.bootstrap.servers", "kafka.security.protocol", "subscribe", "subscribepattern", "assign", "startingoffsets", "pathglobfilter",
    "recursivefilelookup", f"{MARK}modifiedafter", f"{MARK}modifiedbefore", FORMAT_OPTION, OVERWRITES_OPTION, "readchangefeed", "startingversion", "startingtimestamp", "skipchangecommits", "maxfileage",
    "ignoredeletes", "ignorechanges", "failondataloss", "ignoremissingfiles", "maxfilespertrigger",
    "maxbytespertrigger", "maxoffsetspertrigger", "minpartitions",
}  # fmt: skip
# Of those, what a stream from a Delta table may have.
DELTA_OPTIONS = frozenset(
    {
        "readchangefeed",
        "skipchangecommits",
        "ignoredeletes",
        "ignorechanges",
        "failondataloss",
        "startingversion",
        "startingtimestamp",
        "maxfilespertrigger",
        "maxbytespertrigger",
    }
)
# Options of other sources may have these names as well.
_KEPT_OF_KINESIS = {
    "streamname": "streamName", "region": "region", "endpoint": "endpoint", "maxrecordspertrigger": "maxRecordsPerTrigger", f"{MARK}credentials": f"{MARK}credentials",
}  # fmt: skip
_SPELLING = {
    "subscribepattern": "subscribePattern", "startingoffsets": "startingOffsets", "pathglobfilter": "pathGlobFilter",
    "recursivefilelookup": "recursiveFileLookup", "readchangefeed": "readChangeFeed",
    "startingversion": "startingVersion", "startingtimestamp": "startingTimestamp",
    "skipchangecommits": "skipChangeCommits", "maxfileage": "maxFileAge",
    "ignoredeletes": "ignoreDeletes", "ignorechanges": "ignoreChanges", "failondataloss": "failOnDataLoss",
    "ignoremissingfiles": "ignoreMissingFiles", "maxfilespertrigger": "maxFilesPerTrigger",
    "maxbytespertrigger": "maxBytesPerTrigger", "maxoffsetspertrigger": "maxOffsetsPerTrigger", "minpartitions": "minPartitions",
    OVERWRITES_OPTION: "allowOverwrites", f"{MARK}modifiedafter": "modifiedAfter", f"{MARK}modifiedbefore": "modifiedBefore",
}  # fmt: skip


@dataclass(frozen=True)
class TableNames:
    """How paths of tables lead back to datasets: stand-ins by their folder, stored tables by their location."""

    stubs: Place
    warehouse: Place
    datasets_by_location: Mapping[str, str]

    def entry(self, path: str, *, streaming: bool, options: Mapping[str, str]) -> SourceEntry:
        """The source for a table's path."""
        folder = of_spark(self.warehouse, _local(path))
        if is_below(folder, self.stubs):
            name = folder.name
            location = next(
                (loc for loc, dataset in self.datasets_by_location.items() if dataset == name), None
            )
            return SourceEntry(
                kind=SourceKind.DATASET,
                streaming=streaming,
                name=name,
                location=location,
                format="delta",
                options=dict(options),
            )
        inside = is_below(folder, self.warehouse)
        # An address may have a login in it.
        elsewhere = public_address(path) if "://" in path else str(folder)
        location = str(folder)[len(str(self.warehouse)) :].lstrip("/") if inside else elsewhere
        name = self.datasets_by_location.get(location, "")
        kind = SourceKind.DATASET if name else SourceKind.DELTA
        return SourceEntry(
            kind=kind,
            streaming=streaming,
            name=name,
            location=location,
            format="delta",
            options=dict(options),
        )


def plan_sources(frame: DataFrame, names: TableNames) -> tuple[SourceEntry, ...]:
    """The sources of ``frame``: streaming ones first, in the order of the checkpoint's offsets, each once."""
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - the plan has no public face in Python
    entries = [entry for node in plan_leaves(plan) for entry in _entries(node, names)]
    unique = list({entry.model_dump_json(): entry for entry in entries}.values())
    return tuple([e for e in unique if e.streaming] + [e for e in unique if not e.streaming])


def _entries(node: Any, names: TableNames) -> list[SourceEntry]:
    kind = simple_name(node)
    if kind == "StreamingRelation":
        source = node.dataSource()
        return [_entry(str(source.className()), _scala_map(source.options()), names, streaming=True)]
    if kind == "StreamingRelationV2":
        options = {str(k): str(v) for k, v in dict(node.extraOptions()).items()}
        return [_entry(str(node.sourceName()), options, names, streaming=True)]
    if kind == "LogicalRelation":
        return _batch_entries(node.relation(), names)
    if kind == "DataSourceV2Relation":
        options = {str(k): str(v) for k, v in dict(node.options()).items()}
        return [_entry(str(node.table().name()), options, names, streaming=False)]
    # What a CTE reads is among the leaves itself, once for all places that name it.
    if kind in _CONSTANT or kind == "CTERelationRef" or kind.startswith("Unresolved"):
        return []
    return [SourceEntry(kind=SourceKind.OTHER, streaming=False, format=kind)]


def _batch_entries(relation: Any, names: TableNames) -> list[SourceEntry]:
    # Delta makes a nameless subclass of it.
    if not descends_from(relation, "HadoopFsRelation"):
        return [SourceEntry(kind=SourceKind.OTHER, streaming=False, format=simple_name(relation))]
    options = {key: value for key, value in _scala_map(relation.options()).items() if key.lower() in _KEPT}
    paths = [str(path.toString()) for path in items(relation.location().rootPaths())]
    source_format = str(relation.fileFormat().toString()).lower()
    is_stub = any(is_below(of_spark(names.warehouse, _local(path)), names.stubs) for path in paths)
    # It calls itself Parquet; its class does not.
    if is_stub or "DeltaParquet" in class_name(relation.fileFormat()):
        return [names.entry(path, streaming=False, options={}) for path in paths]
    entry = partial(SourceEntry, kind=SourceKind.FILES, streaming=False, format=source_format)
    return [entry(path=_local(path), options=options) for path in paths]


def _entry(
    source_format: str, all_options: Mapping[str, str], names: TableNames, *, streaming: bool
) -> SourceEntry:
    options = {_SPELLING.get(k.lower(), k): v for k, v in all_options.items() if k.lower() in _KEPT}
    paths = {key.lower(): value for key, value in all_options.items() if key.lower() in ("path", PATH_OPTION)}
    path = paths.get(PATH_OPTION, paths.get("path"))
    lowered, entry = source_format.lower(), partial(SourceEntry, streaming=streaming)
    if path is not None and is_below(of_spark(names.warehouse, _local(path)), names.stubs):
        return names.entry(path, streaming=streaming, options=options)
    if "delta" in lowered and path is not None:
        return names.entry(path, streaming=streaming, options=options)
    if "kafka" in lowered:
        return entry(
            kind=SourceKind.KAFKA, name=options.get("subscribe", ""), format="kafka", options=options
        )
    if lowered.startswith("kinesis"):
        public = {_KEPT_OF_KINESIS.get(k.lower()): _local(v) for k, v in all_options.items()}
        recorded = {name: value for name, value in public.items() if name is not None}
        name = recorded.get("streamName", "")
        return entry(kind=SourceKind.KINESIS, name=name, format="kinesis", options=recorded)
    short = lowered.rpartition(".")[2].removesuffix("fileformat")
    form = options.pop(FORMAT_OPTION, short)
    if path is not None and short in _FILE_FORMATS:
        return entry(kind=SourceKind.FILES, path=_local(path), format=form, options=options)
    return entry(kind=SourceKind.OTHER, path=path and _local(path), format=source_format, options=options)


def _scala_map(mapping: Any) -> dict[str, str]:
    return dict(pair_of(pair) for pair in items(mapping.toSeq()))


def _local(path: str) -> str:
    url = urlparse(path)
    if is_s3(path) and "@" not in url.netloc:
        return path  # names of objects may have any sign; the address has no secret
    # An address of a store may have a login or a signature in it.
    return unquote(url.path) if url.scheme == "file" else public_address(path) if url.scheme else path
