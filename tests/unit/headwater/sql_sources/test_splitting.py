"""A source is cut at its semicolons and nowhere else, and each piece knows its place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.sql_sources.source import Place, SqlSource
from headwater.sql_sources.splitting import statements_in

WORDS = st.sampled_from(
    [
        "a",
        "SELECT",
        "'x;y'",
        '"p;\nq"',
        "`b;c`",
        "-- no; end\n",
        "/* no;\n end */",
        "(1)",
        "\n",
        "1L",
        "SHOW",
        "GRANT",
        "é🙂",
        "r'\\;'",
    ]
)


@given(st.lists(st.lists(WORDS, min_size=1, max_size=6), max_size=5))
def test_each_statement_keeps_its_text_and_place(statements: list[list[str]]):
    """Whatever stands in literals, names and comments: as many statements as were joined, each at its place."""
    bodies = ["X " + " ".join(words) + " Y" for words in statements]
    text = " ;\n".join(bodies)
    split = list(statements_in(SqlSource("f", text)))
    assert [statement.text for statement in split] == bodies
    for statement, start in zip(split, _starts(bodies), strict=True):
        place = statement.source.place(statement.start)
        before = text[:start].split("\n")
        assert place == Place("f", len(before), len(before[-1]) + 1)


def _starts(bodies: list[str]) -> list[int]:
    starts = [0]
    for body in bodies:
        starts.append(starts[-1] + len(body) + len(" ;\n"))
    return starts[:-1] if bodies else []


def test_nothing_is_no_statement():
    """Empty statements and comments declare nothing."""
    assert not list(statements_in(SqlSource("f", " ;; -- a ; b\n ; /* c */ ;\n")))
    assert not list(statements_in(SqlSource("f", "")))


def test_a_statement_without_a_semicolon():
    """The last statement needs none, also before a comment."""
    (statement,) = statements_in(SqlSource("f", "SELECT 1 -- ; the end"))
    assert statement.text == "SELECT 1"
