"""Values become literals and names, whatever they hold."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.tokenizer_core import TokenType

from headwater.errors import HeadwaterError, MissingValue
from headwater.sql_sources.conditions import SqlNotUnderstood
from headwater.sql_sources.dialect import tokens_of
from headwater.sql_sources.source import SqlSource
from headwater.sql_sources.splitting import statements_in
from headwater.sql_sources.values import Value, Values, filled, literal

KNOWN: dict[str, Value] = {
    "who": "o'Brien", "name": "a.b", "schema": "shop", "n": "5", "number": 5, "yes": True, "ratio": 0.1, "money": Decimal("1.20"),
    "day": datetime.date(2026, 1, 2), "at": datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC), "nothing": None, "quoted": "'2020'",
    "two": "a; DROP TABLE b", "datasets.path": "/data", "tick": "a`b", "dollar": "${n}", "empty": "",
    "columns": "id INT COMMENT 'a, (b', n DECIMAL(10, 2),", "rule": "CONSTRAINT c EXPECT (id > 0) ON VIOLATION DROP ROW",
    "escape": "id INT) AS SELECT 1 --", "open": "id INT, (",
}  # fmt: skip


def filled_text(text: str) -> str:
    """The text of a statement with its values."""
    (statement,) = statements_in(SqlSource("f.sql", text))
    return filled(statement, Values(KNOWN.__getitem__, KNOWN)).text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = '${who}'", r"a = 'o\'Brien'"),
        ('a = "${who}/x"', r'a = "o\'Brien/x"'),
        ("json.`${datasets.path}/x`", "json.`/data/x`"),
        ("`${tick}`", "`a``b`"),
        ("r'${datasets.path}'", "r'/data'"),
        ("FROM ${name} x", "FROM a.b x"),
        ("FROM ${schema}.t", "FROM shop.t"),
        ("FROM t_${schema}", "FROM t_shop"),
        ("d > ${quoted} AND n > -${n}", "d > '2020' AND n > -5"),
        ("a = :who AND b=:n", r"a = 'o\'Brien' AND b='5'"),
        ("(:number, :yes, :money, :nothing)", "(5, TRUE, 1.20, NULL)"),
        ("[:day, :at]", "[DATE '2026-01-02', TIMESTAMP '2026-01-02 03:04:05+00:00']"),
        ("x > :ratio", "x > DOUBLE('0.1')"),
        ("CASE WHEN :yes THEN :n ELSE :n END", "CASE WHEN TRUE THEN '5' ELSE '5' END"),
        ("INTERVAL :n DAY LIMIT :number", "INTERVAL '5' DAY LIMIT 5"),
        ("FROM IDENTIFIER(:name) x", "FROM `a`.`b` x"),
        ("identifier ( :schema || '.t' )", "`shop`.`t`"),
        ("IDENTIFIER(concat('${schema}', '.', 't'))", "`shop`.`t`"),
        ("IDENTIFIER('${schema}.t')", "`shop`.`t`"),
        ("a = '${dollar}'", r"a = '\u0024{n}'"),
        # Columns and rules, as whole tokens, in the list behind a name.
        (
            "CREATE LIVE TABLE a.b (${columns} ${rule}) AS SELECT 1",
            "CREATE LIVE TABLE a.b (id INT COMMENT 'a, (b', n DECIMAL(10, 2), CONSTRAINT c EXPECT (id > 0) ON VIOLATION DROP ROW) AS SELECT 1",
        ),
        (
            "CREATE LIVE TABLE a (x INT, f(1) ${empty}) AS SELECT 1",
            "CREATE LIVE TABLE a (x INT, f(1) ) AS SELECT 1",
        ),
        ("CREATE LIVE TABLE a (${empty}) AS SELECT 1", "CREATE LIVE TABLE a () AS SELECT 1"),
        # Paths into columns, types and comments are none.
        ("SELECT payload:n, `a`:n, f(x):n, b[0]:n.number, payload :n", None),
        ("CAST(x AS STRUCT<n:INT, who : STRING>)", None),
        ("a::int -- '${missing}' :missing\n, /* ${missing} */ b", None),
        ("'a:n' || \":n\"", None),
    ],
)
def test_values_in_statements(text: str, expected: str | None):
    """What each place takes: the inside of a literal, a name, a whole literal, a name made of parts."""
    assert filled_text(text) == (text if expected is None else expected)


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("FROM x, ${two}", 9, "neither one name nor one literal"),
        ("FROM x, ${}", 9, "not one"),
        ("CREATE LIVE TABLE t (${escape})", 22, "neither one name"),
        ("CREATE LIVE TABLE t (${open})", 22, "neither one name"),
        ("CREATE LIVE TABLE t (${two})", 22, "neither one name"),
        ("CREATE LIVE TABLE t AS SELECT f(${columns})", 33, "neither one name"),
        ("CREATE LIVE TABLE t PARTITIONED BY (${columns})", 37, "neither one name"),
        ("CREATE LIVE TABLE t (CONSTRAINT c EXPECT (${columns}))", 43, "neither one name"),
        ("r'${who}'", 1, "raw literal"),
        ("`${dollar}`", 1, "can't hold"),
        ("IDENTIFIER(:two)", 1, "one name"),
        ("IDENTIFIER(a)", 1, "one name"),
    ],
)
def test_values_that_do_not_fit(text: str, column: int, said: str):
    """A value that would be more than one literal or name is refused where it stands."""
    with pytest.raises(SqlNotUnderstood, match=said) as caught:
        filled_text(f"\n  {text}")
    assert caught.value.where == f"f.sql:2:{column + 2}"


@pytest.mark.parametrize(("text", "column"), [("a = ':x' AND b = :whoo", 18), ("a = 'x ${whoo}'", 8)])
def test_a_value_that_is_missing(text: str, column: int):
    """It is named at its place, with the nearest one that is there."""
    with pytest.raises(MissingValue, match="whoo") as caught:
        filled_text(text)
    assert caught.value.where == f"f.sql:1:{column}"
    assert "Did you mean" in caught.value.remedy
    assert "--param whoo=" in caught.value.remedy


@given(st.text())
def test_any_text_stays_one_literal(value: str):
    """Whatever a value holds, the statement has the tokens that it had."""
    for text in ("SELECT 1 + :v, 'b'", "SELECT 'x${v}y', 'b'", 'SELECT "${v}", 2', literal(value)):
        (statement,) = statements_in(SqlSource("", text))
        replaced = filled(statement, Values({"v": value}.__getitem__)).text
        before = [token.token_type for token in tokens_of(SqlSource("", text.replace(":v", "''")))]
        assert [token.token_type for token in tokens_of(SqlSource("", replaced))] == before


@given(st.text())
def test_any_text_is_one_name_or_refused(value: str):
    """Outside literals a value is one name or literal, or the statement is refused."""
    for text in (
        "SELECT a FROM ${v} WHERE b",
        "SELECT a FROM `${v}` WHERE b",
        "SELECT a FROM IDENTIFIER(:v) WHERE b",
    ):
        (statement,) = statements_in(SqlSource("", text))
        try:
            replaced = filled(statement, Values({"v": value}.__getitem__)).text
        except HeadwaterError:
            continue
        tokens = [token.text for token in tokens_of(SqlSource("", replaced))]
        assert (tokens[:3], tokens[-2:]) == (["SELECT", "a", "FROM"], ["WHERE", "b"])


@given(
    st.lists(st.sampled_from(["a", " ", "\n", "'${v}'", ":v", ", ", "é"]), max_size=12), st.text(max_size=5)
)
def test_places_lead_back_to_the_users_text(parts: list[str], value: str):
    """Behind values of any length a token stands where the user wrote it."""
    text = "".join(["x ", *parts, " END"])
    (statement,) = statements_in(SqlSource("f", text))
    try:
        replaced = filled(statement, Values({"v": value}.__getitem__))
    except HeadwaterError:
        return
    assert replaced.place(replaced.text.rindex("END")) == statement.source.place(text.rindex("END"))


@given(st.text(alphabet="a(),;'\"`-/* 1\n[]${}", max_size=12))
def test_columns_stay_in_their_list(value: str):
    """Whatever a value of columns holds, the list closes where the user closed it."""
    (statement,) = statements_in(SqlSource("", "CREATE LIVE TABLE t (${v}) AS SELECT 9"))
    try:
        replaced = filled(statement, Values({"v": value}.__getitem__)).text
    except HeadwaterError:
        return
    tokens = [
        token
        for token in tokens_of(SqlSource("", replaced))
        if token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)
    ]
    assert [token.text for token in tokens[-4:]] == [")", "AS", "SELECT", "9"]
    depths = [
        sum({"(": 1, ")": -1}.get(token.text, 0) for token in tokens[:n]) for n in range(5, len(tokens) - 2)
    ]
    assert all(depth > 0 for depth in depths[:-1])
    assert depths[-1] == 0
    assert not any(token.token_type is TokenType.SEMICOLON for token in tokens)
