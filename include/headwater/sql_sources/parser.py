"""The parser's own steps: words, names, literals, lists, and the errors that say where something else was expected.

Decision 0159.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from sqlglot.errors import ErrorLevel
from sqlglot.parsers.databricks import DatabricksParser
from sqlglot.tokenizer_core import Token, TokenType

from headwater.errors import UnsupportedArgument
from headwater.sql_sources.conditions import SqlNotUnderstood
from headwater.sql_sources.dialect import PipelineSql, tokens_of
from headwater.sql_sources.source import Fragment, Place, SqlSource
from headwater.sql_sources.values import FilledStatement
from headwater.suggestions import nearest

Item = TypeVar("Item")
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)


class StatementParser(DatabricksParser):
    """sqlglot's parser over one statement, with steps that keep the user's text and its places."""

    def __init__(self, statement: FilledStatement) -> None:
        super().__init__(error_level=ErrorLevel.IMMEDIATE, dialect=PipelineSql())
        self._statement = statement
        self.sql = statement.text
        self._tokens = tokens_of(SqlSource(statement.statement.source.label, statement.text))
        self._tokens_size = len(self._tokens)
        self._index = -1
        self._advance()

    # -- where -----------------------------------------------------------------------------------------------------

    def place(self, token: Token | None = None) -> Place:
        """Where a token stands in the user's source; the current one, or the statement's end, if none is given."""
        token = token or self._curr
        return self._statement.place(token.start if token else len(self.sql) - 1)

    def fragment(self, first: Token, last: Token) -> Fragment:
        """The text from one token to another."""
        return Fragment(self.sql[first.start : last.end + 1], self.place(first))

    def expected(self, what: str, *words: str, remedy: str = "") -> NoReturn:
        """Refuse the current token where something else has to stand. ``words``: what may stand there, for the nearest."""
        shown = f"{self._curr.text!r}" if self._curr else "the end of the statement"
        near = (
            nearest(self._curr.text.upper(), [word.partition(" ")[0] for word in words])
            if self._curr
            else None
        )
        full = next((word for word in words if near and word.partition(" ")[0] == near), None)
        choices = f"Did you mean {full}?" if full else f"Possible here: {', '.join(words)}." if words else ""
        raise SqlNotUnderstood(
            f"{what} was expected, and {shown} stands here.",
            where=self.place(),
            remedy=remedy or choices or "Correct the statement.",
        )

    def unsupported(self, what: str, token: Token, remedy: str) -> NoReturn:
        """Refuse a clause that is understood and can't be honoured."""
        raise UnsupportedArgument(f"{what} can't be honoured here.", where=self.place(token), remedy=remedy)

    # -- steps -----------------------------------------------------------------------------------------------------

    @property
    def current(self) -> Token:
        """The token that stands here; one that is false at the end."""
        return self._curr

    @property
    def previous(self) -> Token:
        """The token that was read last."""
        return self._prev

    @property
    def position(self) -> int:
        """A number for the current place, for ``back_to``."""
        return int(self._index)

    def back_to(self, position: int) -> None:
        """Stand at an earlier place again."""
        self._retreat(position)

    @property
    def first_words(self) -> list[str]:
        """The first words of the statement."""
        return [str(token.text) for token in self._tokens[:12]]

    @property
    def at_end(self) -> bool:
        """Whether the statement is read to its end."""
        return not self._curr

    def words(self, *words: str) -> bool:
        """Step over these words if they stand here, in any letter case."""
        return bool(self._match_text_seq(*words))

    def see(self, *words: str) -> bool:
        """Whether these words stand here."""
        return bool(self._match_text_seq(*words, advance=False))

    def need(self, *words: str, remedy: str = "") -> None:
        """Step over words that have to stand here."""
        for word in words:
            if not self.words(word):
                self.expected(word, word, remedy=remedy)

    def name(self, what: str) -> str:
        """A dotted name, without its backticks."""
        parts = [self.plain_name(what)]
        while self._curr and self._curr.token_type is TokenType.DOT:
            self._advance()
            parts.append(self.plain_name(what))
        return ".".join(parts)

    @property
    def at_name(self) -> bool:
        """Whether a name can stand here."""
        written = self.sql[self._curr.start : self._curr.end + 1] if self._curr else ""
        return bool(self._curr) and (
            self._curr.token_type is TokenType.IDENTIFIER or written.replace("_", "a").isalnum()
        )

    def plain_name(self, what: str) -> str:
        """One name, in backticks or not."""
        token = self._curr
        if not self.at_name:
            self.expected(f"The name of {what}")
        self._advance()
        return str(token.text)

    def text(self, what: str) -> str:
        """A literal text; several in a row are one."""
        if not self._curr or self._curr.token_type not in (TokenType.STRING, TokenType.RAW_STRING):
            self.expected(f"{what} in quotes")
        parts: list[str] = []
        while self._curr and self._curr.token_type in (TokenType.STRING, TokenType.RAW_STRING):
            # A quote inside is written twice: two literals without a space between them.
            if parts and self._curr.start == self._prev.end + 1:
                parts.append(self.sql[self._curr.start])
            parts.append(self._curr.text)
            self._advance()
        return "".join(parts)

    def step(self) -> str:
        """Step over one token; its text."""
        self._advance()
        return str(self._prev.text)

    def scalar(self, what: str) -> str:
        """A literal text, number or truth value, as text."""
        if self._curr and self._curr.token_type is TokenType.STRING:
            return self.text(what)
        sign = "-" if self.words("-") else ""
        token = self._curr
        if not token or token.token_type not in (TokenType.NUMBER, TokenType.TRUE, TokenType.FALSE):
            self.expected(f"{what} in quotes")
        self._advance()
        return sign + str(token.text).lower()

    def setting(self, what: str) -> str:
        """The key of a setting: words with dots, or in backticks."""
        key = self.name(what)
        while self._curr and self._curr.start == self._prev.end + 1 and self.words("-"):
            key += "-" + self.name(what)
        return key

    def literal_or_name(self, what: str) -> str:
        """One name, or the same in quotes."""
        if self._curr and self._curr.token_type is TokenType.STRING:
            return self.text(f"The name of {what}")
        return self.plain_name(what)

    def column_type(self) -> bool:
        """Step over a column's type; whether there is one. Raises ParseError."""
        return self._parse_types(check_func=False, schema=True) is not None

    def listed(self, item: Callable[[], Item]) -> list[Item]:
        """Items between parentheses, with commas."""
        self.need("(")
        items = [item()]
        while self.words(","):
            items.append(item())
        self.need(")")
        return items

    def inside_parentheses(self, what: str) -> Fragment:
        """The text between a parenthesis that stands here and the one that closes it."""
        opening = self._curr
        if not self.see("("):
            self.expected(f"{what} in parentheses", "(")
        closing = self.balanced(lambda: False, one=True)
        assert closing is not None
        if not self.sql[opening.end + 1 : closing.start].strip():
            raise SqlNotUnderstood(
                f"{what} is empty.", where=self.place(opening), remedy="Write it between the parentheses."
            )
        text = self.sql[opening.end + 1 : closing.start]
        begin = opening.end + 1 + len(text) - len(text.lstrip())
        return Fragment(text.strip(), self._statement.place(begin))

    def expression_text(self, what: str, *ends: tuple[str, ...]) -> str:
        """The text of an expression: up to one of the words that end it, outside parentheses, or the statement's end."""
        first = self._curr
        last = self.balanced(lambda: any(self.see(*words) for words in ends))
        if last is None:
            self.expected(what)
        return self.fragment(first, last).text

    def balanced(self, stop: Callable[[], bool], *, one: bool = False) -> Token | None:
        """Step on to where ``stop`` holds outside parentheses, or to one that closes; the last token passed, if any.

        ``one``: step over one pair of parentheses, which opens here.
        """
        opened: list[Token] = []
        last = None
        while self._curr and (opened or not stop()):
            if self._curr.token_type in _OPENING:
                opened.append(self._curr)
            elif self._curr.token_type in _CLOSING:
                if not opened:
                    break
                opened.pop()
            last = self._curr
            self._advance()
            if one and not opened:
                break
        if opened:
            raise SqlNotUnderstood(
                "A parenthesis begins here and is not closed.",
                where=self.place(opened[0]),
                remedy="Close it.",
            )
        return last

    def rest(self, what: str) -> Fragment:
        """All that is left of the statement."""
        if self.at_end:
            self.expected(what)
        first, last = self._curr, self._tokens[-1]
        self._advance(self._tokens_size - self._index)
        return self.fragment(first, last)
