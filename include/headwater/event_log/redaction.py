"""Keeps secrets out of the event log, and its records small.

A secret is known by its value (``headwater.runtime.secret_values``), or by the name that stands before it. The work grows with
the length of a text and no faster: each search goes on where the last one ended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from headwater.runtime.secret_values import NAMES_OF_SECRETS, REDACTED, known_secrets, names_a_secret

MAX_TEXT = 8 * 1024
# Text beyond this is not even searched where it is to be cut.
_LOOKED_AT = 16

_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z0-9 ]{0,20}-----.*?(?:-----END [A-Z0-9 ]{0,60}-----|\Z)",
    re.DOTALL,
)
# Neither half passes a slash, which every address has: no two searches read the same stretch.
_IN_ADDRESS = re.compile(r"(://[^\s/:@]*+:)[^\s/]+(@)")
# What stands before an @ by itself is not a login: abfss://container@account.
_LOGIN = re.compile(r"^([a-z][a-z0-9+.-]*://)[^/?#:]*:[^/?#]*@", re.IGNORECASE)
_SCHEMES = "Bearer|Basic|Digest|Negotiate|SharedKey|SharedAccessSignature"
# A name, the rest of its word, and what stands between it and its value: = : => ->, or that of a pair of texts. Quotes may
# be escaped, as in JSON within JSON. No repetition gives back what it took.
_NAMED = re.compile(
    rf"""{NAMES_OF_SECRETS}(?:[\w.]|-(?!>)){{0,120}}+
    (?: \\*+["'`]? \s{{0,8}}+ (?:=>|->|=|:) | \\*+["'] \s{{0,8}}+ ,? (?=\s{{0,8}}+\\*+["']) ) \s{{0,8}}+
    (?P<escapes>\\*+)(?P<quote>["'`]?)(?P<scheme>(?:(?:{_SCHEMES})\s{{1,8}}+)?)""",
    re.IGNORECASE | re.VERBOSE,
)
# An option in SQL may have nothing but space between its name, without quotes, and its value: OPTIONS (password 'x'). Elsewhere that
# may be any sentence.
_IN_OPTIONS = re.compile(
    rf"""([(,]\s{{0,8}}+[\w.-]{{0,80}}?{NAMES_OF_SECRETS}[\w.-]{{0,80}}+\s{{1,8}}+)(['"])(?:\\.|\2\2|(?!\2).)*+""",
    re.IGNORECASE | re.DOTALL,
)
_SCHEME_ALONE = re.compile(rf"(?<![\w-])({_SCHEMES})(\s{{1,8}}+)[\w.~+/=-]{{16,}}+", re.IGNORECASE)
_END_OF_WORD = re.compile(r"""[\s,;&)}\]"'<>]|\\["']|\Z""")


def redact_text(text: str) -> str:
    """``text`` with whatever looks like a secret replaced."""
    return _redact_text(text, known_secrets())


def public_address(address: str) -> str:
    """An address without its login, which leads nowhere without its secret, and without secrets in the rest of it."""
    return redact_text(_LOGIN.sub(r"\g<1>", address, count=1))


def quoted(error: BaseException) -> str:
    """An error of somebody else's code as one of our texts may quote it: its type and its message, without secrets."""
    text = redact_text(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _redact_text(text: str, secrets: Sequence[str]) -> str:
    for value in secrets:
        text = text.replace(value, REDACTED)
    text = _KEY_BLOCK.sub(REDACTED, text)
    text = _IN_ADDRESS.sub(rf"\g<1>{REDACTED}\g<2>", text)
    text = _IN_OPTIONS.sub(rf"\g<1>\g<2>{REDACTED}", text)
    return _SCHEME_ALONE.sub(rf"\g<1>\g<2>{REDACTED}", _without_named(text))


def _without_named(text: str) -> str:
    parts: list[str] = []
    start = 0
    while (match := _NAMED.search(text, start)) is not None:
        end = _end_of_value(text, match.end(), match["escapes"], match["quote"])
        parts.append(text[start : match.end()])
        if end > match.end():
            parts.append(REDACTED)
        start = max(end, match.end())
    return "".join([*parts, text[start:]])


def _end_of_value(text: str, start: int, escapes: str, mark: str) -> int:
    """Where a value ends: at the quote it began with, written as that one was; the text's end where that is missing."""
    if not mark:
        # What was replaced already is a word by itself, brackets and all.
        if text.startswith(REDACTED, start):
            return start + len(REDACTED)
        return _word_end(text, start)
    closing = escapes + mark
    end = text.find(closing, start)
    while end >= 0:
        slashes = _slashes_before(text, end, start)
        # A quote of the value's own is doubled (SQL), or has one more backslash before it.
        if text.startswith(closing, end + len(closing)) and not escapes and mark == "'":
            end = text.find(closing, end + 2 * len(closing))
        elif slashes % 2 if not escapes else slashes:
            end = text.find(closing, end + len(closing))
        else:
            return end
    return len(text)


def _word_end(text: str, start: int) -> int:
    match = _END_OF_WORD.search(text, start)
    return match.start() if match is not None else len(text)


def _slashes_before(text: str, end: int, start: int) -> int:
    before = end
    while before > start and text[before - 1] == "\\":
        before -= 1
    return end - before


def redact(value: Any) -> Any:
    """A JSON-like value with every secret replaced: by the name of its key, or as text."""
    return _redact(value, known_secrets())


def _redact(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, Mapping):
        return {
            _redact_text(str(key), secrets): _redact_item(str(key), item, secrets)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_redact(item, secrets) for item in value]
    return _redact_text(value, secrets) if isinstance(value, str) else value


def _redact_item(key: str, value: Any, secrets: Sequence[str]) -> Any:
    if names_a_secret(key) and value:
        if isinstance(value, str):
            return REDACTED
        if isinstance(value, list | tuple):
            return [REDACTED if isinstance(item, str) else _redact(item, secrets) for item in value]
    return _redact(value, secrets)


def bounded(text: str, limit: int = MAX_TEXT) -> str:
    """``text`` cut to ``limit`` bytes of UTF-8, saying so."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text
    return data[: limit - 40].decode("utf-8", "ignore") + f"... (cut, {len(data)} bytes)"


def shown(text: str, limit: int = MAX_TEXT) -> str:
    """``text`` as a record may keep it: no secrets, at most ``limit`` bytes. Of an endless one only the beginning is read."""
    looked_at = _LOOKED_AT * limit
    if len(text) <= looked_at:
        return bounded(redact_text(text), limit)
    secrets = known_secrets()
    # A secret that is cut in two would not be recognised: the cut leaves out as much as the longest one.
    longest = len(secrets[0]) if secrets else 0
    redacted = _redact_text(text[:looked_at], secrets)
    return (
        bounded(redacted[: max(0, len(redacted) - longest)], limit - 40)
        + f"... (cut, {len(text)} characters)"
    )


def details_json(details: Mapping[str, Any] | None) -> str:
    """Details as JSON text, without secrets; long strings inside are cut, so that the text stays JSON."""
    return json.dumps(_shorten(redact(details or {})), separators=(",", ":"), default=str, ensure_ascii=False)


def _shorten(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shorten(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shorten(item) for item in value]
    return bounded(value) if isinstance(value, str) else value
