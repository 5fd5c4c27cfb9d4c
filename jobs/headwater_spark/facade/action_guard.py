"""Refuses actions in dataset functions: these describe queries, and must not run any.

The functions are evaluated several times, at first over empty stand-ins, so an action there would give a wrong
answer rather than an error. The guard wraps Spark's action methods in the driver's process and acts only while
a dataset function is being evaluated, or a source is being run: the top of a source may read data, but not write
any, nor start a stream.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, partial, wraps
from typing import Any

from pyspark.sql import GroupedData
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from headwater.errors import ActionInDefinition, UnsupportedArgument, UnsupportedStreamOperation
from headwater_spark.facade.declared_forms import declared_form, note, noted
from headwater_spark.facade.guarded_methods import DESCRIBE, QUERIES, STARTS, WRITES, remedy_of
from headwater_spark.facade.kept_values import kept_forms, kept_schema, with_kept_values
from headwater_spark.facade.noted_reads import note_rows
from headwater_spark.plans.schemas import plain_schema

_LOADING: ContextVar[bool] = ContextVar("headwater_loading", default=False)
_EVALUATING: ContextVar[str | None] = ContextVar("headwater_evaluating", default=None)


def install_action_guard() -> None:
    """Put the guard in place; a second call does nothing."""
    for group in (QUERIES, WRITES):
        for owner, names in group.items():
            for name in names:
                _guard(
                    owner,
                    name,
                    partial(_guarded_action, remedy=remedy_of(name, owner), writes=group is WRITES),
                )
    _guard(GroupedData, "pivot", _guarded_pivot)
    _guard(GroupedData, "applyInPandasWithState", _with_any_state)
    for name in STARTS:
        _guard(DataStreamWriter, name, _guarded_start)
    _guard(DataStreamWriter, "trigger", _guarded_trigger)
    _guard(DataStreamWriter, "foreachBatch", _guarded_batch_function)
    _guard(DataStreamWriter, "format", _guarded_format)
    for name in ("cache", "persist"):
        _guard(DataFrame, name, _guarded_cache)


def _guard(
    owner: type, name: str, guarded_by: Callable[[Callable[..., Any], str], Callable[..., Any]]
) -> None:
    original: Any = inspect.getattr_static(owner, name, _no_such_method)
    is_property = isinstance(original, property | cached_property)
    if hasattr(original.fget if isinstance(original, property) else original, "headwater_guard"):
        return
    # A cached property keeps its value with the frame, whoever calls it.
    method = original.__get__ if is_property else original
    guarded: Any = wraps(method)(guarded_by(method, name))
    guarded.headwater_guard = True
    setattr(owner, name, property(guarded) if is_property else guarded)


def _no_such_method(writer: DataStreamWriter, *_: Any, **__: Any) -> Any:
    raise AttributeError(
        f"{type(writer).__name__!r} object has no attribute 'table'; open Spark calls it toTable"
    )


def _guarded_action(
    method: Callable[..., Any], name: str, *, remedy: str, writes: bool
) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Any:
        dataset = _EVALUATING.get()
        if dataset is not None:
            raise ActionInDefinition(
                f"The function of {dataset!r} calls {name}(), which {'acts at once' if writes else 'runs a query'}.",
                remedy=remedy,
            )
        if writes and _LOADING.get():
            raise ActionInDefinition(
                f"The source calls {name}(), which acts at once, while the pipeline is being read.",
                remedy="Declare the table: a function under @dp.table that returns the DataFrame."
                if remedy == DESCRIBE
                else remedy,
            )
        if _LOADING.get():
            note_rows()
        return method(*args, **kwargs)

    return guarded


def _guarded_pivot(method: Callable[..., Any], _: str) -> Callable[..., Any]:
    def guarded(rows: GroupedData, pivot_col: str, values: Any = None) -> Any:
        dataset = _EVALUATING.get()
        if dataset is not None and values is None:
            raise ActionInDefinition(
                f"The function of {dataset!r} calls pivot({pivot_col!r}) without its values: Spark runs a query for them at "
                "once, over stand-ins without rows, and the table would have no columns for them.",
                remedy=f'Name the values: .pivot({pivot_col!r}, ["a", "b"]).',
            )
        return method(rows, pivot_col, values)

    return guarded


def _with_any_state(method: Callable[..., Any], _: str) -> Callable[..., Any]:
    def carried(
        rows: GroupedData,
        func: Callable[..., Any],
        outputStructType: Any,  # noqa: N803 - Spark's names
        stateStructType: Any,  # noqa: N803
        outputMode: str,  # noqa: N803
        timeoutConf: str,  # noqa: N803
    ) -> Any:
        state = plain_schema(stateStructType, None) if in_user_code() else None
        forms = kept_forms(state) if state is not None else {}
        if state is not None and forms:
            func = with_kept_values(func, forms, state.names)
            stateStructType = kept_schema(state, forms)  # noqa: N806
        return method(rows, func, outputStructType, stateStructType, outputMode, timeoutConf)

    return carried


def _guarded_start(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    def guarded(writer: DataStreamWriter, *args: Any, **kwargs: Any) -> Any:
        dataset = _EVALUATING.get()
        if in_user_code():
            table = next((str(value) for value in args if isinstance(value, str)), "")
            caller = f"The function of {dataset!r}" if dataset is not None else "The source"
            raise ActionInDefinition(
                f"{caller} calls writeStream ... {name}(), which starts a stream of its own.",
                remedy=declared_form(noted(writer), table if name != "start" else ""),
            )
        return method(writer, *args, **kwargs)

    return guarded


def _guarded_trigger(method: Callable[..., Any], _: str) -> Callable[..., Any]:
    def guarded(writer: DataStreamWriter, **options: Any) -> Any:
        if in_user_code():
            note(writer, trigger=options)
        if options.get("continuous") is not None and in_user_code():
            raise UnsupportedArgument(
                f"trigger(continuous={options['continuous']!r}): Spark's continuous mode can't write Delta tables, "
                "aggregate or join.",
                remedy="Set `trigger: continuous` in pipeline.yml.",
            )
        return method(writer, **options)

    return guarded


def _guarded_batch_function(method: Callable[..., Any], _: str) -> Callable[..., Any]:
    def guarded(writer: DataStreamWriter, func: Callable[..., Any]) -> Any:
        if in_user_code():
            note(writer, batch_function=getattr(func, "__name__", "write_batch"))
        return method(writer, func)

    return guarded


def _guarded_format(method: Callable[..., Any], _: str) -> Callable[..., Any]:
    def guarded(writer: DataStreamWriter, source: str) -> Any:
        if in_user_code():
            note(writer, format=str(source))
        return method(writer, source)

    return guarded


def _guarded_cache(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    def guarded(frame: DataFrame, *args: Any, **kwargs: Any) -> Any:
        if in_user_code() and frame.isStreaming:
            raise UnsupportedStreamOperation(
                f"{name}() on a stream: Spark can't keep the rows of a query that never ends.",
                remedy=f"Leave .{name}() out. Where several tables need the result, return it from a function under "
                "@dp.table (stored) or @dp.temporary_view, and read that with dp.read_stream.",
            )
        return method(frame, *args, **kwargs)

    return guarded


def in_user_code() -> bool:
    """Whether a source is being run, or a function of a dataset is being called, in this thread."""
    return _LOADING.get() or _EVALUATING.get() is not None


@contextmanager
def loading_sources() -> Iterator[None]:
    """Refuse writes and streams of a source's own inside the block, in this thread."""
    token = _LOADING.set(True)
    try:
        yield
    finally:
        _LOADING.reset(token)


@contextmanager
def no_actions(dataset: str) -> Iterator[None]:
    """Refuse Spark actions inside the block, in this thread."""
    token = _EVALUATING.set(dataset)
    try:
        yield
    finally:
        _EVALUATING.reset(token)
