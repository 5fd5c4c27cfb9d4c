"""The text of a definition: its lines, calls and comments."""

from __future__ import annotations

import linecache
from datetime import timedelta
from pathlib import Path

import pytest

from headwater.definitions.intervals import duration
from headwater_spark.linting.definition_text import SourceFile

TEXT = '''import this

@first  # headwater: ignore[HW101]
@second(
    name="x"
)
def one():
    """A text with # headwater: ignore[HW103] in it."""
    return (
        read()
        .cache()  # headwater: ignore[hw102, HW103] because
    )


call(
    "a",  # headwater: ignore
)
'''


@pytest.fixture
def source():
    """The text under a label, as the loader puts it there."""
    linecache.cache["label"] = (len(TEXT), None, TEXT.splitlines(keepends=True), "label")
    yield SourceFile("label")
    del linecache.cache["label"]


def test_span(source):
    """A function's lines go from the line above its first decorator to its last; a statement has those of its own."""
    assert source.span(3) == range(2, 13)
    assert source.span(10) == range(2, 13)
    assert source.span(15) == range(14, 18)


def test_comments(source):
    """Comments are found with their codes in any case; a text that looks like one is none."""
    assert [(c.where.line, c.codes) for c in source.comments] == [
        (3, ("HW101",)),
        (11, ("HW102", "HW103")),
        (16, None),
    ]


def test_calls(source):
    """A call has the line of the method's name, not of the expression's beginning."""
    assert source.calls(3, ("cache",)) == [11]
    assert source.calls(15, ("cache",)) == []


def test_unreadable(source):
    """A label without a text has no lines to speak of and no comments."""
    nothing = SourceFile("nowhere")
    assert (nothing.comments, nothing.span(5)) == ([], range(4, 6))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("interval 30 days", timedelta(days=30)),
        ("interval 1 week", timedelta(weeks=1)),
        ("2 days 12 hours", timedelta(days=2, hours=12)),
        ("INTERVAL '90' MINUTE", None),
        ("soon", None),
    ],
)
def test_duration(text, expected):
    """Intervals as Delta writes them; anything else is not guessed at."""
    assert duration(text) == expected


def test_statements_and_comments_of_sql(tmp_path: Path):
    """In a SQL source a definition is a statement, and its comments silence findings as in Python."""
    path = tmp_path / "a.sql"
    path.write_text(
        "-- headwater: ignore[HW101, hw103] why\nCREATE STREAMING TABLE a\nAS SELECT ';';\n\nCREATE STREAMING TABLE b\n"
        "AS SELECT 1 -- headwater: ignore\n"
    )
    source = SourceFile(str(path))
    assert source.span(2) == source.span(3) == range(1, 4)
    assert source.span(5) == range(4, 7)
    assert [(comment.where.line, comment.codes) for comment in source.comments] == [
        (1, ("HW101", "HW103")),
        (6, None),
    ]
    assert source.calls(2, {"cache"}) == []
