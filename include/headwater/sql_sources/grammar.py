"""From a statement's text to what it says.

Decision 0159.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot.tokenizer_core import Token

from headwater.definitions.dataset import DatasetKind
from headwater.sql_sources.changes import read_changes
from headwater.sql_sources.clauses import query_begins, read_clauses
from headwater.sql_sources.columns import ColumnList, read_columns
from headwater.sql_sources.conditions import SqlNotUnderstood, StatementNotAllowed
from headwater.sql_sources.forms import FORMS, instead, nearest_form
from headwater.sql_sources.parser import StatementParser
from headwater.sql_sources.statements import (
    DatasetStatement,
    FlowStatement,
    SetStatement,
    Statement,
    UseStatement,
)
from headwater.sql_sources.values import FilledStatement


def read_statement(filled: FilledStatement) -> Statement:
    """What a statement declares.

    Raises:
        SqlNotUnderstood: it is of no form that pipelines have; with the place, and the nearest form.
        StatementNotAllowed: it would do something at once.
        UnsupportedArgument: a clause that can't be honoured.
    """
    parser = StatementParser(filled)
    first = parser.current
    for words, read in _STATEMENTS.items():
        if parser.words(*words):
            statement = read(parser, first)
            if not parser.at_end:
                parser.expected("The end of the statement", ";", remedy="Put a semicolon between statements.")
            return statement
    raise _unknown(parser)


def _unknown(parser: StatementParser) -> SqlNotUnderstood | StatementNotAllowed:
    words = parser.first_words
    beginning = " ".join(words[:4])
    remedy = instead(words)
    if remedy is not None:
        return StatementNotAllowed(
            f"{beginning!r} does something at once, and a source only declares.",
            where=parser.place(),
            remedy=remedy,
        )
    return SqlNotUnderstood(
        f"{beginning!r} is not a statement of a pipeline.", where=parser.place(), remedy=nearest_form(words)
    )


def _create(parser: StatementParser, first: Token) -> Statement:
    if parser.words("FLOW"):
        return _flow(parser, first)
    start = parser.position
    # Lakeflow's tables that flows alone fill: a streaming table by another word.
    managed = parser.words("TABLE")
    kind, private = (DatasetKind.STREAMING_TABLE, False) if managed else _kind(parser)
    if kind is None:
        parser.back_to(start - 1)
        raise _unknown(parser)
    parser.words("IF", "NOT", "EXISTS")
    name = parser.name("the table" if kind is not DatasetKind.TEMPORARY_VIEW else "the view")
    of_view = kind is DatasetKind.TEMPORARY_VIEW
    columns = read_columns(parser, of_view=of_view)
    stored = read_clauses(parser, of_view=of_view)
    if managed and not (parser.at_end or parser.see("FLOW", "INSERT")):
        parser.back_to(start - 1)
        raise _unknown(parser)
    comment = stored.pop("comment", None)
    if of_view and stored.pop("table_properties", None) is not None:
        columns.idle["TBLPROPERTIES"] = "nothing is stored for a temporary view"
    if private:
        stored["private"] = True
    return _with_query(parser, first, name, kind, columns, str(comment) if comment else None, stored)


def _kind(parser: StatementParser) -> tuple[DatasetKind | None, bool]:
    """The kind of a dataset, by the words after CREATE, and whether it is for its pipeline alone; None where it is none."""
    # On Lakeflow both mean the same: a table of a pipeline keeps its rows until a full refresh.
    if not parser.words("OR", "REFRESH"):
        parser.words("OR", "REPLACE")
    private = parser.words("PRIVATE")
    temporary = parser.words("TEMPORARY") or parser.words("TEMP")
    stream = parser.words("STREAMING") or parser.words("INCREMENTAL")
    live = parser.words("LIVE")
    if parser.words("MATERIALIZED", "VIEW"):
        return (None if stream or live else DatasetKind.MATERIALIZED_VIEW), private or temporary
    if parser.words("VIEW"):
        is_view = (temporary or live) and not private
        return (DatasetKind.TEMPORARY_VIEW if is_view else None), False
    if parser.words("TABLE") and (stream or live):
        return (
            DatasetKind.STREAMING_TABLE if stream else DatasetKind.MATERIALIZED_VIEW
        ), private or temporary
    return None, False


def _with_query(
    parser: StatementParser, first: Token, name: str, kind: DatasetKind, columns: ColumnList, comment: str | None,
    stored: dict[str, object],
) -> DatasetStatement:  # fmt: skip
    query, changes, once = None, None, False
    wanted = stored.pop("schedule", None)
    schedule = None if wanted is None else str(wanted)
    of_view = kind is DatasetKind.MATERIALIZED_VIEW and parser.see("FLOW", "REPLACE", "WHERE")
    if parser.see("FLOW") and kind is not DatasetKind.STREAMING_TABLE and not of_view:
        parser.expected("AS and a query", "AS")
    if parser.words("FLOW"):
        if parser.words("AUTO", "CDC") or parser.words("APPLY", "CHANGES"):
            changes = read_changes(parser, batch=parser.words("ONCE"))
        elif parser.words("INSERT"):
            once = parser.words("ONCE")
            parser.need("BY", "NAME")
            query = parser.rest("A query")
        elif parser.words("REPLACE", "WHERE"):
            stored["replace_where"] = parser.expression_text("A condition", ("BY", "NAME"))
            parser.need("BY", "NAME")
            query = parser.rest("A query")
        elif parser.words("REPLACE", "USING"):
            stored |= _key_and_sequence(parser)
            parser.need("BY", "NAME")
            query = parser.rest("A query")
        else:
            parser.expected(
                "What the flow does", "AUTO CDC", "INSERT BY NAME", "REPLACE WHERE", "REPLACE USING"
            )
    elif not parser.at_end:
        if not query_begins(parser):
            parser.need("AS")
        query = parser.rest("A query")
    elif kind is not DatasetKind.STREAMING_TABLE:
        parser.expected("AS and a query", "AS")
    schema = ",\n".join(columns.typed) or None
    return DatasetStatement(
        name, kind, parser.place(first), query, schema, tuple(columns.labels), tuple(columns.rules), comment, stored, once, changes,
        columns.idle, schedule,
    )  # fmt: skip


def _flow(parser: StatementParser, first: Token) -> FlowStatement:
    name = parser.name("the flow")
    comment = parser.text("The comment") if parser.words("COMMENT") else None
    parser.need("AS")
    if parser.words("AUTO", "CDC") or parser.words("APPLY", "CHANGES"):
        return _changes(parser, first, name, comment)
    if not parser.words("INSERT"):
        parser.expected("INSERT INTO or AUTO CDC INTO", "INSERT INTO", "AUTO CDC INTO")
    once = parser.words("ONCE")
    parser.need("INTO")
    once = parser.words("ONCE") or once
    target = parser.name("the target")
    parser.need(
        "BY", "NAME", remedy=f"Columns are matched by their names: {FORMS['CREATE FLOW'].partition(',')[0]}."
    )
    replacing = _replacing(parser, once=once)
    return FlowStatement(
        name, target, parser.place(first), parser.rest("A query"), once, comment, **replacing
    )


def _replacing(parser: StatementParser, *, once: bool) -> dict[str, Any]:
    """``REPLACE WHERE condition`` or ``REPLACE USING (key) SEQUENCE BY column`` before a flow's query."""
    token = parser.current
    if not (parser.see("REPLACE", "WHERE") or parser.see("REPLACE", "USING")):
        return {}
    if once:
        parser.unsupported("ONCE with REPLACE", token, "Take ONCE out: REPLACE says which rows give way.")
    parser.words("REPLACE")
    if parser.words("WHERE"):
        return {"replace_where": parser.expression_text("A condition", ("SELECT",), ("WITH",), ("VALUES",))}
    parser.words("USING")
    return _key_and_sequence(parser)


