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
_KEY = "nothing checks a key here, as Lakeflow does not either; dp.expect_unique in Python counts rows that share one"
_PROPERTIES = ("NOT NULL", "COMMENT", "GENERATED", "DEFAULT", "MASK", "PRIMARY KEY", "CONSTRAINT", "COLLATE")


@dataclass
class ColumnList:
    """What the list holds: columns with types as DDL text, columns without, rules, and what has no effect, with the reason."""

    typed: list[str] = field(default_factory=list)
    labels: list[ColumnLabel] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    idle: dict[str, str] = field(default_factory=dict)


def read_columns(parser: StatementParser, *, of_view: bool) -> ColumnList:
    """Read the list that stands here; an empty one where there is none.

    Raises:
        SqlNotUnderstood: where something else stands.
        UnsupportedArgument: where a mask is asked for.
    """
    columns = ColumnList()
    if parser.see("(") and not parser.words("(", ")"):
        parser.listed(lambda: _item(parser, columns, of_view=of_view))
    return columns


def _item(parser: StatementParser, columns: ColumnList, *, of_view: bool) -> None:
    first = parser.current
    if parser.words("CONSTRAINT"):
        name = parser.plain_name("a constraint")
        if parser.see("PRIMARY") or parser.see("FOREIGN"):
            _key(parser, columns, f"CONSTRAINT {name}")
        else:
            columns.rules.append(_constraint(parser, first, name))
    elif parser.see("PRIMARY", "KEY") or parser.see("FOREIGN", "KEY"):
        _key(parser, columns, f"{parser.current.text.upper()} KEY")
    else:
        _column(parser, columns, of_view=of_view)


def _key(parser: StatementParser, columns: ColumnList, what: str) -> None:
    """PRIMARY KEY and FOREIGN KEY, of the table or of a column, up to the next item or property."""
    parser.expression_text("A key", (",",), ("COMMENT",), ("NOT", "NULL"), ("MASK",))
    columns.idle[what] = _KEY


def _constraint(parser: StatementParser, first: Token, name: str) -> Rule:
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


def _column(parser: StatementParser, columns: ColumnList, *, of_view: bool) -> None:
    first = parser.current
    name = parser.plain_name("a column")
    has_type = not any(parser.see(word.split()[0]) for word in (*_PROPERTIES, ",", ")"))
    if has_type and of_view:
        parser.expected(
            "A comma", "COMMENT", remedy="Columns of a view have no types: cast them in its query."
        )
    if has_type:
        _type(parser, name)
    pieces = [parser.fragment(first, parser.previous).text]
    comment = _properties(parser, name, columns, pieces)
    if not has_type:
        _only_labels(parser, first, columns, name, wrong=bool(columns.typed))
        columns.labels.append(ColumnLabel(name, comment))
    else:
        _only_labels(parser, first, columns, name, wrong=bool(columns.labels))
        columns.typed.append(" ".join(pieces))


def _only_labels(
    parser: StatementParser, first: Token, columns: ColumnList, name: str, *, wrong: bool
) -> None:
    if wrong:
        raise SqlNotUnderstood(
            f"The column {name!r} has {'a' if columns.labels else 'no'} type, and those before it "
            f"{'have none' if columns.labels else 'have one'}.",
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


def _properties(parser: StatementParser, name: str, columns: ColumnList, pieces: list[str]) -> str | None:
    """Read a column's properties; those that Spark's own DDL has are added to ``pieces``. The comment, if there is one."""
    comment = None
    while not (parser.see(",") or parser.see(")") or parser.at_end):
        first = parser.current
        if parser.words("CONSTRAINT"):
            rule = parser.plain_name("a constraint")
            if parser.see("EXPECT"):  # the comma before it was left out
                columns.rules.append(_constraint(parser, first, rule))
                continue
        if parser.see("PRIMARY") or parser.see("REFERENCES") or parser.see("FOREIGN"):
            _key(parser, columns, f"the key on the column {name}")
            continue
        if parser.words("NOT"):
            parser.need("NULL")
        elif parser.words("COMMENT"):
            comment = parser.text("The comment")
        elif parser.words("GENERATED") or parser.words("DEFAULT"):
            # Spark's parser reads it, and says what can be had of it.
            parser.expression_text(
                "An expression", (",",), ("COMMENT",), ("NOT", "NULL"), ("MASK",), ("PRIMARY",)
            )
        elif parser.words("MASK"):
            parser.unsupported(
                f"MASK of the column {name!r}", first, "Open Delta has no masks. Mask it in the query."
            )
        else:
            parser.expected(f"A comma after the column {name!r}", ",", *_PROPERTIES)
        pieces.append(parser.fragment(first, parser.previous).text)
    return comment
