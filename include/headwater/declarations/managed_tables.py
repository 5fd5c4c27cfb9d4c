"""``create_table``: today a function that declares an empty table, in older code the decorator of a query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any

from headwater.declarations.datasets import empty_streaming_table, table
from headwater.declarations.keywords import checked_arguments
from headwater.definitions.source_location import caller_location, declared_at
from headwater.graph.registry import active_registry


@checked_arguments
def create_table(
    query_function: Any = None,
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
    expect_all: Mapping[str, str] | None = None,
    expect_all_or_drop: Mapping[str, str] | None = None,
    expect_all_or_quarantine: Mapping[str, str] | None = None,
    expect_all_or_fail: Mapping[str, str] | None = None,
    row_filter: str | None = None,
    private: bool = False,
    replace_using: Any = None,
    sequence_by: Any = None,
    replace_where: Any = None,
    temporary: bool = False,
    format: str | None = None,  # noqa: A002 - the name is Spark's
) -> Any:
    """Declare an empty table for ``dp.append_flow`` to fill, as :func:`create_streaming_table` does.

    As a decorator, as older code has it, it is :func:`table`. The arguments are those of the two; ``expect_all*`` belong to the
    function, ``replace_*`` and ``sequence_by`` to the decorator. Raises DuplicateDataset, InvalidName, UnsupportedArgument.
    """
    if isinstance(query_function, str):
        name, query_function = query_function, None
    stored: dict[str, Any] = {
        "comment": comment, "spark_conf": spark_conf, "table_properties": table_properties, "path": path,
        "partition_cols": partition_cols, "cluster_by_auto": cluster_by_auto, "cluster_by": cluster_by, "schema": schema,
        "row_filter": row_filter, "private": private or temporary, "format": format,
    }  # fmt: skip
    of_query = {"replace_using": replace_using, "sequence_by": sequence_by, "replace_where": replace_where}
    rules = {
        "expect_all": expect_all, "expect_all_or_drop": expect_all_or_drop,
        "expect_all_or_quarantine": expect_all_or_quarantine, "expect_all_or_fail": expect_all_or_fail,
    }  # fmt: skip
    is_query = query_function is not None or any(value is not None for value in of_query.values())
    if name is None or is_query or active_registry() is None:
        return table(query_function, name=name, **stored, **of_query)
    return _either(name, stored, rules)


def _either(name: str, stored: Mapping[str, Any], rules: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Declare the table empty, unless what is given back decorates a query: only the end of the sources can tell."""
    registry, where = active_registry(), caller_location()
    assert registry is not None

    def declare() -> None:
        with declared_at(where) if where is not None else nullcontext():
            empty_streaming_table(name, **stored, **rules)

    waiting = registry.declare_later(declare)

    def decorate(function: Any) -> Any:
        waiting.cancel()
        given: dict[str, Any] = {argument: value for argument, value in rules.items() if value is not None}
        return table(function, name=name, **stored, **given)  # which has no rules, and says so

    return decorate
