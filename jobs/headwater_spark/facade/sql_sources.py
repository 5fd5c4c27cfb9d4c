"""Sources that SQL text reads through functions of the closed platform: ``read_files(...)``, ``read_kafka(...)`` and kin.

Spark's parser finds the calls. Each becomes the read that the facade has for it, with the same options.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from headwater.errors import InvalidSourceOption
from headwater.runtime.secret_values import declared_secret
from headwater.suggestions import did_you_mean, nearest
from headwater_spark.plans.names import quoted
from headwater_spark.plans.plan_walk import items, simple_name
from headwater_spark.sources.cloud_files.hints import apply_hints
from headwater_spark.sources.cloud_files.options import CLOUD_FILES_NAMES, FORMATS

if TYPE_CHECKING:
    from headwater_spark.facade.pipeline_session import PipelineSession

_FUNCTION = "UnresolvedTableValuedFunction"
# Sources that open Spark lacks; their formats are refused by name.
_NOT_HERE = ("read_pubsub", "read_pulsar")
_FUNCTIONS = ("read_files", "cloud_files", "read_kafka", "read_kinesis", *_NOT_HERE)
# Options of streams of files, which a batch read would ignore.
_STREAM_ONLY = {name.lower() for name in CLOUD_FILES_NAMES} - {
    "format",
    "infercolumntypes",
    "inferschema",
    "schemahints",
}
_KAFKA = (
    "subscribe", "subscribePattern", "assign", "startingOffsets", "endingOffsets", "startingTimestamp", "endingTimestamp",
    "startingOffsetsByTimestamp", "endingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy", "failOnDataLoss",
    "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition",
    "groupIdPrefix", "includeHeaders",
)  # fmt: skip


@dataclass(frozen=True)
class SourceCall:
    """A call in a SQL text: its position with its alias (first and last character), and its arguments.

    ``alias`` and ``columns``: the names that the text gives to the rows and their columns, empty where it gives none.
    ``watermark``: the first and last character of its WATERMARK clause, if it has one.
    """

    function: str
    streaming: bool
    start: int
    stop: int
    alias: str
    columns: tuple[str, ...]
    arguments: tuple[Any, ...]
    watermark: tuple[int, int] | None = None

    def replaced_by(self, view: str, text: str, *, streams: bool) -> str:
        """What stands in the place of the call in ``text`` to read a view instead."""
        word = "STREAM " if self.streaming and streams else ""
        names = ", ".join(map(quoted, self.columns))
        clause = f" {text[self.watermark[0] : self.watermark[1] + 1]}" if self.watermark else ""
        return f"{word}{view}{clause} AS {quoted(self.alias or self.function)}" + (
            f"({names})" if names else ""
        )


def source_calls(
    plan: Any, alias: str = "", columns: tuple[str, ...] = (), watermark: tuple[int, int] | None = None
) -> Iterator[SourceCall]:
    """The calls in a parsed plan. ``alias``, ``columns``, ``watermark``: what the operators right above give to its rows."""
    kind = simple_name(plan)
    if kind == _FUNCTION:
        yield from _call(plan, alias, columns, watermark)
    if kind == "SubqueryAlias":
        alias = str(plan.alias())
    elif kind == "UnresolvedTVFAliases":
        columns = tuple(str(name) for name in items(plan.outputNames()))
    elif kind == "UnresolvedEventTimeWatermark":
        origin = plan.origin()
        watermark = (int(origin.startIndex().get()), int(origin.stopIndex().get()))
    elif kind != "NamedStreamingRelation":
        alias, columns, watermark = "", (), None
    for child in items(plan.children()):
        yield from source_calls(child, alias, columns, watermark)
    for inner in _plans_inside(plan, kind):
        yield from source_calls(inner)


def _plans_inside(plan: Any, kind: str) -> Iterator[Any]:
    """The plans of an operator's CTEs and of the subqueries in its expressions."""
    if kind == "UnresolvedWith":
        yield from (relation._2() for relation in items(plan.cteRelations()))  # noqa: SLF001 - of a Scala tuple
    yield from items(plan.subqueries())