def _key_and_sequence(parser: StatementParser) -> dict[str, Any]:
    keys = parser.listed(lambda: parser.plain_name("a column"))
    parser.need("SEQUENCE", "BY")
    return {"replace_using": keys, "sequence_by": parser.name("a column")}


def _changes(
    parser: StatementParser, first: Token, name: str | None = None, comment: str | None = None
) -> FlowStatement:
    once = parser.words("ONCE")
    if not once and parser.see("FROM", "SNAPSHOT"):
        read_changes(parser, batch=False)
    parser.need("INTO")
    once = parser.words("ONCE") or once
    target = parser.name("the target")
    changes = read_changes(parser, batch=once)
    return FlowStatement(name, target, parser.place(first), None, once, comment, changes)


def _set(parser: StatementParser, first: Token) -> SetStatement:
    for words in (("TIME", "ZONE"), ("VAR",), ("VARIABLE",), ("CATALOG",), ("ROLE",)):
        if parser.see(*words):
            parser.expected(
                "A setting", remedy="Write SET key = value; the time zone is spark.sql.session.timeZone."
            )
    key = parser.setting("a setting")
    if parser.at_end:
        return SetStatement(key, None, parser.place(first))
    if not parser.words("="):
        parser.expected("= and a value", "=")
    return SetStatement(key, parser.rest("A value").text, parser.place(first))


def _use(parser: StatementParser, _: Token) -> UseStatement:
    if parser.words("CATALOG"):
        return UseStatement(parser.literal_or_name("the catalog"), None)
    if not parser.words("SCHEMA") and not parser.words("DATABASE"):
        parser.words("NAMESPACE")
    name = parser.name("the schema")
    catalog, dot, schema = name.rpartition(".")
    if "." in catalog:
        parser.expected("catalog.schema", remedy="Write USE CATALOG name, and USE SCHEMA name.")
    return UseStatement(catalog if dot else None, schema)


_STATEMENTS: dict[tuple[str, ...], Callable[[StatementParser, Token], Statement]] = {
    ("CREATE",): _create,
    ("AUTO", "CDC"): _changes,
    ("APPLY", "CHANGES"): _changes,
    ("SET",): _set,
    ("USE",): _use,
}
