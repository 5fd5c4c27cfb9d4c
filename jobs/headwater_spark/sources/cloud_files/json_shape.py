"""Whether all lines of a JSON-lines file are records of one shape, found by one regular expression and without parsing them.

What writes a file mostly writes the same keys in the same order into each line. Then one expression describes every line with
values that certainly fit, and an automaton reads the text several times as fast as a parser. A file of any other form is left
to the parser.

Decision 0209.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql.types import BooleanType, DataType, DoubleType, LongType, StringType, StructType

_BLOCK = 4 << 20
# The automaton of a very wide record may not fit the memory that the engine gives it; then it is slower than a parser.
_MOST_FIELDS = 200
_SPACE = "[ ]?"
_HEX = "[0-9a-fA-F]"
_ESCAPES = (
    r'\\["\\/bfnrt]',
    rf"\\u[0-9abcefABCEF]{_HEX}{{3}}",
    rf"\\u[dD][0-7]{_HEX}{{2}}",
    rf"\\u[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}",
)
_WHOLE = "-?(?:0|[1-9][0-9]{0,17})"
# Finite, and far below the thousand characters that Spark's parser takes.
_VALUES: dict[type[DataType], str] = {
    StringType: rf'"(?:[^"\\\x00-\x1f]|{"|".join(_ESCAPES)})*"',
    LongType: _WHOLE,
    DoubleType: rf"{_WHOLE}(?:\.[0-9]{{1,25}})?(?:[eE](?:\+?[0-9]{{1,2}}|-[0-9]{{1,3}}))?",
    BooleanType: "true|false",
}


def has_one_shape(stream: Any, schema: StructType) -> bool:
    """Whether each line is one record with the first line's keys, all of them columns, and values that fit the columns' types.

    Args:
        stream: the file's content, uncompressed; it is read to its end only where the answer is yes.
        schema: the columns that the file is read as.
    """
    pattern: str | None = None
    rest = b""
    while block := stream.read(_BLOCK):
        text = rest + bytes(block)
        end = text.rfind(b"\n") + 1
        lines, rest = text[:end], text[end:]
        if len(rest) > _BLOCK:
            return False
        if not lines:
            continue
        pattern = pattern or pattern_of(lines[: lines.index(b"\n")], schema)
        if pattern is None or not _matches(lines, pattern):
            return False
    if not rest:
        return pattern is not None
    pattern = pattern or pattern_of(rest, schema)
    return pattern is not None and _matches(rest + b"\n", pattern)


def pattern_of(line: bytes, schema: StructType) -> str | None:
    """The expression for lines with the keys of this one; None where it is no plain record, or has a key that is no column."""
    try:
        pairs = json.loads(line, object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        return None
    types = {field.name: field.dataType for field in schema.fields}
    # An object comes as a tuple, and an empty one has no key.
    if not isinstance(pairs, tuple) or not 0 < len(pairs) <= _MOST_FIELDS:
        return None
    names = [name for name, _ in pairs]
    values = [_VALUES.get(type(types[name])) if name in types else None for name in names]
    if len(set(names)) < len(names) or None in values:
        return None
    fields = [
        f'"{_literal(name)}"{_SPACE}:{_SPACE}(?:{value}|null)'
        for name, value in zip(names, values, strict=True)
    ]
    return rf"\A(?:\{{{f'{_SPACE},{_SPACE}'.join(fields)}\}}\n)*\z"


def _literal(name: str) -> str:
    """A key as it stands in the text, if it stands there unescaped; otherwise no line matches, and nothing is claimed."""
    return "".join(sign if sign.isalnum() or ord(sign) > 127 else f"\\x{ord(sign):02x}" for sign in name)


def _matches(lines: bytes, pattern: str) -> bool:
    import pyarrow as pa
    from pyarrow import compute

    ends = pa.array([0, len(lines)], pa.int64()).buffers()[1]
    text = pa.Array.from_buffers(pa.large_string(), 1, [None, ends, pa.py_buffer(lines)])
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return False  # no UTF-8
    return bool(compute.match_substring_regex(text, pattern=pattern)[0].as_py())
