"""The list between a dataset's name and its clauses: columns and constraints."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token

from headwater.definitions.expectation import ViolationAction
from headwater.sql_sources.conditions import SqlNotUnderstood
from headwater.sql_sources.parser import StatementParser
from headwater.sql_sources.statements import ColumnLabel, Rule

_ACTIONS = {
    ("FAIL", "UPDATE"): ViolationAction.FAIL,
    ("DROP", "ROW"): ViolationAction.DROP,
    ("QUARANTINE", "ROW"): ViolationAction.QUARANTINE,
}
_KEYS = "Delta has no keys. Take it out; dp.expect_unique in Python counts rows that share a key."
_PROPERTIES = ("NOT NULL", "COMMENT", "GENERATED", "DEFAULT", "MASK", "PRIMARY KEY", "CONSTRAINT", "COLLATE")


@dataclass
class ColumnList:
    """What the list holds: columns with types as DDL text, columns without, and rules."""

    typed: list[str] = field(default_factory=list)
    labels: list[ColumnLabel] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)


def read_columns(parser: StatementParser, *, of_view: bool) -> ColumnList:
    """Read the list that stands here; an empty one where there is none.

    Raises:
        SqlNotUnderstood: where something else stands.
        UnsupportedArgument: where a key, a mask or the like is asked for.
    """
    found = ColumnList()
    if parser.see("("):
        parser.listed(lambda: _item(parser, found, of_view=of_view))
    return found


def _item(parser: StatementParser, found: ColumnList, *, of_view: bool) -> None:
    first = parser.current
    if parser.words("CONSTRAINT"):
        found.rules.append(_constraint(parser, first))
    elif parser.see("PRIMARY", "KEY") or parser.see("FOREIGN", "KEY"):
        parser.unsupported("A key", first, _KEYS)
    else:
        _column(parser, found, of_view=of_view)


def _constraint(parser: StatementParser, first: Token) -> Rule:
    name = parser.plain_name("a constraint")
    if parser.see("PRIMARY") or parser.see("FOREIGN"):
        parser.unsupported(f"The key {name!r}", first, _KEYS)
    parser.need(
        "EXPECT", remedy="Write CONSTRAINT name EXPECT (condition) [ON VIOLATION DROP ROW | FAIL UPDATE]."
    )
    condition = parser.inside_parentheses("The condition").text
    action = ViolationAction.WARN
    if parser.words("ON"):
        parser.need("VIOLATION")
        matched = next((words for words in _ACTIONS if parser.words(*words)), None)
        if matched is None:
            parser.expected("What happens to the row", *(" ".join(words) for words in _ACTIONS))
        action = _ACTIONS[matched]
    return Rule(name, condition, action, parser.place(first))


def _column(parser: StatementParser, found: ColumnList, *, of_view: bool) -> None:
    first = parser.current
    name = parser.plain_name("a column")
    has_type = not any(parser.see(word.split()[0]) for word in (*_PROPERTIES, ",", ")"))
    if has_type and of_view:
        parser.expected(
            "A comma", "COMMENT", remedy="Columns of a view have no types: cast them in its query."
        )
    if has_type:
        _type(parser, name)
    comment = _properties(parser, name)
    if not has_type:
        _only_labels(parser, first, found, name, wrong=bool(found.typed))
        found.labels.append(ColumnLabel(name, comment))
    else:
        _only_labels(parser, first, found, name, wrong=bool(found.labels))
        found.typed.append(parser.fragment(first, parser.previous).text)


def _only_labels(parser: StatementParser, first: Token, found: ColumnList, name: str, *, wrong: bool) -> None:
    if wrong:
        raise SqlNotUnderstood(
            f"The column {name!r} has {'a' if found.labels else 'no'} type, and those before it "
            f"{'have none' if found.labels else 'have one'}.",
            where=parser.place(first),
            remedy="Give all columns their types, or none.",
        )


def _type(parser: StatementParser, name: str) -> None:
    try:
        kind = parser.column_type()
    except ParseError:
        kind = False
    if not kind:
        parser.expected(
            f"The type of the column {name!r}", remedy="Write it as name TYPE [NOT NULL] [COMMENT 'text']."
        )
    if parser.words("COLLATE"):
        parser.plain_name("a collation")


def _properties(parser: StatementParser, name: str) -> str | None:
    comment = None
    while not (parser.see(",") or parser.see(")") or parser.at_end):
        token = parser.current
        if parser.words("NOT"):
            parser.need("NULL")
        elif parser.words("COMMENT"):
            comment = parser.text("The comment")
        elif parser.words("GENERATED") or parser.words("DEFAULT"):
            # Spark's parser reads it, and says what can be had of it.
            parser.expression_text("An expression", (",",), ("COMMENT",), ("NOT", "NULL"), ("MASK",))
        elif parser.words("MASK"):
            parser.unsupported(
                f"MASK of the column {name!r}", token, "Open Delta has no masks. Mask it in the query."
            )
        elif parser.see("PRIMARY") or parser.see("CONSTRAINT") or parser.see("REFERENCES"):
            parser.unsupported(f"A key on the column {name!r}", token, _KEYS)
        else:
            parser.expected(f"A comma after the column {name!r}", ",", *_PROPERTIES)
    return comment
