"""SET and USE hold for what follows them in their source."""

from __future__ import annotations

import pytest

from headwater.errors import MissingValue
from headwater.sql_sources.reading import Declaration, Namespace, read_source
from headwater.sql_sources.source import SqlSource
from headwater.sql_sources.statements import DatasetStatement
from headwater.sql_sources.values import Values


def read(text: str, **values: str) -> list[Declaration]:
    """The declarations of a text."""
    return list(read_source(SqlSource("f.sql", text), Values(values.__getitem__, values)))


def query(declaration: Declaration) -> str:
    """The query of a dataset."""
    assert isinstance(declaration.statement, DatasetStatement)
    assert declaration.statement.query is not None
    return declaration.statement.query.text


VIEW = "CREATE MATERIALIZED VIEW v AS SELECT"


def test_settings_hold_for_what_follows():
    """Spark's and the platform's settings go to the flows after them, with or without quotes; the last one counts."""
    before, after, last = read(
        f"{VIEW} 1; SET pipelines.trigger.interval = 10 seconds; SET spark.sql.ansi.enabled='false'; {VIEW} 2;"
        f"SET spark.sql.ansi.enabled = true; {VIEW} 3"
    )
    assert before.settings == {}
    assert after.settings == {"pipelines.trigger.interval": "10 seconds", "spark.sql.ansi.enabled": "false"}
    assert last.settings["spark.sql.ansi.enabled"] == "true"


def test_variables_hold_for_what_follows():
    """A value of the source's own comes before that of the configuration; it is raw text, and may name others."""
    first, second = read(
        f"{VIEW} '${{p}}'; SET p = ${{root}}/x y.json; SET d='2020-01-01';\n{VIEW} '${{p}}', ${{d}}",
        p="outer",
        root="/r",
    )
    assert query(first) == "SELECT 'outer'"
    assert query(second) == "SELECT '/r/x y.json', '2020-01-01'"
    assert second.settings == {}
    assert not read("SET spark.source;")  # shows it, and does nothing
    with pytest.raises(MissingValue, match="root") as caught:
        read("\nSET p = ${root}")
    assert caught.value.where == "f.sql:2:1"


def test_names_that_lack_a_part():
    """USE completes names of what follows; another catalog takes a former USE SCHEMA back."""
    spaces = [
        declaration.namespace
        for declaration in read(
            f"{VIEW} 1; USE SCHEMA s; {VIEW} 1; USE CATALOG 'c'; {VIEW} 1; USE DATABASE `d`; {VIEW} 1; USE e.f; {VIEW} 1; USE g; {VIEW} 1"
        )
    ]
    assert spaces == [
        Namespace(), Namespace(None, "s"), Namespace("c"), Namespace("c", "d"), Namespace("e", "f"), Namespace("e", "g"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("space", "name", "expected"),
    [
        (Namespace(), "t", "t"),
        (Namespace(), "LIVE.t", "t"),
        (Namespace(None, "s"), "t", "s.t"),
        (Namespace(None, "s"), "live.t", "s.t"),
        (Namespace("c"), "t", "c.own.t"),
        (Namespace("c", "s"), "t", "c.s.t"),
        (Namespace("c", "s"), "x.t", "c.x.t"),
        (Namespace("c", "s"), "y.x.t", "y.x.t"),
    ],
)
def test_qualified_names(space: Namespace, name: str, expected: str):
    """The pipeline's own schema stands where USE names a catalog alone."""
    assert space.qualified(name, "own") == expected
