r"""Which topics a ``subscribePattern`` matches: Java's regular expressions, where Python's have the same meaning.

Names of topics consist of ASCII letters, digits, ``.``, ``_`` and ``-``, and a pattern has to match the whole of one. For
such names both languages agree on literals, ``.``, simple classes, ``\d \w \s \b`` and their opposites, groups, lookahead,
alternatives, quantifiers, ``^`` and ``$``. Anything else is refused rather than translated: guessing which topics
a stream reads would mean guessing its lag.
"""

from __future__ import annotations

import re

from headwater.errors import SourceUnreachable

# Characters with the same meaning after a backslash: classes, boundaries, and punctuation as itself.
_ESCAPED = re.compile(r"\\(?:[dDwWsSbB]|[!-/:-@\[-`{-~])")
# A class: no class inside it and no set operation (both are Java's alone), and no "]" as its first sign.
_CLASS = re.compile(r"\[\^?+(?!\])(?:\\[dDwWsS!-/:-@\[-`{-~]|(?!&&|--|~~|\|\|)[^\\\[\]])+\]")
_GROUP = re.compile(r"\((?:\?[:=!])?(?!\?)")
_REPEAT = re.compile(r"\{\d+(?:,\d*)?\}")
_PLAIN = re.compile(r"[A-Za-z0-9._\-^$|)*+? /:,;=@%~<>!&#'\"]")
_PARTS = (_ESCAPED, _CLASS, _GROUP, _REPEAT, _PLAIN)


def topic_pattern(pattern: str) -> re.Pattern[str]:
    """The pattern for Python, to be used with ``fullmatch``.

    Raises:
        SourceUnreachable: where it can't be compiled, or Java may read it in another way.
    """
    at = 0
    while at < len(pattern):
        part = next((match for kind in _PARTS if (match := kind.match(pattern, at))), None)
        if part is None:
            raise _not_known(pattern, f"{pattern[at : at + 10]!r} at position {at} is valid in Java alone")
        at = part.end()
    try:
        return re.compile(pattern, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise _not_known(pattern, str(error)) from None


def _not_known(pattern: str, why: str) -> SourceUnreachable:
    return SourceUnreachable(
        f"Which topics the pattern {pattern!r} means is not known without Spark: {why}.",
        remedy="Spark reads it all the same; for lag and for updates that end at once where nothing is new, "
        "write it with classes such as [0-9], or name the topics with subscribe.",
    )
