"""Values in place of ``${name}``, ``:name`` and ``IDENTIFIER(...)``: each becomes one literal or one name.

A value is never pasted as text: whatever it holds, it can't end the literal or the name in which it stands, nor add to the
statement.

Decision 0159.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from headwater.definitions.names import is_plain_name
from headwater.errors import HeadwaterError, MissingValue
from headwater.sql_sources.conditions import SqlNotUnderstood
from headwater.sql_sources.dialect import PipelineSql, tokens_of
from headwater.sql_sources.source import Place, SqlSource
from headwater.sql_sources.splitting import StatementText
from headwater.suggestions import nearest

# As in the text of `spark.sql`.
_VARIABLE = re.compile(r"\$\{([A-Za-z_][\w.]*)\}")
_TEXTS = (TokenType.STRING, TokenType.RAW_STRING, TokenType.NATIONAL_STRING, TokenType.IDENTIFIER)
# After these words comes a value; after any other a colon begins a path into the column that the word names.
_BEFORE_VALUES = {
    "ALL", "AND", "AS", "BETWEEN", "BY", "CASE", "DELAY", "DISTINCT", "ELSE", "EXPECT", "FROM", "HAVING", "IN", "INTERVAL", "IS", "LIKE",
    "LIMIT", "NOT", "OF", "OFFSET", "ON", "OR", "RLIKE", "SELECT", "STREAM", "THEN", "VALUES", "WHEN", "WHERE", "WITH",
}  # fmt: skip
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.NUMBER, *_TEXTS)

_PAIRS = {")": "(", "]": "[", "}": "{"}
_BRACKETS = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)

Value = str | int | float | bool | Decimal | datetime.date | datetime.datetime | None


@dataclass(frozen=True)
class Values:
    """Where values come from. ``lookup`` gives one by its name, and raises KeyError where there is none."""

    lookup: Callable[[str], Value]
    names: Collection[str] = ()


@dataclass(frozen=True)
class _Edit:
    start: int
    stop: int
    text: str


@dataclass(frozen=True)
class FilledStatement:
    """A statement with its values in place; positions still lead back to the user's text."""

    statement: StatementText
    text: str
    edits: tuple[_Edit, ...]

    def place(self, offset: int) -> Place:
        """Where in the user's source the character at ``offset`` of ``text`` comes from."""
        shift = 0
        for edit in self.edits:
            begin = edit.start + shift
            if offset < begin:
                break
            if offset < begin + len(edit.text):
                return self._place(edit.start)
            shift += len(edit.text) - (edit.stop - edit.start)
        return self._place(offset - shift)

    def _place(self, offset: int) -> Place:
        return self.statement.source.place(self.statement.start + offset)


def filled(statement: StatementText, values: Values) -> FilledStatement:
    """The statement with a literal or a name in place of each parameter.

    Raises:
        MissingValue: a name without a value.
        SqlNotUnderstood: a value that is not a single literal or name where one has to be.
    """
    edits = tuple(_Filling(statement, values).edits())
    text, done = "", 0
    for edit in edits:
        text += statement.text[done : edit.start] + edit.text
        done = edit.stop
    return FilledStatement(statement, text + statement.text[done:], edits)


def literal(value: Value) -> str:
    """A value as a literal of Spark's SQL."""
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).upper()
    if isinstance(value, float):
        return f"DOUBLE({_quoted(repr(value))})"
    if isinstance(value, int | Decimal):
        return str(value)
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMP {_quoted(value.isoformat(sep=' '))}"
    return f"DATE {_quoted(value.isoformat())}" if isinstance(value, datetime.date) else _quoted(value)


def _quoted(text: str) -> str:
    return f"'{_inside_quotes(text)}'"


