"""Nothing is accepted and unused: each argument changes what is declared or is refused, and what is declared is read somewhere."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from headwater import pipelines as dp
from headwater.definitions.change_flow import ChangeFlow
from headwater.definitions.dataset import Dataset
from headwater.definitions.event_hook import EventHook
from headwater.definitions.expectation import Expectation, UniqueKey
from headwater.definitions.flow import Flow, Replacement
from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.definitions.sink import Sink
from headwater.definitions.snapshot_flow import SnapshotFlow
from headwater.errors import HeadwaterError
from headwater.graph.registry import Registry, registering

ROOT = Path(__file__).parents[4]
_TABLE: dict[str, Any] = {
    "name": "other", "comment": "c", "spark_conf": {"a": "1"}, "table_properties": {"a": "1"}, "path": "/x",
    "partition_cols": ["a"], "cluster_by_auto": True, "cluster_by": ["a"], "schema": "id INT", "row_filter": "f",
    "private": True, "format": "parquet",
}  # fmt: skip
_RULES = {
    name: {"r": "a"}
    for name in ("expect_all", "expect_all_or_drop", "expect_all_or_quarantine", "expect_all_or_fail")
}
_FLOW = {"target": "u", "name": "other", "spark_conf": {"a": "1"}, "comment": "c"}
_CHANGES: dict[str, Any] = {
    "target": "u", "source": "s2", "keys": ["k2"], "stored_as_scd_type": 2, "track_history_column_list": ["a"],
    "track_history_except_column_list": ["a"], "name": "n", "once": True, "flow_name": "n",
}  # fmt: skip
# What each function is given besides, and a value of each argument that is not its default.
CASES: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "table": ({}, {**_TABLE, "replace_using": ["k"], "sequence_by": "s", "replace_where": "a > 1", "temporary": True}),
    "streaming_table": ({}, _TABLE),
    "materialized_view": ({}, {**_TABLE, "replace_where": "a > 1", "refresh_policy": "incremental"}),
    "temporary_view": ({}, {"name": "other", "comment": "c", "spark_conf": {"a": "1"}}),
    "create_streaming_table": ({"name": "t"}, {**{k: v for k, v in _TABLE.items() if k != "private"}, **_RULES}),
    "create_table": (
        {"name": "t"},
        {**_TABLE, **_RULES, "replace_using": ["k"], "sequence_by": "s", "replace_where": "a > 1", "temporary": True},
    ),
    "append_flow": ({"target": "t"}, {**_FLOW, "once": True, "depends_on": ["x"], "import_checkpoint": "/x"}),
    "update_flow": ({"target": "t"}, {**_FLOW, "depends_on": ["x"]}),
    "replace_flow": (
        {"target": "t", "replace_using": ["k"], "sequence_by": "s"},
        {**_FLOW, "replace_using": ["j"], "sequence_by": "r"},
    ),
    "create_auto_cdc_flow": (
        {"target": "t", "source": "s", "keys": ["k"], "sequence_by": "n"},
        {
            **_CHANGES, "sequence_by": "m", "ignore_null_updates": True, "apply_as_deletes": "a", "apply_as_truncates": "a",
            "column_list": ["a"], "except_column_list": ["a"], "ignore_null_updates_column_list": ["a"],
            "ignore_null_updates_except_column_list": ["a"], "columns_to_update": "a", "system_sequence_by": "a", "where": "a",
            "spark_conf": {"a": "1"},
        },
    ),
    "create_auto_cdc_from_snapshot_flow": (
        {"target": "t", "source": "s", "keys": ["k"]}, {**_CHANGES, "snapshot_and_version": "s2"},
    ),
    "create_sink": (
        {"name": "t", "format": "delta", "options": {"path": "/x"}},
        {"name": "other", "format": "mine", "options": {"path": "/y"}},
    ),
    "foreach_batch_sink": ({}, {"name": "other"}),
    "on_event_hook": ({}, {"max_allowable_consecutive_failures": 3}),
    "expect_unique": ({"keys": "a"}, {"keys": "b", "name": "n", "within": "table", "action": "drop"}),
    **{
        f"expect{action}": ({"name": "r", "constraint": "a"}, {"name": "q", "constraint": "b"})
        for action in ("", "_or_drop", "_or_quarantine", "_or_fail")
    },
    **{
        f"expect_all{action}": ({"expectations": {"r": "a"}}, {"expectations": {"r": "b"}})
        for action in ("", "_or_drop", "_or_quarantine", "_or_fail")
    },
}  # fmt: skip
# The decorated function itself, and reads, which declare nothing.
_FUNCTIONS = {"query_function", "batch_handler", "user_event_hook_fn"}
_READS = {"read", "read_stream"}


def declared(name: str, given: Mapping[str, Any]) -> object:
    """All that a call leaves in the registry, or that it was refused."""
    face: Callable[..., Any] = getattr(dp, name)
    with registering(Registry()) as registry:
        try:
            if name.startswith("create_"):
                face(**given)
                registry.declare_waiting()
            else:
                decorate = face(**given)

                def rows(_: object = None, _number: int = 0) -> None:
                    return None

                decorate(dp.table(rows) if name.startswith("expect") else rows)
        except HeadwaterError as refused:
            return ("refused", refused.what)
        parts = [*registry.datasets(), *registry.flows(), *registry.hooks(), *registry.idle_clauses]
        return [_shown(part) for part in parts]


def _shown(value: Any) -> Any:
    """A definition as plain values, less what differs from call to call."""
    if hasattr(value, "__dataclass_fields__"):
        hidden = ("function", "location", "following")
        return [(f.name, _shown(getattr(value, f.name))) for f in fields(value) if f.name not in hidden]
    return [_shown(part) for part in value] if isinstance(value, tuple) else repr(value)


def test_each_function_has_its_case():
    """Of the whole face; names of older code are the functions of today."""
    assert {getattr(dp, name).__name__ for name in dp.__all__} == {*CASES, *_READS}


@pytest.mark.parametrize("name", sorted(CASES))
def test_each_argument_counts(name: str):
    """With another value of the argument something else is declared or noted, or the call is refused; each argument has its case."""
    base, values = CASES[name]
    assert set(values) == set(inspect.signature(getattr(dp, name)).parameters) - _FUNCTIONS
    plain = declared(name, base)
    assert isinstance(plain, list), plain
    for argument, value in values.items():
        assert declared(name, {**base, argument: value}) != plain, argument


def read_names(*, without: str) -> set[str]:
    """Each name after a dot, and each argument's name, in the code outside a folder or file."""
    names: set[str] = set()
    for floor in ("include/headwater", "jobs", "plugins", "dags"):
        for path in (ROOT / floor).rglob("*.py"):
            if without not in path.as_posix():
                names |= _names_read_in(path)
    return names


