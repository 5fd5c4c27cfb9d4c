"""Schema hints: types that the user knows better than inference does."""

from __future__ import annotations

from pyspark.errors import ParseException
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from headwater.errors import InvalidSourceOption

_OPEN, _CLOSE = "<(", ">)"


def apply_hints(schema: StructType, hints: str) -> StructType:
    """The schema with the hinted types; columns that it lacks are added.

    ``hints``: ``"a DATE, b.c INT, list.element.d STRING"``: DDL, with dots into structs. Raises InvalidSourceOption.
    """
    for piece in _pieces(hints):
        name, _, kind = piece.partition(" ")
        try:
            hinted = DataType.fromDDL(kind)
        except ParseException:
            raise InvalidSourceOption(
                f"The schema hint {piece!r} does not parse.",
                remedy='Write hints as "id BIGINT, day DATE, address.zip STRING".',
            ) from None
        schema = _placed(schema, name.replace("`", "").split("."), hinted)
    return schema


def _pieces(text: str) -> list[str]:
    pieces, depth, start = [], 0, 0
    for position, sign in enumerate(text):
        depth += (sign in _OPEN) - (sign in _CLOSE)
        if sign == "," and depth == 0:
            pieces.append(text[start:position])
            start = position + 1
    pieces.append(text[start:])
    return [" ".join(piece.split()) for piece in pieces if piece.strip()]


def _placed(schema: StructType, path: list[str], hinted: DataType) -> StructType:
    head, rest = path[0], path[1:]
    fields = list(schema.fields)
    index = next((i for i, f in enumerate(fields) if f.name.lower() == head.lower()), None)
    before = fields[index].dataType if index is not None else StructType()
    kind = _inside(before, rest, hinted)
    if index is None:
        return StructType([*fields, StructField(head, kind)])
    fields[index] = StructField(fields[index].name, kind, True, fields[index].metadata)
    return StructType(fields)


def _inside(kind: DataType, path: list[str], hinted: DataType) -> DataType:
    if not path:
        return hinted
    if isinstance(kind, ArrayType) and path[0] == "element":
        return ArrayType(_inside(kind.elementType, path[1:], hinted))
    if isinstance(kind, MapType) and path[0] == "value":
        return MapType(kind.keyType, _inside(kind.valueType, path[1:], hinted))
    return _placed(kind if isinstance(kind, StructType) else StructType(), path, hinted)