def frame_of(call: SourceCall, session: PipelineSession) -> DataFrame:
    """The rows that a call reads.

    Raises:
        InvalidSourceOption: an argument that is not a literal, is missing, or can't be honoured.
        UnsupportedSource: a source that is not there.
    """
    if call.function in _NOT_HERE:
        return session.readStream.format(call.function.removeprefix("read_")).load()
    named, positional = _arguments(call)
    if call.function == "read_kafka":
        return _kafka(call, named, session)
    if call.function == "read_kinesis":
        return session.readStream.format("kinesis").options(**named).load()
    if call.function == "cloud_files":
        named = {**named, "format": str(positional[1]) if len(positional) > 1 else ""}
    path = str(positional[0]) if positional else named.pop("path", "")
    if not path:
        raise InvalidSourceOption(f"{call.function} needs the folder to read.", remedy=_example(call))
    named = _file_options(named)
    streaming = call.streaming or call.function == "cloud_files"
    return _files(call, path, named, session) if streaming else _files_at_once(call, path, named, session)


def _file_options(arguments: Mapping[str, str]) -> dict[str, str]:
    """Arguments under the names that Spark's readers have for them."""
    return {
        "pathGlobFilter" if key.lower() == "filenamepattern" else key: value
        for key, value in arguments.items()
    }


def _files(call: SourceCall, path: str, arguments: Mapping[str, str], session: PipelineSession) -> DataFrame:
    own = {name.lower(): name for name in CLOUD_FILES_NAMES}
    for key in arguments:
        near = nearest(key.lower(), own, cutoff=0.85)
        if near and key.lower() not in own:
            # Spark's readers ignore unknown options.
            raise InvalidSourceOption(
                f"{call.function} has no argument {key!r}.", remedy=f"Did you mean {own[near]!r}?"
            )
    schema = next((value for key, value in arguments.items() if key.lower() == "schema"), None)
    options = {
        f"cloudFiles.{key}" if key.lower() in own else key: value
        for key, value in arguments.items()
        if key.lower() != "schema"
    }
    if not any(key.lower() == "cloudfiles.format" for key in options):
        raise InvalidSourceOption(f"{call.function} needs the format of the files.", remedy=_example(call))
    if call.function == "read_files" and not any(k.lower() == "cloudfiles.infercolumntypes" for k in options):
        options["cloudFiles.inferColumnTypes"] = "true"
    reader = session.readStream.format("cloudFiles").options(**options)
    return (reader if schema is None else reader.schema(schema)).load(path)


def _files_at_once(
    call: SourceCall, path: str, arguments: Mapping[str, str], session: PipelineSession
) -> DataFrame:
    named = {key.lower(): value for key, value in arguments.items()}
    source_format = named.pop("format", "")
    if not source_format:
        raise InvalidSourceOption(f"{call.function} needs the format of the files.", remedy=_example(call))
    if named.get("schemaevolutionmode", "").lower() == "none":  # as a batch is anyway
        del named["schemaevolutionmode"]
    for key in named:
        if key in _STREAM_ONLY or key.startswith("cloudfiles."):
            raise InvalidSourceOption(
                f"read_files without STREAM reads all files again each time: {key} can't be honoured there.",
                remedy=f"Write STREAM read_files(...), which takes each file once, or leave {key} out.",
            )
    schema, hints = named.pop("schema", None), named.pop("schemahints", "")
    infer = named.pop("infercolumntypes", named.get("inferschema", "true")).lower() == "true"
    named.pop("inferschema", None)
    options = {key: value for key, value in arguments.items() if key.lower() in named}
    if source_format.lower() == "csv":
        named_header = {"header": "true"} if "header" not in named else {}
        options = {**named_header, "inferSchema": str(infer).lower(), **options}
    elif source_format.lower() == "xml":
        options = {"inferSchema": str(infer).lower(), **options}
    elif source_format.lower() == "json":
        options = {"primitivesAsString": str(not infer).lower(), **options}
    reader = session.read.format(source_format).options(**options)
    if hints and schema is None:
        reader = reader.schema(apply_hints(reader.load(path).schema, hints))
    return (reader if schema is None else reader.schema(schema)).load(path)


