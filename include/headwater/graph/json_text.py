"""JSON as people write it in settings: with comments and tabs, made plain so that every line stays where it is."""

from __future__ import annotations

import json
import re
from typing import Any

# A text, a comment to the end of its line, one between marks (without its end: the rest), a tab. Each character is read once.
_TOKENS = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"|//[^\n]*|/\*(?:.*?\*/|.*\Z)|\t', re.DOTALL)
_ESCAPES = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|.)")
_NO_BREAK = re.compile(r"[^\n]")


def plain_json(text: str) -> str:
    """The text with comments and tabs outside of texts as spaces; what follows keeps its line and its column.

    Pairs of escapes that stand for one character become that character: YAML would take them for two halves.
    """
    return _TOKENS.sub(_plain, text.removeprefix("\ufeff"))


def read_json(text: str) -> Any:
    """The value of a plain JSON text; raises json.JSONDecodeError, or ValueError for NaN and Infinity."""
    return json.loads(text, parse_constant=_refuse)


def looks_like_json(text: str) -> bool:
    """Whether a file that may be YAML is JSON: it begins with a brace and is read as such."""
    if not text.lstrip("\ufeff \t\r\n").startswith(("{", "/")):
        return False
    try:
        read_json(plain_json(text))
    except (ValueError, RecursionError):
        return False
    return True


def _plain(match: re.Match[str]) -> str:
    token = match[0]
    if token.startswith('"'):
        return _ESCAPES.sub(_joined, token)
    if token.startswith("/*") and not (len(token) > 3 and token.endswith("*/")):
        return token  # without an end: an error of the JSON, at this place
    return _NO_BREAK.sub(" ", token)


def _joined(match: re.Match[str]) -> str:
    return str(json.loads(f'"{match[0]}"')) if len(match[0]) > 2 else match[0]


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")
