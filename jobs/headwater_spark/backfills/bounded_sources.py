"""The reads of a definition while it is backfilled: every stream becomes a batch within its limits; the rest is unchanged.

Decision 0110.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F

from headwater.backfills.conditions import BackfillNotPossible, RangeNotReadYet
from headwater.definitions.dataset import DatasetKind
from headwater.graph.registry import Registry
from headwater.storage.place import Place, is_url, of_spark
from headwater_spark.backfills.source_limits import (
    SUBSCRIPTIONS,
    DeltaLimit,
    FilesLimit,
    KafkaLimit,
    Limit,
)
from headwater_spark.execution.added_rows import added_rows
from headwater_spark.facade.source_substitutes import EvaluatedPipeline, Moved, SourceRequest
from headwater_spark.plans.names import quoted
from headwater_spark.plans.plan_walk import input_files
from headwater_spark.sources.kafka_options import kafka_overrides

if TYPE_CHECKING:
    from headwater_spark.resolution.evaluation import Evaluation

# Options for where a stream begins and how fast it reads: a batch begins and ends at its limits.
_OF_STREAMS = (
    "starting", "ending", "maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay", "maxfilespertrigger",
    "maxbytespertrigger", "maxfileage", "latestfirst", "cleansource", "sourcearchivedir", "filenameonly", "headwater.",
)  # fmt: skip

_L = TypeVar("_L", DeltaLimit, KafkaLimit, FilesLimit)


class BoundedSources:
    """Answers the reads of one flow. ``frames``: of the sources on disk, restricted to their limits."""

    bounded = True

    def __init__(self, evaluation: Evaluation, limits: Sequence[Limit]) -> None:
        self._evaluation = evaluation
        self._limits = limits
        self.frames: list[DataFrame] = []

    def has_table(self, name: str) -> bool:  # noqa: ARG002 - the protocol's
        """No rows replace a table."""
        return False

    def narrow(self, registry: Registry, evaluation: EvaluatedPipeline) -> None:
        """Leave the pipeline as it is."""

    def table(self, name: str, session: SparkSession, *, streaming: bool) -> DataFrame | None:
        """The rows of a table that is read as a stream, within its limit."""
        if not streaming:
            return None
        dataset = self._evaluation.names.dataset(name)
        if dataset is not None and dataset.kind is DatasetKind.TEMPORARY_VIEW:
            return self._evaluation.view_frame(dataset)
        path = self._evaluation.find_table(name)
        if path is None:
            raise _unlimited(name)
        return self._delta(path, session)

    def source(self, request: SourceRequest, session: SparkSession) -> DataFrame | Moved | None:
        """The rows of a source that is read as a stream, within its limit; None for one that is read as a batch."""
        if not request.bounded:
            return None
        if request.format == "delta":
            return self._delta(of_spark(self._evaluation.state_folder, request.path or ""), session)
        if request.format == "kafka":
            return self._kafka(request, session)
        if request.format == "cloudfiles":
            return self._cloud_files(request, session)
        return self._files(request, session)

    def _delta(self, table: Place, session: SparkSession) -> DataFrame:
        limit = self._limit(DeltaLimit, lambda each: each.table.resolve() == table.resolve(), str(table))
        frame = _delta_frame(session, limit)
        self.frames.append(frame)
        return frame

    def _kafka(self, request: SourceRequest, session: SparkSession) -> DataFrame:
        topics = tuple(sorted((k, v) for k, v in request.options.items() if k in SUBSCRIPTIONS))
        limit = self._limit(KafkaLimit, lambda each: each.topics == topics, str(dict(topics)))
        zone = session.conf.get("spark.sql.session.timeZone") or "UTC"
        options = _for_batch({**request.options, **kafka_overrides(request.options, zone)})
        ends = json.loads(limit.end)
        if not ends:
            return _reader(session, "kafka", options).load().where(F.lit(False))
        # Assigned by partition: only those that the limit names are read.
        parts = {topic: sorted(map(int, offsets)) for topic, offsets in ends.items()}
        options = {key: value for key, value in options.items() if key not in SUBSCRIPTIONS}
        bounds = {"assign": json.dumps(parts), "startingOffsets": limit.start, "endingOffsets": limit.end}
        return _reader(session, "kafka", {**options, **bounds}).load()

    def _files(self, request: SourceRequest, session: SparkSession) -> DataFrame:
        limit = self._files_limit(request)
        if request.format not in _FILE_FORMATS:
            raise _unlimited(request.format)
        reader = _reader(session, request.format, _for_batch(request.options))
        reader = reader.schema(request.schema) if request.schema is not None else reader
        frame = reader.load(request.path)
        self.frames.append(frame)
        unseen = _unseen(frame, limit)
        name, time = F.col("_metadata.file_path"), F.col("_metadata.file_modification_time")
        columns = [F.col(quoted(column)) for column in frame.columns]
        if unseen:
            frame = frame.where(~name.isin([spelling for uri in unseen for spelling in _spellings(uri)]))
        if limit.after is not None:
            frame = frame.where((time >= F.lit(limit.after)) & (time < F.lit(limit.before)))
        return frame.select(*columns)

    def _cloud_files(self, request: SourceRequest, session: SparkSession) -> Moved:
        limit = self._files_limit(request)
        assert request.path is not None
        if limit.after is not None:
            # modifiedAfter excludes the moment itself.
            after = limit.after - timedelta(microseconds=1)
            return Moved(
                request.path, {"modifiedAfter": after.isoformat(), "modifiedBefore": limit.before.isoformat()}
            )
        recursive = {**_for_batch(request.options), "recursiveFileLookup": "true"}
        glob = {
            key: value for key, value in recursive.items() if key in ("pathglobfilter", "recursiveFileLookup")
        }
        listed = _reader(session, "binaryFile", glob).load(request.path)
        unseen = _unseen(listed, limit)
        if unseen:
            raise RangeNotReadYet(
                f"{len(unseen)} files below {request.path} were not read by the stream yet; one is {unseen[0]}.",
                where=request.path,
                remedy="Run an update (headwater run PIPELINE_DIR), then repeat the command.",
            )
        self.frames.append(listed)
        return Moved(request.path)

    def _files_limit(self, request: SourceRequest) -> FilesLimit:
        path = _folder(request.path or "")
        return self._limit(FilesLimit, lambda each: _folder(each.path) == path, path)

    def _limit(self, kind: type[_L], matches: Callable[[_L], bool], name: str) -> _L:
        limit = next((each for each in self._limits if isinstance(each, kind) and matches(each)), None)
        if limit is None:
            raise _unlimited(name)
        return limit


_FILE_FORMATS = ("json", "csv", "text", "parquet", "orc", "avro", "xml", "binaryfile")


def _delta_frame(session: SparkSession, limit: DeltaLimit) -> DataFrame:
    reader = DataFrameReader(session).format("delta")
    if limit.changes and limit.first is not None:
        feed = {
            "readChangeFeed": "true",
            "startingVersion": str(limit.first),
            "endingVersion": str(limit.last),
        }
        return reader.options(**feed).load(str(limit.table))
    if limit.first is not None:
        return added_rows(session, limit.table, limit.first, limit.last, skip_changes=limit.skips_changes)
    frame = reader.option("versionAsOf", str(max(limit.last, 0))).load(str(limit.table))
    return frame if limit.last >= 0 else frame.where(F.lit(False))


def _unseen(frame: DataFrame, limit: FilesLimit) -> list[str]:
    """The files of a frame that the limit does not include, as Spark names them."""
    if limit.seen is None:
        return []
    return sorted(uri for uri in input_files(frame) if _file(uri) not in limit.seen)


def _spellings(uri: str) -> tuple[str, ...]:
    """A file's URI as rows of Spark's may have it: of a disk with one slash and with three, of a store as it is."""
    if is_url(uri):
        return (uri,)
    bare = uri.removeprefix("file:").lstrip("/")
    return f"file:/{bare}", f"file:///{bare}"


def _for_batch(options: Any) -> dict[str, str]:
    return {key: value for key, value in options.items() if not key.lower().startswith(_OF_STREAMS)}


def _reader(session: SparkSession, source: str, options: Any) -> DataFrameReader:
    return DataFrameReader(session).format(source).options(**options)


def _unlimited(name: str) -> BackfillNotPossible:
    return BackfillNotPossible(
        f"The definition reads {name!r} as a stream, and it is not known how far it has been read.",
        remedy="Backfill a table that reads this one's rows, or refill it with --full-refresh.",
    )


def _folder(path: str) -> str:
    """A source's path as a limit and a read may both have it."""
    url = urlparse(path)
    return (unquote(url.path) if url.scheme == "file" else path).rstrip("/")


def _file(uri: str) -> str:
    """The path or the address of a file that Spark names by its URI, as the log of a file source has it."""
    return unquote(uri) if is_url(uri) else _folder(uri)
