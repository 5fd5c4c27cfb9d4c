"""Flows: further queries into a streaming table or a sink."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import unquote, urlparse

from headwater.declarations.arguments import columns, text_map
from headwater.declarations.keywords import checked_arguments
from headwater.definitions.flow import Flow, FlowKind, Replacement
from headwater.definitions.source_location import SourceLocation, caller_location, function_location
from headwater.errors import InvalidName, UnsupportedArgument
from headwater.graph.registry import Registry, active_registry

# The second is Hadoop's own spelling.
_S3 = ("s3", "s3a")

Function = TypeVar("Function", bound=Callable[..., Any])


@checked_arguments
def append_flow(
    query_function: Function | None = None,
    *,
    target: str,
    name: str | None = None,
    once: bool = False,
    spark_conf: Mapping[str, Any] | None = None,
    comment: str | None = None,
    depends_on: str | Iterable[str] | None = None,
    import_checkpoint: str | None = None,
) -> Any:
    """Append what the decorated function returns to a streaming table or a sink. Many flows may share one target.

    Args:
        target: the streaming table or the sink, as it was declared; a table that has its own query takes flows too.
        name: the flow's own name; the function's if left out. The checkpoint is kept under it: a new name is a new flow.
        once: the function returns a batch DataFrame that is appended one time (a backfill), and again only after a
            full refresh.
        spark_conf: Spark settings for this flow's query alone.
        comment: a description of the flow.
        depends_on: flows of the pipeline, or datasets, that the flow waits for in an update, though the query does not read
            them (what it reads, it waits for anyway). For a flow into another target, and for a dataset, the whole target waits.
        import_checkpoint: the checkpoint folder of a streaming job of your own, which has ended, that filled the target so far.
            The flow goes on from its position at its first start, and never looks at it again.
    """
    return _decorator(
        query_function, FlowKind.APPEND, target, name, spark_conf, comment, once=once, depends_on=depends_on,
        import_checkpoint=import_checkpoint,
    )  # fmt: skip


@checked_arguments
def update_flow(
    query_function: Function | None = None,
    *,
    target: str,
    name: str | None = None,
    spark_conf: Mapping[str, Any] | None = None,
    comment: str | None = None,
    depends_on: str | Iterable[str] | None = None,
) -> Any:
    """Hand the rows that changed in each batch (Spark's update mode) to a sink. Arguments as for :func:`append_flow`.

    For sinks alone: a streaming table merges the changed rows of an aggregation by itself.
    """
    return _decorator(
        query_function, FlowKind.UPDATE, target, name, spark_conf, comment, depends_on=depends_on
    )


@checked_arguments
def replace_flow(
    query_function: Function | None = None,
    *,
    target: str,
    replace_using: Iterable[str],
    sequence_by: Any,
    name: str | None = None,
    spark_conf: Mapping[str, Any] | None = None,
    comment: str | None = None,
) -> Any:
    """Let rows replace those of the same key in a streaming table (Lakeflow's REPLACE USING flows).

    Args:
        target: the streaming table.
        replace_using: the columns of the key.
        sequence_by: the column that orders the rows of a key. Rows with the highest value stay, all of them; rows with
            a lower one never come back, however late they arrive.

    The other arguments are as for :func:`append_flow`.
    """
    return _decorator(
        query_function, FlowKind.REPLACE, target, name, spark_conf, comment,
        replace_using=replace_using, sequence_by=sequence_by,
    )  # fmt: skip


def _job_checkpoint(folder: Any, where: SourceLocation | None, *, once: bool) -> str | None:
    """The folder of a checkpoint, or its address (``s3://``); None for None; raises UnsupportedArgument where it can be none."""
    if folder is None:
        return None
    url = urlparse(folder) if isinstance(folder, str) else None
    on_s3 = url is not None and url.scheme in _S3 and bool(url.netloc)
    local = url is not None and url.path.startswith("/") and url.scheme in ("", "file")
    if url is None or not (on_s3 or local):
        raise UnsupportedArgument(
            f"import_checkpoint={folder!r} is neither an absolute path of this machine's file system nor an address on S3.",
            where=where,
            remedy="Give the folder that the job had as checkpointLocation: /folder, or s3://bucket/folder.",
        )
    if once:
        raise UnsupportedArgument(
            "import_checkpoint and once exclude each other: a batch has no position.",
            where=where,
            remedy="Keep one.",
        )
    if on_s3:
        return f"s3://{folder.partition('://')[2]}"
    return unquote(url.path) if url.scheme else folder


def replacement(
    what: str, replace_using: Iterable[str] | None, sequence_by: Any, where: SourceLocation | None
) -> Replacement | None:
    """Check the two arguments of a replacement; None where neither is given."""
    keys = columns(replace_using, "replace_using", where)
    if not keys and sequence_by is None:
        return None
    sequence = sequence_by if isinstance(sequence_by, str) else _column_name(sequence_by)
    if not keys or not sequence:
        raise UnsupportedArgument(
            f"{what}: replace_using takes the columns of the key, and sequence_by the one that orders their rows.",
            where=where,
            remedy='Write replace_using=["order_id"], sequence_by="updated_at".',
        )
    if len({key.lower() for key in keys}) < len(keys):
        raise UnsupportedArgument(
            f"{what}: replace_using names a column twice.", where=where, remedy="Keep one."
        )
    return Replacement(keys, sequence)


def _waited(registry: Registry, name: str, where: SourceLocation | None) -> str:
    """A name in ``depends_on`` as the graph knows it. Flows have freer names than datasets: one that is none of these stays."""
    try:
        return registry.canonical(name, where)
    except InvalidName:
        return name


def _column_name(column: Any) -> str | None:
    # A Column prints its expression; only a plain name can be looked up in the table too.
    text = str(getattr(column, "_jc", "")) if column is not None else ""
    return text if text.replace("_", "a").isalnum() else None


def _decorator(
    query_function: Function | None,
    kind: FlowKind,
    target: str,
    name: str | None,
    spark_conf: Mapping[str, Any] | None,
    comment: str | None,
    *,
    once: bool = False,
    replace_using: Iterable[str] | None = None,
    sequence_by: Any = None,
    depends_on: str | Iterable[str] | None = None,
    import_checkpoint: str | None = None,
) -> Any:
    def decorate(function: Function) -> Function:
        registry = active_registry()
        if registry is None:
            return function
        where = function_location(function) or caller_location()
        what = f"dp.{kind.value}_flow"
        conf = text_map(spark_conf, "spark_conf", where)
        rule = replacement(what, replace_using, sequence_by, where)
        if kind is FlowKind.REPLACE and rule is None:
            raise UnsupportedArgument(
                f"{what} needs replace_using and sequence_by.", where=where, remedy="Give both."
            )
        waits = tuple(
            _waited(registry, one, where)
            for one in columns(depends_on, "depends_on", where, "names of flows or datasets")
        )
        registry.add_flow(
            Flow(
                name or function.__name__,
                registry.canonical(target, where),
                function,
                where,
                once,
                conf,
                comment,
                kind,
                rule,
                depends_on=waits,
                import_checkpoint=_job_checkpoint(import_checkpoint, where, once=once),
            )
        )
        return function

    return decorate if query_function is None else decorate(query_function)
