"""The clauses of AUTO CDC and APPLY CHANGES, in any order, each once."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot.tokenizer_core import Token

from headwater.sql_sources.conditions import SqlNotUnderstood
from headwater.sql_sources.parser import StatementParser
from headwater.sql_sources.source import Fragment
from headwater.sql_sources.statements import Changes

_CLAUSES = (
    "KEYS", "IGNORE NULL UPDATES", "APPLY AS DELETE WHEN", "APPLY AS TRUNCATE WHEN", "SEQUENCE BY", "COLUMNS", "STORED AS SCD TYPE",
    "TRACK HISTORY ON",
)  # fmt: skip
# Where an expression ends.
_ENDS = (
    ("KEYS", "("), ("IGNORE", "NULL"), ("APPLY", "AS"), ("SEQUENCE", "BY"), ("SYSTEM", "SEQUENCE"), ("COLUMNS",), ("STORED", "AS"),
    ("TRACK", "HISTORY"), ("WHERE",),
)  # fmt: skip
# What may stand between a stream's name and the clauses: the source is a query then.
_AFTER_STREAMS = ("WITH", "WATERMARK", "TABLESAMPLE", "AS", ".", "(")
_SNAPSHOTS = "Lakeflow has snapshots in Python alone: dp.create_auto_cdc_from_snapshot_flow(target=..., source=..., keys=[...])."
_BATCH = "Changes are read as a stream: FROM STREAM(source). For a first filling write AUTO CDC ONCE INTO."


def read_changes(parser: StatementParser, *, batch: bool) -> Changes:
    """Read ``FROM source KEYS (...) ...`` to the end of the statement.

    Raises:
        SqlNotUnderstood: an unknown clause, one that is there twice, or one that is missing.
        UnsupportedArgument: one that can't be honoured.
    """
    if parser.see("FROM", "SNAPSHOT"):
        parser.unsupported("AUTO CDC FROM SNAPSHOT", parser.current, _SNAPSHOTS)
    parser.need("FROM")
    source = _source(parser, batch=batch)
    arguments: dict[str, object] = {}
    while not parser.at_end:
        token = parser.current
        words = next((words for words in _READ if parser.see(*words)), None)
        if words is None:
            parser.expected("A clause of AUTO CDC", *_CLAUSES)
        parser.words(*words)
        for name, value in _READ[words](parser, token).items():
            if name in arguments:
                raise SqlNotUnderstood(
                    f"{' '.join(words)} is there twice.", where=parser.place(token), remedy="Keep one."
                )
            arguments[name] = value
    for needed, clause in (("keys", "KEYS (column)"), ("sequence_by", "SEQUENCE BY column")):
        if needed not in arguments:
            parser.expected(clause, clause)
    keys = arguments.pop("keys")
    assert isinstance(keys, list)
    return Changes(source, tuple(keys), batch, arguments)


def _source(parser: StatementParser, *, batch: bool) -> str | Fragment:
    """The name of a source, or the text of a query where it is more than a name."""
    first = parser.current
    named = _named_stream(parser)
    if named is not None:
        return named
    if batch and not parser.see("(") and not parser.see("STREAM"):
        return parser.name("the source")
    if parser.see("("):
        return parser.inside_parentheses("The query of the source")
    if not parser.see("STREAM"):
        parser.expected("STREAM(source)", "STREAM(source)", remedy=_BATCH)
    last = parser.balanced(lambda: any(parser.see(*words) for words in _ENDS))
    assert last is not None
    text = parser.fragment(first, last)
    return Fragment(f"SELECT * FROM {text.text}", text.place)  # noqa: S608 - the user's own text


def _named_stream(parser: StatementParser) -> str | None:
    """``STREAM(name)`` or ``STREAM name``, and nothing else before the next clause; None where it is more."""
    start = parser.position
    if not parser.words("STREAM"):
        return None
    closed = not parser.words("(")
    name = parser.name("the source") if parser.at_name else None
    closed = closed or parser.words(")")
    if name is not None and closed and (parser.at_end or any(parser.see(*words) for words in _ENDS)):
        return name
    if name is not None and closed and not any(map(parser.see, _AFTER_STREAMS)):
        parser.expected("A clause of AUTO CDC", *_CLAUSES)
    parser.back_to(start)
    return None


def _keys(parser: StatementParser, _: Token) -> dict[str, object]:
    return {"keys": _columns(parser)}


def _columns(parser: StatementParser) -> list[str]:
    """Columns in parentheses, or with commas alone."""
    if parser.see("("):
        return parser.listed(lambda: parser.name("a column"))
    names = [parser.name("a column")]
    while parser.words(","):
        names.append(parser.name("a column"))
    return names


def _chosen(parser: StatementParser, listed: str, but: str) -> dict[str, object]:
    """``columns`` or ``* EXCEPT (columns)``; a star alone is all of them, and says nothing."""
    if parser.words("*"):
        return {but: _columns(parser)} if parser.words("EXCEPT") else {}
    return {listed: _columns(parser)}


def _nulls(parser: StatementParser, _: Token) -> dict[str, object]:
    lists = _chosen(
        parser, "ignore_null_updates_column_list", "ignore_null_updates_except_column_list"
    ) if parser.words("ON") else {}  # fmt: skip
    return {"ignore_null_updates": True, **lists}


def _deletes(parser: StatementParser, _: Token) -> dict[str, object]:
    return {"apply_as_deletes": parser.expression_text("A condition", *_ENDS)}


def _truncates(parser: StatementParser, _: Token) -> dict[str, object]:
    return {"apply_as_truncates": parser.expression_text("A condition", *_ENDS)}


def _sequence(parser: StatementParser, _: Token) -> dict[str, object]:
    return {"sequence_by": parser.expression_text("A column", *_ENDS)}


def _system_sequence(parser: StatementParser, _: Token) -> dict[str, object]:
    return {"system_sequence_by": parser.expression_text("A column", *_ENDS)}


def _stored(parser: StatementParser, _: Token) -> dict[str, object]:
    if parser.words("BITEMPORAL"):
        return {"stored_as_scd_type": "bitemporal"}
    parser.need("SCD", "TYPE")
    if not (parser.see("1") or parser.see("2")):
        parser.expected("1 or 2", "1", "2")
    return {"stored_as_scd_type": parser.step()}


def _history(parser: StatementParser, _: Token) -> dict[str, object]:
    return _chosen(parser, "track_history_column_list", "track_history_except_column_list")


def _where(parser: StatementParser, token: Token) -> dict[str, object]:
    parser.unsupported(
        "WHERE", token, "Filter in a temporary view, and read the changes from it: FROM STREAM(view)."
    )


_READ: dict[tuple[str, ...], Callable[[StatementParser, Token], dict[str, object]]] = {
    ("KEYS",): _keys,
    ("IGNORE", "NULL", "UPDATES"): _nulls,
    ("APPLY", "AS", "DELETE", "WHEN"): _deletes,
    ("APPLY", "AS", "TRUNCATE", "WHEN"): _truncates,
    ("SEQUENCE", "BY"): _sequence,
    ("SYSTEM", "SEQUENCE", "BY"): _system_sequence,
    ("COLUMNS", "TO", "UPDATE"): lambda parser, _: {"columns_to_update": parser.name("a column")},
    ("COLUMNS",): lambda parser, _: _chosen(parser, "column_list", "except_column_list"),
    ("STORED", "AS"): _stored,
    ("TRACK", "HISTORY", "ON"): _history,
    ("WHERE",): _where,
}
