"""The name that a misspelled one was probably meant to be, and the sentence that says so."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, candidates: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The candidate most like ``name``, None where none is like it; case counts.

    Args:
        name: what was written.
        candidates: the names that exist.
        cutoff: how alike they must be, from 0 to 1 (equal).
    """
    return next(iter(difflib.get_close_matches(name, list(candidates), n=1, cutoff=cutoff)), None)


def did_you_mean(suggestion: str | None, otherwise: str) -> str:
    """The remedy of an error about an unknown name: the suggestion, or ``otherwise`` where there is none."""
    return f"Did you mean {suggestion!r}?" if suggestion is not None else otherwise
