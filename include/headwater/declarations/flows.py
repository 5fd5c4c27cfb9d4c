"""Flows: further queries into a streaming table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from headwater.declarations.arguments import refuse, text_map
from headwater.definitions.flow import Flow
from headwater.definitions.source_location import caller_location, function_location
from headwater.graph.registry import active_registry

Function = TypeVar("Function", bound=Callable[..., Any])


def append_flow(
    query_function: Function | None = None,
    *,
    target: str,
    name: str | None = None,
    once: bool = False,
    spark_conf: Mapping[str, Any] | None = None,
    comment: str | None = None,
    import_checkpoint: Any = None,
) -> Any:
    """Append what the decorated function returns to a streaming table. Many flows may share one target.

    Args:
        target: the streaming table, as it was named in ``dp.create_streaming_table``.
        name: the flow's own name; the function's if left out. The checkpoint is kept under it: a new name is a new flow.
        once: the function returns a batch DataFrame that is appended one time (a backfill), and again only after a
            full refresh.
        spark_conf: Spark settings for this flow's query alone.
    """

    def decorate(function: Function) -> Function:
        registry = active_registry()
        if registry is None:
            return function
        where = function_location(function) or caller_location()
        refuse("dp.append_flow", where, import_checkpoint=import_checkpoint)
        conf = text_map(spark_conf, "spark_conf", where)
        flow_name = name or function.__name__
        registry.add_flow(
            Flow(flow_name, registry.canonical(target, where), function, where, once, conf, comment)
        )
        return function

    return decorate if query_function is None else decorate(query_function)
