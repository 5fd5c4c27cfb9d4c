"""From the text of a source to its statements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from headwater.sql_sources.dialect import tokens_of
from headwater.sql_sources.source import SqlSource


@dataclass(frozen=True)
class StatementText:
    """One statement: where it begins and ends in its source (the end is past the last character), and its tokens."""

    source: SqlSource
    start: int
    stop: int
    tokens: tuple[Token, ...]

    @property
    def text(self) -> str:
        """The statement as the user wrote it, without the semicolon."""
        return self.source.text[self.start : self.stop]


def statements_in(source: SqlSource) -> Iterator[StatementText]:
    """The statements of a source, in order: what stands between semicolons, unless that is nothing or comments alone.

    Raises:
        SqlNotUnderstood: where a literal, a quoted name or a comment does not end.
    """
    statement: list[Token] = []
    for token in tokens_of(source):
        if token.token_type is not TokenType.SEMICOLON:
            statement.append(token)
            continue
        if statement:
            yield _statement(source, statement)
        statement = []
    if statement:
        yield _statement(source, statement)


def _statement(source: SqlSource, tokens: list[Token]) -> StatementText:
    return StatementText(source, tokens[0].start, tokens[-1].end + 1, tuple(tokens))
