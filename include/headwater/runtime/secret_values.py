"""What counts as a secret: names of settings that hold one, and values that this process knows."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote

from headwater.errors import UsageError

# Java reads it, too: it is part of spark.redaction.regex.
NAMES_OF_SECRETS = (
    r"(?:secret|passw(?:or)?d|passphrase|(?<![a-z])pwd(?![a-z])|token|jaas|credential|authorization|connection[._-]?string"
    r"|(?:account|access|api|shared|private|signing|encryption|keystore|truststore)[._-]?key"
    r"|(?<![a-z])sas(?![a-z])|(?<![a-z])sig(?![a-z]))"
)
_NAMED = re.compile(NAMES_OF_SECRETS, re.IGNORECASE)
# Variables with these names hold locations, not secrets.
_PLACES = re.compile(r"_(?:FILE|PATH|DIR|URL_FILE)$|^(?:OLD)?PWD$")
REDACTED = "[redacted]"
_DECLARED = "HEADWATER_SECRET_"
# Shorter values are words of ordinary texts.
MIN_LENGTH = 6
_noted: set[str] = set()


@lru_cache(maxsize=4096)
def names_a_secret(name: str) -> bool:
    """Whether a setting, an option or a variable of this name holds a secret."""
    return _NAMED.search(name) is not None


def note_secret(value: str | None) -> None:
    """Remember a secret for as long as this process runs, so that no text of ours shows it."""
    if value and len(value.strip()) >= MIN_LENGTH:
        _noted.add(value)


def known_secrets(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Every way that a known secret may be written in a text, the longest first.

    Known is what was noted, what lies in HEADWATER_SECRET_* and in other variables that are named like a secret.
    """
    values = {value for name, value in environment.items() if _holds_a_secret(name)} | _noted
    spelled = {text for value in values if len(value.strip()) >= MIN_LENGTH for text in _spellings(value)}
    return tuple(sorted(spelled, key=lambda text: (-len(text), text)))


def without_known(text: str) -> str:
    """``text`` without the secrets that this process knows by their value."""
    for value in known_secrets():
        text = text.replace(value, REDACTED)
    return text


def secret_variable(scope: str, key: str) -> str:
    """The environment variable that holds a secret of the closed platform."""
    return _DECLARED + re.sub(r"\W", "_", f"{scope}_{key}").upper()


def declared_secret(scope: str, key: str, environment: Mapping[str, str] = os.environ) -> str:
    """The text of a secret of the closed platform: ``event-hub``, ``key`` is ``HEADWATER_SECRET_EVENT_HUB_KEY``.

    Every character of scope and key that is no letter, digit or underscore is an underscore there, and all are capitals.

    Raises:
        UsageError: the variable is not set; the error names it.
    """
    name = secret_variable(scope, key)
    value = environment.get(name)
    if value is None:
        raise UsageError(
            f"The secret {scope}/{key} is not set.", remedy=f"Set the environment variable {name}."
        )
    return value


@lru_cache(maxsize=4096)
def _holds_a_secret(variable: str) -> bool:
    return variable.startswith(_DECLARED) or (names_a_secret(variable) and not _PLACES.search(variable))


@lru_cache(maxsize=1024)
def _spellings(value: str) -> frozenset[str]:
    escaped = json.dumps(value)[1:-1]
    return frozenset(
        {value, value.strip(), escaped, json.dumps(value, ensure_ascii=False)[1:-1], quote(value, safe="")}
    )
