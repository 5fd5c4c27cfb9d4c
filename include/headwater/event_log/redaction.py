"""Keeps secrets out of the event log, and its records small."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

REDACTED = "[redacted]"
MAX_TEXT = 8 * 1024

_NAMES = r"(?:secret|password|passwd|token|jaas|(?:account|access)[._-]?key|connection[._-]?string|(?<![a-z])sas(?![a-z]))"
_SECRET_KEY = re.compile(_NAMES, re.IGNORECASE)
# Every repetition is bounded or can't run into itself: texts may be long, and come from anywhere.
_ASSIGNED = re.compile(
    rf"""({_NAMES}[\w.\-]{{0,60}}["']?\s{{0,4}}[=:]\s{{0,4}}\\?)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s,;&)}}\]]+)""",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"(://[^\s/:@]{1,200}:)[^\s/@]{1,400}(@)")


def redact_text(text: str) -> str:
    """``text`` with the values of what looks like secrets replaced."""
    text = _IN_URL.sub(rf"\g<1>{REDACTED}\g<2>", text)
    return _ASSIGNED.sub(_redacted, text)


def _redacted(match: re.Match[str]) -> str:
    # Quotes stay, so that JSON inside a text is still JSON.
    quote = match[2][0] if match[2][0] in "\"'" else ""
    return f"{match[1]}{quote}{REDACTED}{quote}"


def redact(value: Any) -> Any:
    """A JSON-like value with every secret replaced: by the name of its key, or as text."""
    if isinstance(value, Mapping):
        return {str(key): _redact_item(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact(item) for item in value]
    return redact_text(value) if isinstance(value, str) else value


def _redact_item(key: str, value: Any) -> Any:
    if _SECRET_KEY.search(key) and isinstance(value, str) and value:
        return REDACTED
    return redact(value)


def bounded(text: str, limit: int = MAX_TEXT) -> str:
    """``text`` cut to ``limit`` bytes of UTF-8, saying so."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text
    return data[: limit - 40].decode("utf-8", "ignore") + f"... (cut, {len(data)} bytes)"


def details_json(details: Mapping[str, Any] | None) -> str:
    """Details as JSON text, without secrets; long strings inside are cut, so that the text stays JSON."""
    return json.dumps(_shorten(redact(details or {})), separators=(",", ":"), default=str, ensure_ascii=False)


def _shorten(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shorten(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shorten(item) for item in value]
    return bounded(value) if isinstance(value, str) else value
