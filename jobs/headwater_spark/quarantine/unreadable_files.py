"""Files that can't be read at all: found when a batch fails over one, and kept out of it as a whole.

A stream always reads strictly; the ordinary run pays nothing. Where it fails over a file, and the table has a quarantine,
the files of the batch that failed are read once more, strictly, to find all that are damaged. The stream then starts
again with a condition on the files' names at its leaf, by which Spark never opens them: no row of theirs comes in, and
any other failure to read is a failure still.

Decision 0063.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headwater.checkpoints.offsets import files_seen, last_committed_batch, last_planned_batch, read_offsets
from headwater_spark.messages.exception_text import causes_of
from headwater_spark.messages.known_exceptions import REFUSED_RECORD, shows
from headwater_spark.plans.plan_walk import class_name, items, pair_of, simple_name
from headwater_spark.rules.source_records import frame_of
from headwater_spark.sources.cloud_files.new_files import file_uri
from headwater_spark.sources.plan_sources import MARK

# A file that has another type than the schema, or that is gone, is not damaged; nor is a row that FAILFAST refuses.
_DAMAGED = re.compile(
    r"\[FAILED_READ_FILE\.(?:NO_HINT|CANNOT_READ_FILE_FOOTER)\][^\n]*? file (\S+?)\.?(?:\s|$)"
)
_OF_STREAMS = {"path", "maxfilespertrigger", "maxbytespertrigger", "latestfirst", "cleansource", "maxfileage"}
_STREAMS = ("StreamingRelation", "StreamingRelationV2")
# What an error and its causes say, outermost first.
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
    def told(self) -> dict[str, Any]:
        """What the quarantine keeps of it in the place of a row."""
        return {
            "path": self.path,
            "source": self.source,
            "size": self.size,
            "modified_ms": self.modified,
            "error": self.error,
        }


def damaged_file(messages: Sequence[str]) -> str | None:
    """The path of the file that a failure to read is about, None where something else failed."""
    causes = causes_of(messages)
    if shows(causes, REFUSED_RECORD):
        return None
    found = next((match for cause in causes if (match := _DAMAGED.match(cause.message))), None)
    return None if found is None else _path(found[1])


def find_unreadable(
    frame: DataFrame, checkpoint: Path, messages: Messages, known: Sequence[UnreadableFile]
) -> list[UnreadableFile]:
    """The files of the batch that failed, besides those that are ``known``, which can't be read.

    Args:
        frame: the flow's query.
        checkpoint: the epoch's folder.
        messages: reads an error.
    """
    batch_id = last_planned_batch(checkpoint)
    if batch_id is None or batch_id == last_committed_batch(checkpoint):
        return []
    leaves, every = stream_leaves(frame), _all_streams(frame)
    if len(every) != len(read_offsets(checkpoint, batch_id).sources):
        return []
    found: list[UnreadableFile] = []
    for source, leaf in enumerate(leaves):
        if reads_files(leaf):
            mine = {file.path for file in known if file.source == source}
            # The offset log has a line for each time that a stream is read, the files have one log.
            line = next(index for index, one in enumerate(every) if one.equals(leaf))
            files = _files(checkpoint, source, line, batch_id)
            seen = {path: time for path, time in files.items() if path not in mine}
            for path, error in _damaged(StrictReader.of(leaf, frame.sparkSession, messages), set(seen)):
                size = _size(frame.sparkSession, path)
                found.append(UnreadableFile(path, source, batch_id, seen[path], size, error))
    return found


def without_files(frame: DataFrame, files: Sequence[UnreadableFile]) -> DataFrame:
    """The query over its sources without these files: not one of them is opened."""
    if not files:
        return frame
    session = frame.sparkSession
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
    leaves = stream_leaves(frame)

    def replaced(leaf: Any) -> Any:
        source = next((index for index, one in enumerate(leaves) if one.equals(leaf)), None)
        out = [uri for file in files if file.source == source for uri in _uris(file.path)]
        if not out:
            return None
        rest = frame_of(leaf, session).where(~F.col("_metadata.file_path").isin(out))
        return rest._jdf.queryExecution().analyzed()  # noqa: SLF001

    return frame_of(with_leaves(plan, replaced) or plan, session)


def with_leaves(node: Any, replaced: Callable[[Any], Any]) -> Any:
    """A plan with other leaves; None where each is to stay."""
    if node.children().isEmpty():
        return replaced(node)
    children, changed = node.children(), False
    for index, child in enumerate(items(children)):
        if (new := with_leaves(child, replaced)) is not None:
            children, changed = children.updated(index, new), True
    return node.withNewChildren(children) if changed else None


@dataclass(frozen=True)
class StrictReader:
    """Reads files of a stream the way the stream does, as a batch, and whole."""

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
        given = dict(pair_of(pair) for pair in items(source.options().toSeq()))
        options = {k: v for k, v in given.items() if k.lower() not in _OF_STREAMS and not k.startswith(MARK)}
        columns = StructType.fromJson(json.loads(leaf.schema().json()))
        schema = StructType([field for field in columns.fields if field.name != "_metadata"])
        folder = next(value for key, value in given.items() if key.lower() == "path")
        root = re.split(r"/[^/]*[\\{}\[\]*?]", _path(folder))[0]
        return cls(session, str(source.className()), options, schema, messages, root)

    def frame(self, paths: Sequence[str]) -> DataFrame:
        """The rows of files."""
        # Names may have what patterns are made of.
        named = [re.sub(r"([\\{}\[\]*?])", r"\\\1", path) for path in paths]
        reader = self.session.read.format(self.source_format).options(**self.options).schema(self.schema)
        if self.root is not None and all(path.startswith(self.root) for path in paths):
            reader = reader.option("basePath", self.root)  # the columns that are part of the path
        return reader.option("ignoreCorruptFiles", "false").load(named)

    def failure(self, paths: Sequence[str], *, others: bool = False) -> tuple[str, str] | None:
        """The first file found to be damaged, and the cause; None where all can be read, or something else fails.

        Args:
            others: whether another failure is to be raised.
        """
        try:
            self.frame(paths).write.format("noop").mode("overwrite").save()
        except (PySparkException, Py4JError) as error:
            said = self.messages(error)
            path = damaged_file(said)
            if path is None and others:
                raise
            return None if path is None else (path, said[-1].partition("\n")[0][:500])
        return None


def reads_files(leaf: Any) -> bool:
    """Whether a leaf is a stream from a folder of files."""
    if not class_name(leaf).endswith(".StreamingRelation"):
        return False
    options = {str(pair._1()).lower() for pair in items(leaf.dataSource().options().toSeq())}  # noqa: SLF001
    return "path" in options and "delta" not in str(leaf.dataSource().className()).lower()


def _damaged(reader: StrictReader, paths: set[str]) -> Iterator[tuple[str, str]]:
    """All together, for as long as one fails; one by itself only to be sure."""
    left = set(paths)
    while left and (failure := reader.failure(sorted(left))) is not None:
        path = failure[0]
        if path not in left:
            return
        left.discard(path)
        if (alone := reader.failure([path])) is not None:
            yield path, alone[1]


def stream_leaves(frame: DataFrame) -> list[Any]:
    """The streams of a query, each once, in the order in which a checkpoint numbers them."""
    found: list[Any] = []
    for leaf in _all_streams(frame):
        if not any(leaf.equals(one) for one in found):
            found.append(leaf)
    return found


def _all_streams(frame: DataFrame) -> list[Any]:
    leaves = items(frame._jdf.queryExecution().analyzed().collectLeaves())  # noqa: SLF001 - no public face
    return [leaf for leaf in leaves if simple_name(leaf) in _STREAMS]


def _files(checkpoint: Path, source: int, line: int, batch_id: int) -> dict[str, int]:
    """The files of a batch, and when each was changed last. ``line``: of the offset log."""
    first = _log_offset(checkpoint, line, batch_id - 1) if batch_id else -1
    last = _log_offset(checkpoint, line, batch_id)
    seen = files_seen(checkpoint, source, up_to=last)
    return {file.path: file.timestamp for file in seen if file.batch_id > first}


def _log_offset(checkpoint: Path, line: int, batch_id: int) -> int:
    offset = read_offsets(checkpoint, batch_id).source(line)
    return int(offset["logOffset"]) if isinstance(offset, dict) and "logOffset" in offset else -1


def _size(session: SparkSession, path: str) -> int | None:
    try:
        jvm: Any = session._jvm  # noqa: SLF001
        found = getattr(jvm, "org.apache.hadoop.fs.Path")(path)
        system = found.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001
        return int(system.getFileStatus(found).getLen())
    except Py4JError:  # it is told for people alone
        return None


def _path(uri: str) -> str:
    url = urlparse(uri)
    return unquote(url.path) if url.scheme in ("", "file") else unquote(uri)


def _uris(path: str) -> tuple[str, ...]:
    """A path in the spellings that Spark has for it, first that of ``input_file_name``."""
    if not path.startswith("/"):
        return (path,)
    short = file_uri(path)
    return short.replace("file:", "file://", 1), short
