"""Files that can't be read at all: found when a batch fails on one, and excluded from the batch as a whole.

A stream always reads strictly, so the normal case costs nothing. Where it fails on a file, and the table has a quarantine,
the files of the failed batch are read again, strictly, to find all damaged ones. The stream then restarts with a filter on
file names at its leaf, so that Spark never opens them: none of their rows gets in, and any other read failure is still a
failure.

Decision 0063.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlparse

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headwater.checkpoints.offsets import files_seen, last_committed_batch, last_planned_batch, read_offsets
from headwater.storage.place import Place, is_s3
from headwater_spark.java_classes import java_class
from headwater_spark.messages.exception_text import causes_of
from headwater_spark.messages.known_exceptions import REFUSED_RECORD, shows
from headwater_spark.plans.plan_walk import items, pair_of, simple_name
from headwater_spark.rules.source_records import frame_of
from headwater_spark.sources.cloud_files.new_files import file_uri
from headwater_spark.sources.plan_sources import MARK

# A file with other types than the schema, or that was deleted, is not damaged; nor is a row that FAILFAST refuses.
_DAMAGED = re.compile(
    r"\[FAILED_READ_FILE\.(?:NO_HINT|CANNOT_READ_FILE_FOOTER)\][^\n]*? file (\S+?)\.?(?:\s|$)"
)
_OF_STREAMS = {"path", "maxfilespertrigger", "maxbytespertrigger", "latestfirst", "cleansource", "maxfileage"}
_STREAMS = ("StreamingRelation", "StreamingRelationV2")
# Gives the messages of an error and its causes, outermost first.
Messages = Callable[[BaseException], list[str]]


@dataclass(frozen=True)
class UnreadableFile:
    """A file of a planned batch. ``source``: which of the query's streams; ``modified``: ms since 1970; ``size``: bytes."""

    path: str
    source: int
    batch_id: int
    modified: int
    size: int | None
    error: str

    @property
    def uri(self) -> str:
        """The file as the quarantine names files."""
        return _uris(self.path)[0]

    @property
    def details(self) -> dict[str, Any]:
        """What the quarantine stores about it in place of a row."""
        return {
            "path": self.path,
            "source": self.source,
            "size": self.size,
            "modified_ms": self.modified,
            "error": self.error,
        }


def damaged_file(messages: Sequence[str]) -> str | None:
    """The path of the file that could not be read, None where something else failed."""
    causes = causes_of(messages)
    if shows(causes, REFUSED_RECORD):
        return None
    failed = next((match for cause in causes if (match := _DAMAGED.match(cause.message))), None)
    return None if failed is None else _path(failed[1])


def find_unreadable(
    frame: DataFrame, checkpoint: Place, messages: Messages, known: Sequence[UnreadableFile]
) -> list[UnreadableFile]:
    """The files of the failed batch that can't be read, without those already ``known``.

    Args:
        frame: the flow's query.
        checkpoint: the epoch's folder.
        messages: gives the messages of an error.
    """
    batch_id = last_planned_batch(checkpoint)
    if batch_id is None or batch_id == last_committed_batch(checkpoint):
        return []
    leaves, reads = stream_leaves(frame), _all_streams(frame)
    if len(reads) != len(read_offsets(checkpoint, batch_id).sources):
        return []
    unreadable: list[UnreadableFile] = []
    for source, leaf in enumerate(leaves):
        if reads_files(leaf):
            excluded = {file.path for file in known if file.source == source}
            # The offset log has a line for each read of a stream; its files have one log.
            line = next(index for index, read in enumerate(reads) if read.equals(leaf))
            times = _files(checkpoint, source, line, batch_id)
            reader = StrictReader.of(leaf, frame.sparkSession, messages)
            for path, error in _damaged(reader, times.keys() - excluded):
                size = _size(frame.sparkSession, path)
                unreadable.append(UnreadableFile(path, source, batch_id, times[path], size, error))
    return unreadable


def without_files(frame: DataFrame, files: Sequence[UnreadableFile]) -> DataFrame:
    """The query over its sources without these files; Spark opens none of them."""
    if not files:
        return frame
    session = frame.sparkSession
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
    leaves = stream_leaves(frame)

    def replaced(leaf: Any) -> Any:
        source = next((index for index, stream in enumerate(leaves) if stream.equals(leaf)), None)
        excluded = [uri for file in files if file.source == source for uri in _uris(file.path)]
        if not excluded:
            return None
        filtered = frame_of(leaf, session).where(~F.col("_metadata.file_path").isin(excluded))
        return filtered._jdf.queryExecution().analyzed()  # noqa: SLF001

    return frame_of(with_leaves(plan, replaced) or plan, session)


def with_leaves(node: Any, replaced: Callable[[Any], Any]) -> Any:
    """A plan with leaves replaced; None where no leaf changes."""
    if node.children().isEmpty():
        return replaced(node)
    children, changed = node.children(), False
    for index, child in enumerate(items(children)):
        if (new := with_leaves(child, replaced)) is not None:
            children, changed = children.updated(index, new), True
    return node.withNewChildren(children) if changed else None


