"""Tables and views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from headwater.declarations.arguments import check_format, check_properties, columns, refuse, text_map
from headwater.declarations.expectations import check_names, expectations_from
from headwater.declarations.flows import replacement
from headwater.declarations.keywords import checked_arguments
from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.expectation import ViolationAction
from headwater.definitions.flow import Flow, FlowKind
from headwater.definitions.source_location import SourceLocation, caller_location, function_location
from headwater.errors import UnsupportedArgument
from headwater.graph.registry import active_registry
from headwater.incremental.techniques import RefreshPolicy

_AUTO_CLUSTERING = (
    "open Delta can't choose clustering columns by itself; cluster_by (CLUSTER BY in SQL) names them"
)
Function = TypeVar("Function", bound=Callable[..., Any])


def _declare(
    function: Callable[..., Any],
    kind: DatasetKind,
    *,
    name: str | None,
    spark_conf: Mapping[str, Any] | None,
    where: SourceLocation | None,
    comment: str | None = None,
    replace_using: Iterable[str] | None = None,
    sequence_by: Any = None,
    replace_where: Any = None,
    idle: Mapping[str, str] = MappingProxyType({}),
    **stored: Any,
) -> None:
    registry = active_registry()
    if registry is None:  # imported outside a pipeline, say by a unit test: only the function is needed
        return
    if not callable(function):
        raise UnsupportedArgument(
            f"{kind.value} decorates a function, not {type(function).__name__}.", where=where
        )
    what, label = f"dp.{kind.value}", name or function.__name__
    dataset = Dataset(
        name=registry.canonical(label, where),
        qualified_name=registry.dataset_name(label, where),
        kind=kind,
        location=where,
        comment=comment or None,
        **stored,
    )
    registry.add_dataset(dataset, function, idle=idle)
    conf = text_map(spark_conf, "spark_conf", where, of_view=kind is DatasetKind.TEMPORARY_VIEW)
    rule = replacement(what, replace_using, sequence_by, where)
    if replace_where is not None:
        _check_slice(what, where, dataset.refresh_policy, replaces=rule is not None)
    flow_kind = FlowKind.REPLACE if rule else FlowKind.DEFAULT
    flow = Flow(dataset.name, dataset.name, function, where, spark_conf=conf, kind=flow_kind)
    registry.add_flow(replace(flow, replacement=rule, replace_where=replace_where))


def _check_slice(what: str, where: SourceLocation | None, policy: RefreshPolicy, *, replaces: bool) -> None:
    """Refuse replace_where beside another way to fill the table."""
    if replaces:
        other, reason = (
            "replace_using",
            "recomputes a part of the table, replace_using lets rows of a stream replace others",
        )
    elif policy.promises_increments:
        other, reason = f"refresh_policy={str(policy)!r}", "names the part that each update recomputes"
    else:
        return
    raise UnsupportedArgument(
        f"{what}: replace_where and {other} exclude each other.",
        where=where,
        remedy=f"Keep one: replace_where {reason}.",
    )


def _decorator(kind: DatasetKind, function: Function | None, **arguments: Any) -> Any:
    def decorate(decorated: Function) -> Function:
        where = function_location(decorated) or caller_location()
        stored = _stored_arguments(kind, where, **arguments)
        _declare(decorated, kind, where=where, **stored)
        return decorated

    return decorate if function is None else decorate(function)


def _stored_arguments(kind: DatasetKind, where: SourceLocation | None, **arguments: Any) -> dict[str, Any]:
    what = f"dp.{kind.value}"
    refuse(what, where, row_filter=arguments.pop("row_filter", None))
    # How rows lie in files decides no row: sources that leave it to the platform run as they are.
    arguments["idle"] = (
        {"cluster_by_auto": _AUTO_CLUSTERING} if arguments.pop("cluster_by_auto", False) else {}
    )
    check_format(arguments.pop("format", None), where)
    if "refresh_policy" in arguments:
        arguments["refresh_policy"] = _refresh_policy(what, arguments["refresh_policy"], where)
    if kind is not DatasetKind.TEMPORARY_VIEW:
        properties = text_map(arguments.pop("table_properties", None), "table_properties", where)
        check_properties(properties, where)
        arguments["table_properties"] = properties
        arguments["partition_columns"] = columns(
            arguments.pop("partition_cols", None), "partition_cols", where
        )
        arguments["cluster_columns"] = columns(arguments.pop("cluster_by", None), "cluster_by", where)
        if arguments["partition_columns"] and arguments["cluster_columns"]:
            raise UnsupportedArgument(
                f"{what}: partition_cols and cluster_by exclude each other.", where=where, remedy="Keep one."
            )
    return arguments


def _refresh_policy(what: str, policy: Any, where: SourceLocation | None) -> RefreshPolicy:
    try:
        return RefreshPolicy(policy)
    except ValueError:
        raise UnsupportedArgument(
            f"{what}: there is no refresh_policy={policy!r}.",
            where=where,
            remedy=f"Use one of {', '.join(repr(str(one)) for one in RefreshPolicy)}.",
        ) from None


@checked_arguments
def table(
    query_function: Function | None = None,
    *,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Mapping[str, Any] | None = None,
    table_properties: Mapping[str, Any] | None = None,
    path: str | None = None,
    partition_cols: Iterable[str] | None = None,
    cluster_by_auto: bool = False,
    cluster_by: Iterable[str] | None = None,
    schema: Any = None,
    row_filter: str | None = None,
    private: bool = False,
    replace_using: Any = None,
    sequence_by: Any = None,
    replace_where: Any = None,
    temporary: bool = False,
    format: str | None = None,  # noqa: A002 - the name is Spark's
) -> Any:
    """Declare a table filled by the decorated function: a streaming table if the function returns a streaming
    DataFrame, a materialized view if it returns a batch one (as Lakeflow's legacy ``dlt.table``).

    Args:
        name: ``table``, ``schema.table`` or ``catalog.schema.table``; the function's name if left out.
        comment: stored as the table's description.
        spark_conf: Spark settings for this table's query alone.
        table_properties: Delta table properties.
        path: a folder of your own for the table; below the warehouse if left out.
        partition_cols: columns to partition by.
        cluster_by_auto: noted, without effect: Delta can't choose the columns.
        cluster_by: columns to cluster by (liquid clustering); excludes ``partition_cols``.
        schema: a StructType or a DDL string that the query's result must fit; DDL may have comments, NOT NULL and
            columns GENERATED ALWAYS AS (expression).
        private: the table is for this pipeline's own datasets; nobody else finds it by name.
        replace_using: columns of a key. A row replaces the rows of its key that have a lower ``sequence_by``.
        sequence_by: the column that orders the rows of a key.
        replace_where: a condition over the table's columns, SQL text or a Column, for a batch query. Each update
            recomputes the rows that meet it, in one commit, and leaves the others as they are.
        temporary: the older spelling of ``private``.

    Returns the decorated function unchanged. Raises DuplicateDataset, InvalidName, UnsupportedArgument.
    """
    return _decorator(
        DatasetKind.TABLE, query_function, name=name, comment=comment, spark_conf=spark_conf,
        table_properties=table_properties, path=path, partition_cols=partition_cols, cluster_by_auto=cluster_by_auto,
        cluster_by=cluster_by, schema=schema, row_filter=row_filter, private=private or temporary,
        replace_using=replace_using, sequence_by=sequence_by, replace_where=replace_where, format=format,
    )  # fmt: skip


@checked_arguments
def streaming_table(
    query_function: Function | None = None,
    *,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Mapping[str, Any] | None = None,
    table_properties: Mapping[str, Any] | None = None,
    path: str | None = None,
    partition_cols: Iterable[str] | None = None,
    cluster_by_auto: bool = False,
    cluster_by: Iterable[str] | None = None,
    schema: Any = None,
    row_filter: str | None = None,
    private: bool = False,
    format: str | None = None,  # noqa: A002 - the name is Spark's
) -> Any:
    """Declare a streaming table: each update appends what is new. Arguments as for :func:`table`.

    The function must return a streaming DataFrame (``spark.readStream``, ``dp.read_stream``).
    """
    return _decorator(
        DatasetKind.STREAMING_TABLE, query_function, name=name, comment=comment, spark_conf=spark_conf,
        table_properties=table_properties, path=path, partition_cols=partition_cols, cluster_by_auto=cluster_by_auto,
        cluster_by=cluster_by, schema=schema, row_filter=row_filter, private=private, format=format,
    )  # fmt: skip


@checked_arguments
def materialized_view(
    query_function: Function | None = None,
    *,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Mapping[str, Any] | None = None,
    table_properties: Mapping[str, Any] | None = None,
    path: str | None = None,
    partition_cols: Iterable[str] | None = None,
    cluster_by_auto: bool = False,
    cluster_by: Iterable[str] | None = None,
    schema: Any = None,
    row_filter: str | None = None,
    private: bool = False,
    replace_where: Any = None,
    refresh_policy: str = "auto",
    format: str | None = None,  # noqa: A002 - the name is Spark's
) -> Any:
    """Declare a materialized view: after each update it equals its batch query. Arguments as for :func:`table`.

    The refresh is one atomic commit, so readers see the old or the new rows, never an empty table; it is left out
    when no source has moved. With ``replace_where`` only a part of it is recomputed.

    ``refresh_policy``: ``"auto"``: refreshed by what changed where that is possible and expected to be faster, else recomputed;
    ``"incremental"``: by what changed wherever possible; ``"incremental_strict"``: the update fails where it is not possible
    (after a change of the query it is recomputed once); ``"full"``: always recomputed.
    """
    return _decorator(
        DatasetKind.MATERIALIZED_VIEW, query_function, name=name, comment=comment, spark_conf=spark_conf,
        table_properties=table_properties, path=path, partition_cols=partition_cols, cluster_by_auto=cluster_by_auto,
        cluster_by=cluster_by, schema=schema, row_filter=row_filter, private=private, replace_where=replace_where,
        refresh_policy=refresh_policy, format=format,
    )  # fmt: skip


@checked_arguments
def temporary_view(
    query_function: Function | None = None,
    *,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Mapping[str, Any] | None = None,
) -> Any:
    """Declare a view that other datasets of the pipeline can read; nothing is stored. Batch or streaming.

    Args as for :func:`table`; ``spark_conf`` is in force in the queries that read the view. Expectations may stand on it;
    they act on the rows that its readers get.
    """
    return _decorator(
        DatasetKind.TEMPORARY_VIEW, query_function, name=name, comment=comment, spark_conf=spark_conf
    )


@checked_arguments
def create_streaming_table(
    name: str,
    *,
    comment: str | None = None,
    spark_conf: Mapping[str, Any] | None = None,
    table_properties: Mapping[str, Any] | None = None,
    path: str | None = None,
    partition_cols: Iterable[str] | None = None,
    cluster_by_auto: bool = False,
    cluster_by: Iterable[str] | None = None,
    schema: Any = None,
    expect_all: Mapping[str, str] | None = None,
    expect_all_or_drop: Mapping[str, str] | None = None,
    expect_all_or_quarantine: Mapping[str, str] | None = None,
    expect_all_or_fail: Mapping[str, str] | None = None,
    row_filter: str | None = None,
    format: str | None = None,  # noqa: A002 - the name is Spark's
) -> None:
    """Declare an empty streaming table for ``dp.append_flow`` to fill.

    Args as for :func:`table`; ``spark_conf`` holds for every flow into the table that has no value of its own;
    ``expect_all*`` map names of expectations to SQL booleans, for every flow into the table.
    Raises DuplicateDataset, InvalidName, UnsupportedArgument.
    """
    empty_streaming_table(
        name, comment=comment, spark_conf=spark_conf, table_properties=table_properties, path=path,
        partition_cols=partition_cols, cluster_by_auto=cluster_by_auto, cluster_by=cluster_by, schema=schema,
        expect_all=expect_all, expect_all_or_drop=expect_all_or_drop, expect_all_or_quarantine=expect_all_or_quarantine,
        expect_all_or_fail=expect_all_or_fail, row_filter=row_filter, format=format,
    )  # fmt: skip


def empty_streaming_table(
    name: str,
    *,
    spark_conf: Mapping[str, Any] | None = None,
    expect_all: Mapping[str, str] | None = None,
    expect_all_or_drop: Mapping[str, str] | None = None,
    expect_all_or_quarantine: Mapping[str, str] | None = None,
    expect_all_or_fail: Mapping[str, str] | None = None,
    **arguments: Any,
) -> None:
    """As :func:`create_streaming_table`, also for a table that is ``private``: only SQL can say so."""
    registry = active_registry()
    if registry is None:
        return
    where = caller_location()
    settings = text_map(spark_conf, "spark_conf", where)
    stored = _stored_arguments(DatasetKind.STREAMING_TABLE, where, **arguments)
    rules = (
        *expectations_from(expect_all, ViolationAction.WARN, where),
        *expectations_from(expect_all_or_drop, ViolationAction.DROP, where),
        *expectations_from(expect_all_or_quarantine, ViolationAction.QUARANTINE, where),
        *expectations_from(expect_all_or_fail, ViolationAction.FAIL, where),
    )
    canonical = registry.canonical(name, where)
    qualified = registry.dataset_name(name, where)
    idle = stored.pop("idle")
    registry.add_dataset(
        Dataset(
            canonical,
            qualified,
            DatasetKind.STREAMING_TABLE,
            where,
            expectations=check_names(rules),
            spark_conf=settings,
            **stored,
        ),
        idle=idle,
    )
