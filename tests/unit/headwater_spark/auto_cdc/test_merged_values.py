"""What a merge sets columns to whose types have fields that must have a value."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import types as T
from tests.unit.headwater_spark.plain_columns import Column, Raised, lit, or_null, raise_error, when
from tests.unit.headwater_spark.plain_rows import Frame, plain_functions

from headwater_spark.auto_cdc import merged_values as module
from headwater_spark.auto_cdc.merged_values import merged_values

INT, TEXT = T.LongType(), T.StringType()


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_functions(monkeypatch, module)

    def not_null(_: Any, value: Column, path: tuple[str, ...]) -> Column:
        return when(value.isNotNull(), value).otherwise(raise_error(lit(".".join(path))))

    monkeypatch.setattr(module, "_not_null", not_null)


def struct(**fields: T.DataType) -> T.StructType:
    """A struct; a field whose name begins with a capital letter must have a value."""
    return T.StructType([T.StructField(name.lower(), kind, name.islower()) for name, kind in fields.items()])


def merged(value: Any, kind: T.DataType, target: T.DataType | None) -> Any:
    """What a merge writes of a source's value ``v`` into a target's column, which there may be none of."""
    source: Any = Frame([{"v": value}], ["v"], types={"v": kind})
    there = T.StructType([] if target is None else [T.StructField("V", target)])
    ((name, written),) = merged_values(["v"], source, there).items()
    assert name == "`v`"
    assert isinstance(written, Column)
    return or_null(written.of({"s": {"v": value}}))


@pytest.mark.parametrize("target", [None, INT, struct(a=INT), T.ArrayType(INT), T.MapType(TEXT, INT)])
def test_values_without_required_fields_stay(target: T.DataType | None):
    """The column is taken as it is, also where the target does not have it yet."""
    value = object()
    assert merged(value, target or INT, target) is value


SHAPES: list[tuple[T.DataType, T.DataType, Any, Any, str]] = [
    (struct(a=INT, b=TEXT), struct(A=INT, b=TEXT), {"a": 1, "b": None}, {"a": None, "b": "x"}, "v.a"),
    # The source has a field that the target gets by this merge, and a struct within one.
    (struct(a=INT, c=INT), struct(A=INT), {"a": 1, "c": None}, {"a": None, "c": 2}, "v.a"),
    (struct(s=struct(a=INT)), struct(s=struct(A=INT)), {"s": {"a": 1}}, {"s": {"a": None}}, "v.s.a"),
    (T.ArrayType(INT), T.ArrayType(INT, containsNull=False), [1, 2], [1, None], "v.element"),
    (T.ArrayType(struct(a=INT)), T.ArrayType(struct(A=INT)), [{"a": 1}, None], [{"a": None}], "v.element.a"),
    (T.MapType(TEXT, INT), T.MapType(TEXT, INT, valueContainsNull=False), {"k": 1}, {"k": None}, "v.value"),
    (T.MapType(TEXT, struct(a=INT)), T.MapType(TEXT, struct(A=INT)), {"k": {"a": 1}}, {"k": {"a": None}}, "v.value.a"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "target", "whole", "lacking", "path"), SHAPES)
def test_a_required_field(kind: T.DataType, target: T.DataType, whole: Any, lacking: Any, path: str):
    """A value that has all of them is written as it is, NULL as a whole as well; one without is an error that names the field."""
    assert merged(whole, kind, target) == whole
    assert merged(None, kind, target) is None
    with pytest.raises(Raised, match=rf"^{path}$"):
        merged(lacking, kind, target)
