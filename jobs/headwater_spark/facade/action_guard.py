"""A dataset function describes a query; running one inside it is refused.

The functions are evaluated several times, at first over empty stand-ins, so an action there would give a wrong
answer rather than an error. The guard sits on Spark's action methods in the driver's process and acts only while
a dataset function is being evaluated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.readwriter import DataFrameWriter, DataFrameWriterV2
from pyspark.sql.streaming.readwriter import DataStreamWriter

from headwater.errors import ActionInDefinition

_EVALUATING: ContextVar[str | None] = ContextVar("headwater_evaluating", default=None)
_ACTIONS: dict[type, tuple[str, ...]] = {
    DataFrame: (
        "collect", "count", "toPandas", "toArrow", "toLocalIterator", "head", "first", "take", "tail", "show", "foreach",
        "foreachPartition", "isEmpty", "checkpoint", "localCheckpoint",
    ),
    DataFrameWriter: ("save", "saveAsTable", "insertInto", "json", "parquet", "text", "csv", "orc", "jdbc", "xml"),
    DataFrameWriterV2: ("append", "create", "createOrReplace", "overwrite", "overwritePartitions", "replace"),
    DataStreamWriter: ("start", "toTable"),
}  # fmt: skip


def install_action_guard() -> None:
    """Put the guard in place; a second call does nothing."""
    for owner, names in _ACTIONS.items():
        for name in names:
            method = getattr(owner, name, None)
            if method is not None and not hasattr(method, "headwater_guard"):
                setattr(owner, name, _guarded(method, name))


def _guarded(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(method)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        dataset = _EVALUATING.get()
        if dataset is not None:
            raise ActionInDefinition(
                f"The function of {dataset!r} calls {name}(), which runs a query.",
                remedy="Return the DataFrame that describes the rows; the update runs it and writes the result.",
            )
        return method(*args, **kwargs)

    guarded.headwater_guard = True  # type: ignore[attr-defined]
    return guarded


@contextmanager
def no_actions(dataset: str) -> Iterator[None]:
    """Refuse Spark actions inside the block, in this thread."""
    token = _EVALUATING.set(dataset)
    try:
        yield
    finally:
        _EVALUATING.reset(token)
