"""The dialect of pipelines: Databricks' SQL, whose tokens give every statement's parts with their positions.

Decision 0159.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from headwater.sql_sources.conditions import SqlNotUnderstood
from headwater.sql_sources.source import SqlSource


class PipelineSql(Databricks):
    """Databricks' SQL without statements that swallow their text unread."""

    class Tokenizer(Databricks.Tokenizer):
        """The tokens: each is one word, so that clauses can be read word by word."""

        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: kind for word, kind in Databricks.Tokenizer.KEYWORDS.items() if " " not in word
        }
        COMMANDS: ClassVar[set[TokenType]] = set()


def tokens_of(source: SqlSource) -> list[Token]:
    """The tokens of a source; raises SqlNotUnderstood where a literal, a quoted name or a comment does not end."""
    try:
        tokens = PipelineSql().tokenize(source.text)
    except TokenError as error:
        raise _unreadable(source, error) from None
    return tokens


def _unreadable(source: SqlSource, error: TokenError) -> SqlNotUnderstood:
    cause = str(error.__cause__ or error)
    start = cause.rpartition(":")[2].strip()
    # Of a quote the tokenizer gives the place where it begins; of a comment it gives none.
    offset = int(start) if cause.startswith("Missing") and start.isdigit() else source.text.rfind("/*")
    return SqlNotUnderstood(
        "A literal, a quoted name or a comment begins here and does not end.",
        where=source.place(max(min(offset, len(source.text) - 1), 0)),
        remedy="Close it: 'text', \"text\", `name`, /* comment */.",
    )
