"""Sinks: where rows leave the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from headwater.declarations.arguments import text_map
from headwater.declarations.callables import check_callable
from headwater.declarations.keywords import checked_arguments
from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.sink import Sink, SinkKind
from headwater.definitions.source_location import SourceLocation, caller_location, function_location
from headwater.errors import UnsupportedArgument
from headwater.graph.registry import active_registry

Function = TypeVar("Function", bound=Callable[..., Any])

_FILE_FORMATS = {"parquet", "json", "csv", "orc", "text", "avro", "xml"}
# What the pipeline decides itself: positions, and when rows are read.
_MANAGED = {"checkpointlocation", "outputmode", "txnappid", "txnversion", "querytimeout"}


@checked_arguments
def create_sink(name: str, format: str, options: Mapping[str, Any] | None = None) -> None:  # noqa: A002 - Lakeflow's
    """Declare a sink that ``dp.append_flow`` and ``dp.update_flow`` write to.

    Args:
        name: the sink's name in the pipeline; it can't be read.
        format: ``delta`` (exactly once), ``kafka`` (at least once), or a data source that the pipeline registers.
        options: for ``delta`` either ``path`` or ``tableName`` (catalog.schema.table or schema.table); for ``kafka`` the
            broker (``kafka.bootstrap.servers``), ``topic`` unless the rows have that column, and the client's settings.

    A full refresh never clears a sink: its flows send everything again. Sinks take no expectations.
    Raises DuplicateDataset, InvalidName, UnsupportedArgument.
    """
    registry = active_registry()
    if registry is None:
        return
    where = caller_location()
    if not isinstance(format, str) or not format.strip():
        raise UnsupportedArgument(
            "dp.create_sink needs a format.", where=where, remedy='Say format="delta" or format="kafka".'
        )
    texts = text_map(options, "options", where)
    _check_options(format.strip().lower(), texts, where)
    kind = {"delta": SinkKind.DELTA, "kafka": SinkKind.KAFKA}.get(format.strip().lower(), SinkKind.OTHER)
    sink = Sink(kind, format.strip().lower() if kind is not SinkKind.OTHER else format.strip(), texts)
    registry.add_dataset(
        Dataset(
            registry.canonical(name, where),
            registry.dataset_name(name, where),
            DatasetKind.SINK,
            where,
            sink=sink,
        )
    )


@checked_arguments
def foreach_batch_sink(batch_handler: Function | None = None, *, name: str | None = None) -> Any:
    """Declare the decorated function as a sink: it is called with each batch, as a DataFrame, and the batch's number.

    Args:
        name: the sink's name; the function's if left out.

    The function is called at least once for a batch: after a crash the same batch comes again, with the same number.
    To write it once to Delta tables use the options ``txnAppId`` and ``txnVersion``; an id that belongs to the flow and
    changes with a full refresh is ``df.sparkSession.conf.get("headwater.txnAppId")``, the number is the batch's.
    """

    def decorate(function: Function) -> Function:
        registry = active_registry()
        if registry is None:
            return function
        where = function_location(function) or caller_location()
        arguments = (None, 0)
        label = check_callable(
            "dp.foreach_batch_sink", function, arguments, "a DataFrame and a number", where, name=name
        )
        registry.add_dataset(
            Dataset(
                registry.canonical(label, where),
                registry.dataset_name(label, where),
                DatasetKind.SINK,
                where,
                comment=(function.__doc__ or "").strip().partition("\n")[0] or None,
                sink=Sink(SinkKind.FUNCTION, "foreach_batch", function=function),
            )
        )
        return function

    return decorate if batch_handler is None else decorate(batch_handler)


def _check_options(sink_format: str, options: Mapping[str, str], where: SourceLocation | None) -> None:
    lowered = {key.lower(): value for key, value in options.items()}
    managed = sorted(set(lowered) & _MANAGED)
    if managed:
        raise UnsupportedArgument(
            f"dp.create_sink: the option {managed[0]} is the pipeline's own.",
            where=where,
            remedy="Leave it out.",
        )
    if sink_format in _FILE_FORMATS:
        raise UnsupportedArgument(
            f"dp.create_sink: {sink_format} files as a sink would not be written exactly once by several flows.",
            where=where,
            remedy='Use format="delta", or write files in a function under @dp.foreach_batch_sink.',
        )
    if sink_format == "delta":
        if ("path" in lowered) == ("tablename" in lowered):
            raise UnsupportedArgument(
                "dp.create_sink: a Delta sink needs either path or tableName.",
                where=where,
                remedy='Write options={"path": "/data/out"} or options={"tableName": "shop.out"}.',
            )
        table = lowered.get("tablename")
        if table is not None and len(table.split(".")) < 2:
            raise UnsupportedArgument(
                f"dp.create_sink: tableName must be fully qualified, and {table!r} is not.",
                where=where,
                remedy='Write "schema.table" or "catalog.schema.table".',
            )
    if sink_format == "kafka":
        _check_kafka(lowered, where)


def _check_kafka(lowered: Mapping[str, str], where: SourceLocation | None) -> None:
    if not lowered.get("kafka.bootstrap.servers"):
        raise UnsupportedArgument(
            "dp.create_sink: a Kafka sink needs kafka.bootstrap.servers.",
            where=where,
            remedy='Write options={"kafka.bootstrap.servers": "broker:9092", "topic": "out"}.',
        )
    for name in ("databricks.servicecredential", "subscribe", "subscribepattern", "assign"):
        if name in lowered:
            raise UnsupportedArgument(
                f"dp.create_sink: the option {name} means nothing to a Kafka sink of open Spark.",
                where=where,
                remedy="Name the topic with `topic`, and the credentials with the kafka.* settings of the client.",
            )