@dataclass(frozen=True)
class StrictReader:
    """Reads files of a stream the way the stream does, as a batch, and completely."""

    session: SparkSession
    source_format: str
    options: Mapping[str, str]
    schema: StructType
    messages: Messages
    root: str | None = None

    @classmethod
    def of(cls, leaf: Any, session: SparkSession, messages: Messages) -> StrictReader:
        """The reader of a stream of files."""
        source = leaf.dataSource()
        declared = dict(pair_of(pair) for pair in items(source.options().toSeq()))
        options = {
            k: v for k, v in declared.items() if k.lower() not in _OF_STREAMS and not k.startswith(MARK)
        }
        columns = StructType.fromJson(json.loads(leaf.schema().json()))
        schema = StructType([field for field in columns.fields if field.name != "_metadata"])
        folder = next(value for key, value in declared.items() if key.lower() == "path")
        root = re.split(r"/[^/]*[\\{}\[\]*?]", _path(folder))[0]
        return cls(session, str(source.className()), options, schema, messages, root)

    def frame(self, paths: Sequence[str]) -> DataFrame:
        """The rows of files."""
        # File names may contain glob characters.
        escaped = [re.sub(r"([\\{}\[\]*?])", r"\\\1", path) for path in paths]
        reader = self.session.read.format(self.source_format).options(**self.options).schema(self.schema)
        if self.root is not None and all(path.startswith(self.root) for path in paths):
            reader = reader.option("basePath", self.root)  # for partition columns in the path
        return reader.option("ignoreCorruptFiles", "false").load(escaped)

    def failure(self, paths: Sequence[str], *, others: bool = False) -> tuple[str, str] | None:
        """The first damaged file, and the cause; None where all can be read, or something else fails.

        Args:
            others: raise any other failure.
        """
        try:
            self.frame(paths).write.format("noop").mode("overwrite").save()
        except (PySparkException, Py4JError) as error:
            messages = self.messages(error)
            path = damaged_file(messages)
            if path is None and others:
                raise
            return None if path is None else (path, messages[-1].partition("\n")[0][:500])
        return None


def reads_files(leaf: Any) -> bool:
    """Whether a leaf is a stream from a folder of files."""
    if simple_name(leaf) != "StreamingRelation":
        return False
    options = {str(pair._1()).lower() for pair in items(leaf.dataSource().options().toSeq())}  # noqa: SLF001
    return "path" in options and "delta" not in str(leaf.dataSource().className()).lower()


def _damaged(reader: StrictReader, paths: set[str]) -> Iterator[tuple[str, str]]:
    """Read all files together, until none fails; a failing one is read by itself only to confirm it."""
    remaining = set(paths)
    while remaining and (failure := reader.failure(sorted(remaining))) is not None:
        path = failure[0]
        if path not in remaining:
            return
        remaining.discard(path)
        if (alone := reader.failure([path])) is not None:
            yield path, alone[1]


def stream_leaves(frame: DataFrame) -> list[Any]:
    """The streams of a query, each once, in the order in which a checkpoint numbers them."""
    leaves: list[Any] = []
    for leaf in _all_streams(frame):
        if not any(leaf.equals(other) for other in leaves):
            leaves.append(leaf)
    return leaves


def _all_streams(frame: DataFrame) -> list[Any]:
    leaves = items(frame._jdf.queryExecution().analyzed().collectLeaves())  # noqa: SLF001 - no public API
    return [leaf for leaf in leaves if simple_name(leaf) in _STREAMS]


def _files(checkpoint: Place, source: int, line: int, batch_id: int) -> dict[str, int]:
    """The files of a batch, and when each was last modified. ``line``: of the offset log."""
    first = _log_offset(checkpoint, line, batch_id - 1) if batch_id else -1
    last = _log_offset(checkpoint, line, batch_id)
    files = files_seen(checkpoint, source, up_to=last)
    return {file.path: file.timestamp for file in files if file.batch_id > first}


def _log_offset(checkpoint: Place, line: int, batch_id: int) -> int:
    offset = read_offsets(checkpoint, batch_id).source(line)
    return int(offset["logOffset"]) if isinstance(offset, dict) and "logOffset" in offset else -1


def _size(session: SparkSession, path: str) -> int | None:
    try:
        jvm: Any = session._jvm  # noqa: SLF001
        file = java_class(jvm, "org.apache.hadoop.fs.Path")(path)
        system = file.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001
        return int(system.getFileStatus(file).getLen())
    except Py4JError:  # the size is only for information
        return None


def _path(uri: str) -> str:
    url = urlparse(uri)
    return unquote(url.path) if url.scheme in ("", "file") else unquote(uri)


def _uris(path: str) -> tuple[str, ...]:
    """A path in the spellings that Spark uses for it, first that of ``input_file_name``."""
    if not path.startswith("/"):
        return (file_uri(path) if is_s3(path) else path,)
    short = file_uri(path)
    return short.replace("file:", "file://", 1), short
