"""Checks of a sink before a row is sent."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType

from headwater.definitions.flow import Flow
from headwater.definitions.sink import Sink, SinkKind
from headwater.errors import QueryFailed, UnsupportedArgument
from headwater.event_log.redaction import public_address
from headwater_spark.active_session import made_active
from headwater_spark.java_classes import java_class
from headwater_spark.messages.source_errors import describe

_TEXT = (StringType, BinaryType)
_KAFKA_COLUMNS: dict[str, tuple[type[DataType], ...]] = {
    "key": _TEXT, "value": _TEXT, "topic": (StringType,), "partition": (IntegerType,), "headers": (ArrayType,),
}  # fmt: skip
_PUBLIC = ("kafka.bootstrap.servers", "topic", "path", "tableName")


def public_options(sink: Sink) -> dict[str, str]:
    """The options that say where rows go; never a secret."""
    return {
        name: public_address(value) if "://" in value else value
        for name in _PUBLIC
        if (value := sink.option(name)) is not None
    }


def check_sink_rows(frame: DataFrame, flow: Flow, sink: Sink) -> None:
    """Raise where a flow's sink can't take its rows.

    Raises:
        QueryFailed: for columns that Kafka has no use for, or lacks.
        UnsupportedArgument: for a format that Spark does not know.
    """
    if sink.kind is SinkKind.KAFKA:
        _check_kafka(frame, flow, sink)
    elif sink.kind is SinkKind.OTHER:
        _check_format(frame, flow, sink)


def _check_kafka(frame: DataFrame, flow: Flow, sink: Sink) -> None:
    remedy = 'Select them as F.to_json(F.struct("*")).alias("value"), with key, topic, headers and partition as needed.'
    types = {field.name.lower(): field.dataType for field in frame.schema.fields}
    if "value" not in types:
        raise QueryFailed(
            f"{flow.name!r} sends rows to Kafka without a column named value.",
            where=flow.location,
            remedy=remedy,
        )
    if "topic" not in types and not sink.option("topic"):
        raise QueryFailed(
            f"{flow.name!r} sends rows to Kafka, and neither the sink nor the rows name a topic.",
            where=flow.location,
            remedy='Give the sink the option "topic".',
        )
    for name, kind in types.items():
        allowed = _KAFKA_COLUMNS.get(name)
        if allowed is None or not isinstance(kind, allowed):
            raise QueryFailed(
                f"{flow.name!r} sends the column {name!r} ({kind.simpleString()}) to Kafka, which has no place for it.",
                where=flow.location,
                remedy=remedy,
            )


def _check_format(frame: DataFrame, flow: Flow, sink: Sink) -> None:
    session = frame.sparkSession
    source = java_class(session._jvm, "org.apache.spark.sql.execution.datasources.DataSource")  # noqa: SLF001
    try:
        # Data sources that Python registered are looked for in the active session.
        with made_active(session):
            source.lookupDataSourceV2(sink.format, session._jsparkSession.sessionState().conf())  # noqa: SLF001
    except (PySparkException, Py4JJavaError) as error:
        raise UnsupportedArgument(
            f"The sink {flow.target!r} has the format {sink.format!r}: {describe(error).partition(': ')[2]}",
            where=flow.location,
            remedy='Use "delta" or "kafka", or register a Python data source in the pipeline: spark.dataSource.register.',
        ) from None
