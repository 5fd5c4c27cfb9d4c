"""Arrays and maps in the state of ``applyInPandasWithState``: kept as text, and handed to the function as what they are.

PySpark 4.2 hands the state's schema to its workers in lower case, in which they can't read such a type. So such a column is a STRING
for Spark, JSON of the value, and the user's function gets a state that reads and writes it. Decision 0178.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

# A type as plain values, which a worker reads without this package: its tag, and the forms of its parts.
Form = tuple[Any, ...]
_TAGS: dict[type[DataType], str] = {
    **dict.fromkeys((ByteType, ShortType, IntegerType, LongType), "int"),
    **dict.fromkeys((FloatType, DoubleType), "float"),
    **dict.fromkeys((TimestampType, TimestampNTZType), "timestamp"),
    StringType: "str", BooleanType: "bool", BinaryType: "bytes", DecimalType: "decimal", DateType: "date",
}  # fmt: skip


def lost_in_lower_case(kind: DataType) -> bool:
    """Whether workers can't read a type that is spelled in lower case."""
    if isinstance(kind, StructType):
        return any(lost_in_lower_case(field.dataType) for field in kind.fields)
    return isinstance(kind, ArrayType | MapType)


def kept_forms(state: StructType) -> dict[int, Form]:
    """The columns that are kept as text, by their places; those that can't be are not among them."""
    forms = {}
    for place, field in enumerate(state.fields):
        form = _form(field.dataType) if lost_in_lower_case(field.dataType) else None
        if form is not None:
            forms[place] = form
    return forms


def kept_schema(state: StructType, forms: Mapping[int, Form]) -> StructType:
    """The state's columns as Spark stores them."""
    return StructType(
        [
            StructField(field.name, StringType()) if place in forms else field
            for place, field in enumerate(state.fields)
        ]
    )


def _form(kind: DataType) -> Form | None:
    if isinstance(kind, StructType):
        parts = [(field.name, _form(field.dataType)) for field in kind.fields]
        return None if any(form is None for _, form in parts) else ("struct", tuple(parts))
    if isinstance(kind, ArrayType):
        element = _form(kind.elementType)
        return None if element is None else ("array", element)
    if isinstance(kind, MapType):
        key, value = _form(kind.keyType), _form(kind.valueType)
        return None if key is None or value is None else ("map", key, value)
    tag = _TAGS.get(type(kind))
    return None if tag is None else (tag,)


def with_kept_values(  # noqa: C901 - what a worker runs is one function: nothing else of this module is there
    function: Callable[..., Any], forms: Mapping[int, Form], names: list[str]
) -> Callable[..., Any]:
    """The user's function, for a state whose columns at ``forms`` are text. All of it is pickled with it, by value."""
    import base64
    import datetime
    import decimal
    import json

    def written(value: Any, form: Form) -> Any:  # noqa: PLR0911 - one line a kind of value
        tag = form[0]
        if value is None:
            return None
        if tag == "array":
            return [written(item, form[1]) for item in value]
        if tag == "map":
            return [[written(key, form[1]), written(item, form[2])] for key, item in dict(value).items()]
        if tag == "struct":
            items = [value[name] for name, _ in form[1]] if isinstance(value, dict) else list(value)
            return [written(item, part) for item, (_, part) in zip(items, form[1], strict=True)]
        if hasattr(value, "item"):  # NumPy's scalars
            value = value.item()
        if tag == "bytes":
            return base64.b64encode(bytes(value)).decode("ascii")
        if tag == "decimal":
            return str(decimal.Decimal(value))
        if tag in ("date", "timestamp"):
            value = value.to_pydatetime() if hasattr(value, "to_pydatetime") else value
            return (
                value.date() if tag == "date" and isinstance(value, datetime.datetime) else value
            ).isoformat()
        fits: Any = {"int": int, "float": (int, float), "str": str, "bool": bool}[tag]
        if not isinstance(value, fits) or (isinstance(value, bool) and tag != "bool"):
            raise TypeError(f"the state has {tag} there, and the value is {value!r}")
        return value

    def read(value: Any, form: Form) -> Any:  # noqa: PLR0911 - one line a kind of value
        tag = form[0]
        if value is None:
            return None
        if tag == "array":
            return [read(item, form[1]) for item in value]
        if tag == "map":
            return {read(key, form[1]): read(item, form[2]) for key, item in value}
        if tag == "struct":
            from pyspark.sql import Row

            return Row(*(name for name, _ in form[1]))(
                *(read(item, part) for item, (_, part) in zip(value, form[1], strict=True))
            )
        if tag == "bytes":
            return bytearray(base64.b64decode(value))
        if tag == "decimal":
            return decimal.Decimal(value)
        if tag == "date":
            return datetime.date.fromisoformat(value)
        if tag == "timestamp":
            return datetime.datetime.fromisoformat(value)
        return float(value) if tag == "float" else value

    class KeptState:
        """Spark's ``GroupState``, with values where it has text."""

        def __init__(self, state: Any) -> None:
            self._state = state

        def __getattr__(self, name: str) -> Any:
            return getattr(self._state, name)

        @property
        def get(self) -> tuple[Any, ...]:
            texts = self._state.get
            return tuple(
                read(json.loads(item), forms[place]) if place in forms and item is not None else item
                for place, item in enumerate(texts)
            )

        @property
        def getOption(self) -> tuple[Any, ...] | None:  # noqa: N802 - Spark's name
            return self.get if self._state.exists else None

        def update(self, value: Any) -> None:
            if value is None:
                self._state.update(None)
                return
            items = []
            for place, item in enumerate(value):
                try:
                    kept = place in forms and item is not None
                    items.append(json.dumps(written(item, forms[place])) if kept else item)
                except (TypeError, ValueError, KeyError, ArithmeticError) as error:
                    name = names[place]
                    raise TypeError(f"The state's column {name!r} can't keep its value: {error}") from error
            self._state.update(tuple(items))

    def kept(key: Any, frames: Any, state: Any) -> Any:
        return function(key, frames, KeptState(state))

    return kept
