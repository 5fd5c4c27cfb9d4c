"""JSON with comments and tabs becomes plain JSON, and nothing inside its texts changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from headwater.graph.json_text import looks_like_json, plain_json, read_json

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["//", "/* x */", 'a"//b', "http://x/y", "\\", "\\\\//", "\t", "\U0001f600", "\\ud83d"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=12,
)
COMMENTS = st.sampled_from(["", ' // a "comment"\n', "/* one */", "\t", '/* two\nlines // " */', "//\n"])


@given(VALUES, st.booleans(), st.data())
def test_comments_between_values_change_nothing(value: Any, ascii_only: bool, data: st.DataObject):
    """Whatever stands between the tokens, the values are the same, and every line stays where it is."""
    encoder = json.JSONEncoder(ensure_ascii=ascii_only)
    commented = "".join(token + data.draw(COMMENTS) for token in encoder.iterencode(value))
    plain = plain_json(commented)
    assert read_json(plain) == value
    assert plain.count("\n") == commented.count("\n")


@given(
    st.dictionaries(
        st.text("abc", min_size=1),
        st.text(st.characters(max_codepoint=0x1F64F, exclude_categories=["Cs", "Cc"])),
    )
)
def test_yaml_reads_the_same_values(value: dict[str, str]):
    """The places of keys come from a reader of YAML: it must see what is there."""
    for ascii_only in (True, False):
        text = json.dumps(value, indent="\t", ensure_ascii=ascii_only)
        assert yaml.safe_load(plain_json(text)) == value


@given(st.text('{}[]":,/*\\\n\t ab1', max_size=60))
def test_any_text_is_read_or_refused(text: str):
    """No text makes anything but a value or an error of JSON."""
    try:
        read_json(plain_json(text))
    except ValueError:
        assert not looks_like_json(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1} /* no end', '{"a": 1} /*/', '{"a": 1} /*', '{"a": 1 /* no end', '{"a": "no end // x', '{"a": NaN}', "{name: a}",
        "name: a", '"a"',
    ],
)  # fmt: skip
def test_what_is_no_json(text: str):
    """A comment without an end is not passed over; a mapping of YAML is left to YAML."""
    assert not looks_like_json(text)


@pytest.mark.parametrize("piece", ["/*", "//", '"', "\\", "/"])
def test_a_megabyte_is_read_at_once(piece: str):
    """The work grows with the length of a text and no faster."""
    plain_json("{" + piece * (1 << 19))


@pytest.mark.parametrize("comment", ["/**/", "/***/", "/*/*/", "// */", "//"])
def test_the_shortest_comments(comment: str):
    """A comment may hold nothing, and what looks like the end or the beginning of one."""
    assert plain_json(f'{{"a": 1}} {comment}') == '{"a": 1} ' + " " * len(comment)
