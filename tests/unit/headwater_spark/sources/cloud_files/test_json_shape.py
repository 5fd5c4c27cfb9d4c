"""Lines of one shape are known without parsing them, and nothing is claimed of any other text."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from headwater_spark.sources.cloud_files import json_shape
from headwater_spark.sources.cloud_files.json_shape import has_one_shape, pattern_of

SCHEMA = (
    StructType()
    .add("id", "long")
    .add("name é", "string")
    .add("price", "double")
    .add("sold", "boolean")
    .add("small", "integer")
)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "id": st.integers(-(10**18) + 1, 10**18 - 1),
    "name é": st.text(st.characters(exclude_categories=["Cs"])),
    "price": st.floats(-1e15, 1e15) | st.integers(-(10**15), 10**15),
    "sold": st.booleans(),
}
PLAIN = '{"id": 1, "name é": "a", "price": 2.5, "sold": true}\n'


def shaped(text: str | bytes) -> bool:
    """Whether a text is proven to be of one shape."""
    return has_one_shape(io.BytesIO(text if isinstance(text, bytes) else text.encode()), SCHEMA)


def takes(name: str, value: Any) -> bool:
    """The specification: what Spark's parser certainly takes for a column."""
    kinds = {"id": (int,), "name é": (str,), "price": (int, float), "sold": (bool,)}
    return value is None or (type(value) in kinds.get(name, ()) and (name != "id" or abs(value) < 2**63))


@st.composite
def records(draw: Any) -> str:
    """Lines with the same keys."""
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, unique=True))
    rows = draw(st.lists(st.fixed_dictionaries({n: st.none() | KINDS[n] for n in names}), min_size=1))
    ascii_only, compact = draw(st.booleans()), draw(st.booleans())
    separators = (",", ":") if compact else (", ", ": ")
    lines = [json.dumps(row, ensure_ascii=ascii_only, separators=separators) for row in rows]
    return "\n".join(lines) + draw(st.sampled_from(["", "\n"]))


@given(records())
def test_records_with_the_same_keys_are_of_one_shape(text: str):
    """Whatever their values, where each fits its column; keys that are written as escapes are left to the parser."""
    assert shaped(text) or '"name \\u00e9"' in text


@given(records(), st.data())
def test_nothing_is_claimed_of_lines_that_are_not(text: str, data: Any):
    """Of any text at all: where one shape is claimed, each line is one record with the same known keys, and each value fits."""
    place = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 3))
    put = data.draw(st.text('{}[]",:\\ \n\r\t\0aé01-+.eEnulltrfsNI_', max_size=4))
    changed = text[:place] + put + text[place + length :]
    if shaped(changed):
        found = [json.loads(line, object_pairs_hook=list) for line in changed.removesuffix("\n").split("\n")]
        keys = [name for name, _ in found[0]]
        assert len(set(keys)) == len(keys)
        for pairs in found:
            assert [name for name, _ in pairs] == keys
            assert all(takes(name, value) for name, value in pairs)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "{}\n",
        "[1]\n",
        PLAIN + "\n" + PLAIN,
        PLAIN.replace("\n", "\r\n"),
        "\ufeff" + PLAIN,
        PLAIN + '{"id": 1}\n',
        PLAIN + PLAIN.replace("1", "1.0"),
        PLAIN + PLAIN.replace("1", "01"),
        PLAIN + PLAIN.replace("1", "9223372036854775808"),
        PLAIN + PLAIN.replace("2.5", "NaN"),
        PLAIN + PLAIN.replace("2.5", "1e999"),
        PLAIN + PLAIN.replace('"a"', "7"),
        PLAIN + PLAIN.replace('"a"', '"\\ud800"'),
        PLAIN + PLAIN.replace('"a"', '"\t"'),
        PLAIN + PLAIN.replace("name", "Name"),
        PLAIN + PLAIN.rstrip() + PLAIN,
        PLAIN + "not json",
        '{"id": 1, "id": 2}\n',
        '{"z": 1}\n',
        '{"small": 1}\n',
        '{"id": {"a": 1}}\n',
        PLAIN.encode() + PLAIN.encode().replace(b"a", b"\xe9"),
        PLAIN.encode("utf-16"),
    ],
)
def test_what_is_left_to_the_parser(text: str | bytes):
    """Another key, another type, another end of a line, or anything that is not certain."""
    assert not shaped(text)


def test_lines_across_blocks(monkeypatch: pytest.MonkeyPatch):
    """A file is read block by block; a line that a block cuts is seen whole, also the last one; the end counts."""
    monkeypatch.setattr(json_shape, "_BLOCK", 100)
    assert shaped(PLAIN * 50)
    assert shaped(PLAIN * 50 + PLAIN.rstrip())
    assert not shaped(PLAIN * 50 + PLAIN.replace("2.5", '"x"'))
    assert not shaped(PLAIN.replace('"a"', json.dumps("a" * 300)))


def test_very_wide_records(monkeypatch: pytest.MonkeyPatch):
    """Of more fields than the engine has memory for no expression is made."""
    assert pattern_of(PLAIN.encode(), SCHEMA) is not None
    monkeypatch.setattr(json_shape, "_MOST_FIELDS", 3)
    assert pattern_of(PLAIN.encode(), SCHEMA) is None
