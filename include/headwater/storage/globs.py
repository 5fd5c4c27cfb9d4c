"""Patterns in the addresses of sources, as Hadoop has them.

Decision 0193.
"""

from __future__ import annotations

import re

_BRACES = re.compile(r"\{([^{}]*)\}")
_SIGNS = frozenset("*?[{")


def plain_part(path: str) -> str:
    """The folder above the first pattern of an address, without a slash at its end."""
    parts = path.rstrip("/").split("/")
    return "/".join(parts[: next((i for i, part in enumerate(parts) if not _SIGNS.isdisjoint(part)), None)])


def alternatives(pattern: str) -> list[str]:
    """The patterns that Hadoop's ``{a,b}`` stands for; Python's glob has no braces."""
    match = _BRACES.search(pattern)
    if match is None:
        return [pattern]
    head, tail = pattern[: match.start()], pattern[match.end() :]
    return [
        alternative for choice in match[1].split(",") for alternative in alternatives(head + choice + tail)
    ]