def _kafka(call: SourceCall, arguments: Mapping[str, str], session: PipelineSession) -> DataFrame:
    names = {name.lower(): name for name in _KAFKA}
    options = {}
    for key, value in arguments.items():
        if key.lower() == "bootstrapservers":
            options["kafka.bootstrap.servers"] = value
        elif key.lower() in names or key.lower().startswith("kafka."):
            options[names.get(key.lower(), key)] = value
        else:
            raise InvalidSourceOption(
                f"read_kafka has no argument {key!r} here.",
                remedy=did_you_mean(
                    nearest(key, (*_KAFKA, "bootstrapServers")),
                    "Settings of Kafka's client are written as `kafka.security.protocol` => 'SASL_SSL'.",
                ),
            )
    reader: Any = session.readStream if call.streaming else session.read
    frame: DataFrame = reader.format("kafka").options(**options).load()
    return frame


def _call(
    plan: Any, alias: str, columns: tuple[str, ...], watermark: tuple[int, int] | None
) -> Iterator[SourceCall]:
    name = ".".join(str(part) for part in items(plan.name())).lower()
    start, stop = plan.origin().startIndex(), plan.origin().stopIndex()
    if name in _FUNCTIONS and start.isDefined() and stop.isDefined():
        arguments = tuple(items(plan.functionArgs()))
        yield SourceCall(
            name, bool(plan.isStreaming()), start.get(), stop.get(), alias, columns, arguments, watermark
        )


def _arguments(call: SourceCall) -> tuple[dict[str, str], list[str]]:
    named: dict[str, str] = {}
    positional: list[str] = []
    for argument in call.arguments:
        kind = simple_name(argument)
        if kind == "NamedArgumentExpression":
            named[str(argument.key())] = _literal(call, argument.value())
        elif kind == "UnresolvedFunction" and str(argument.nameParts().mkString(".")).lower() == "map":
            parts = [_literal(call, part) for part in items(argument.arguments())]
            named.update(zip(parts[::2], parts[1::2], strict=True))
        else:
            positional.append(_literal(call, argument))
    return named, positional


def _literal(call: SourceCall, expression: Any) -> str:
    """The text of an argument: of a literal, of ``secret('scope', 'key')``, or of such joined by ``||``."""
    kind = simple_name(expression)
    name = str(expression.nameParts().mkString(".")).lower() if kind == "UnresolvedFunction" else kind.lower()
    if name in ("concat", "secret"):
        inner = expression.arguments() if kind == "UnresolvedFunction" else expression.children()
        parts = [_literal(call, part) for part in items(inner)]
        if name == "concat":
            return "".join(parts)
        if len(parts) == 2:
            return declared_secret(parts[0], parts[1])
    if kind != "Literal" or expression.value() is None:
        raise InvalidSourceOption(
            f"{call.function}: {expression.sql()} is not a literal.",
            remedy="Write the value itself; ${key} in the text stands for a value of `configuration` in pipeline.yml.",
        )
    value = expression.value()
    return str(value).lower() if isinstance(value, bool) else str(value)


def _example(call: SourceCall) -> str:
    formats = ", ".join(FORMATS)
    if call.function == "cloud_files":
        return f"Write cloud_files('/data/landing', 'json', map('header', 'true')). Formats: {formats}."
    return f"Write {'STREAM ' if call.streaming else ''}read_files('/data/landing', format => 'json'). Formats: {formats}."