def _inside_quotes(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace('"', '\\"')
    escaped = escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0")
    # Spark fills in variables by itself, in literals too.
    return escaped.replace("${", "\\u0024{")


class _Filling:
    """The edits of one statement, from its tokens."""

    def __init__(self, statement: StatementText, values: Values) -> None:
        self._statement = statement
        self._values = values
        self._tokens = statement.tokens

    def edits(self) -> Iterator[_Edit]:
        index = 0
        while index < len(self._tokens):
            edit, index = self._next(index)
            yield from edit

    def _next(self, index: int) -> tuple[list[_Edit], int]:
        token = self._tokens[index]
        if token.token_type in _TEXTS and "${" in self._text(token.start, token.end + 1):
            return [self._inside(token)], index + 1
        if token.text == "$" and self._follows(index + 1, "{"):
            return self._bare(index)
        if token.token_type is TokenType.COLON and self._is_parameter(index):
            name = self._tokens[index + 1]
            value = literal(self._value(name.text, f":{name.text}", token.start))
            return [self._edit(token.start, name.end + 1, value)], index + 2
        if token.text.upper() == "IDENTIFIER" and self._follows(index + 1, "("):
            return self._identifier(index)
        return [], index + 1

    def _inside(self, token: Token) -> _Edit:
        """``${name}`` inside a literal or a quoted name."""
        raw = self._text(token.start, token.end + 1)
        is_raw = token.token_type is TokenType.RAW_STRING

        def value(match: re.Match[str]) -> str:
            text = self._text_value(match[1], token.start + match.start())
            if token.token_type is TokenType.IDENTIFIER and "${" not in text:
                return text.replace("`", "``")
            if token.token_type is TokenType.IDENTIFIER:
                raise self._wrong(f"The value of {match[0]} has ${{, which a name can't hold.", token.start)
            if is_raw and re.search(r"['\"\n]|\$\{", text):
                raise self._wrong(
                    f"The value of {match[0]} has quotes, which a raw literal can't hold.", token.start
                )
            return text if is_raw else _inside_quotes(text)

        return self._edit(token.start, token.end + 1, _VARIABLE.sub(value, raw))

    def _bare(self, index: int) -> tuple[list[_Edit], int]:
        """``${name}`` outside literals: its value is one name or one literal."""
        start = self._tokens[index].start
        match = _VARIABLE.match(self._statement.source.text, start)
        if match is None:
            raise self._wrong("A dollar sign begins ${name} here, and the name is not one.", start)
        text = self._text_value(match[1], start).strip()
        if not (_one_value(text) or (self._in_column_list(index) and _whole_tokens(text))):
            raise self._wrong(
                f"The value of {match[0]} is neither one name nor one literal, and is not pasted as text.", start,
                f"Write '{match[0]}' in quotes, or give it one value.",
            )  # fmt: skip
        after = next((n for n, t in enumerate(self._tokens) if t.start >= match.end()), len(self._tokens))
        return [self._edit(start, match.end(), text)], after

    def _in_column_list(self, index: int) -> bool:
        """Whether a token stands in the list of columns behind the name of what CREATE makes."""
        before = self._tokens[:index]
        opened = [n for n, token in enumerate(before) if token.text == "("]
        if not opened or before[0].text.upper() != "CREATE":
            return False
        # Nothing stands between the name and its list: neither a query nor another clause has begun.
        head = [token.text.upper() for token in before[: opened[0]]]
        depth = sum({"(": 1, ")": -1}.get(token.text, 0) for token in before)
        return depth == 1 and not {"AS", "TBLPROPERTIES", "BY", "USING"} & set(head)

    def _is_parameter(self, index: int) -> bool:
        """Whether a colon begins ``:name`` rather than a path into a column."""
        if index + 1 >= len(self._tokens):
            return False
        colon, name = self._tokens[index], self._tokens[index + 1]
        if name.start != colon.end + 1 or not is_plain_name(self._text(name.start, name.end + 1)):
            return False
        if index == 0:
            return True
        before = self._tokens[index - 1]
        if is_plain_name(self._text(before.start, before.end + 1)):
            return before.text.upper() in _BEFORE_VALUES and before.end + 1 < colon.start
        return before.token_type not in _CLOSING

    def _identifier(self, index: int) -> tuple[list[_Edit], int]:
        """``IDENTIFIER(expression)`` of literals and parameters: the name that it gives."""
        opening = self._tokens[index + 1]
        depth, last = 0, index + 1
        for last in range(index + 1, len(self._tokens)):
            depth += {"(": 1, ")": -1}.get(self._tokens[last].text, 0)
            if depth == 0:
                break
        inside = self._text(opening.end + 1, self._tokens[last].start)
        begin = opening.end + 1
        tokens = tuple(tokens_of(SqlSource(self._statement.source.label, inside)))
        padded = SqlSource(self._statement.source.label, self._statement.source.text[:begin] + inside)
        inner = StatementText(padded, begin, begin + len(inside), tuple(_moved(tokens, begin)))
        name = _constant(filled(inner, self._values).text)
        if name is None or not all(map(is_plain_name, name.split("."))):
            raise self._wrong(
                "IDENTIFIER(...) takes literals and parameters that give one name.", self._tokens[index].start,
                "Write IDENTIFIER(:name) or IDENTIFIER(:schema || '.orders').",
            )  # fmt: skip
        named = ".".join(f"`{part}`" for part in name.split("."))
        return [self._edit(self._tokens[index].start, self._tokens[last].end + 1, named)], last + 1

    def _follows(self, index: int, text: str) -> bool:
        return index < len(self._tokens) and self._tokens[index].text == text

    def _text(self, start: int, stop: int) -> str:
        return self._statement.source.text[start:stop]

    def _edit(self, start: int, stop: int, text: str) -> _Edit:
        return _Edit(start - self._statement.start, stop - self._statement.start, text)

    def _text_value(self, key: str, offset: int) -> str:
        value = self._value(key, f"${{{key}}}", offset)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def _value(self, key: str, spelled: str, offset: int) -> Value:
        try:
            return self._values.lookup(key)
        except KeyError:
            near = nearest(key, self._values.names)
            hint = f"Did you mean {spelled.replace(key, near)}? Or give" if near else "Give"
            raise MissingValue(
                f"The SQL text names {spelled}, and {key} has no value.",
                where=self._statement.source.place(offset),
                remedy=f"{hint} it one: `{key}: ...` under `configuration` in pipeline.yml, or --param {key}=...",
            ) from None

    def _wrong(self, what: str, offset: int, remedy: str = "Give it another value.") -> HeadwaterError:
        return SqlNotUnderstood(what, where=self._statement.source.place(offset), remedy=remedy)


def _moved(tokens: tuple[Token, ...], by: int) -> Iterator[Token]:
    for token in tokens:
        yield Token(token.token_type, token.text, token.line, token.col, token.start + by, token.end + by)


def _one_value(text: str) -> bool:
    """Whether a text is one dotted name, one number, or one literal in quotes."""
    if text and all(map(is_plain_name, (part.strip("`") for part in text.split(".")))):
        return True
    try:
        tokens = tokens_of(SqlSource("", text))
    except SqlNotUnderstood:
        return False
    if len(tokens) == 2 and tokens[0].token_type is TokenType.DASH:
        tokens = tokens[1:]
    whole = len(tokens) == 1 and tokens[0].end + 1 == len(text)
    return whole and tokens[0].token_type in (TokenType.STRING, TokenType.NUMBER)


def _whole_tokens(text: str) -> bool:
    """Whether a text is of whole tokens that close what they open, without a semicolon or a comment: columns and rules."""
    try:
        tokens = tokens_of(SqlSource("", text))
    except SqlNotUnderstood:
        return False
    opened: list[str] = []
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON or token.comments:
            return False
        if token.text in _PAIRS.values() and token.token_type not in _TEXTS:
            opened.append(token.text)
        elif (
            token.text in _PAIRS
            and token.token_type in _BRACKETS
            and (not opened or opened.pop() != _PAIRS[token.text])
        ):
            return False
    return not opened and (bool(tokens) or not text)


def _constant(text: str) -> str | None:
    """The text that an expression of literals gives, None where it is anything else."""
    try:
        parsed = PipelineSql().parse(text)
    except ParseError:
        return None
    return _text_of(parsed[0]) if len(parsed) == 1 and parsed[0] is not None else None


def _text_of(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Literal) and node.is_string:
        return str(node.this)
    if isinstance(node, exp.Paren):
        return _text_of(node.this)
    if isinstance(node, exp.DPipe | exp.Concat):
        operands = node.expressions if isinstance(node, exp.Concat) else [node.left, node.right]
        parts = [_text_of(part) for part in operands]
        return None if None in parts else "".join(part for part in parts if part is not None)
    if isinstance(node, exp.Coalesce | exp.Cast):
        return _text_of(node.this)
    return None