@cache
def _names_read_in(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}


def test_each_declared_field_is_read():
    """A field of a definition that nothing outside of the declarations reads would be an argument without effect."""
    read = read_names(without="/declarations/")
    kinds = (Dataset, Flow, Replacement, ChangeFlow, SnapshotFlow, Sink, Expectation, UniqueKey, EventHook)
    unread = {
        (kind.__name__, field.name) for kind in kinds for field in fields(kind) if field.name not in read
    }
    assert unread == set()


def test_each_key_of_the_spec_is_read():
    """A key of pipeline.yml that nothing reads would be accepted in vain."""
    read = read_names(without="definitions/pipeline_spec.py")
    # Read by properties of the model.
    read |= {
        "id",
        "schema_name",
        "trigger_spec",
        "processing_time",
        "run_for",
        "glob",
        "file",
        "notebook",
        "include",
    }
    unread = {
        (model.__name__, name)
        for model in _models(PipelineSpec)
        for name in model.model_fields
        if name not in read
    }
    assert unread == set()


def _models(model: type[BaseModel]) -> set[type[BaseModel]]:
    models = {model}
    for field in model.model_fields.values():
        for inner in _types(field.annotation):
            models |= _models(inner)
    return models


def _types(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [inner for part in getattr(annotation, "__args__", ()) for inner in _types(part)]
