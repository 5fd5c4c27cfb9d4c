"""What operators read while a program runs: lines on standard error, for people or as JSON.

Modules log below ``headwater``; ``extra`` may say of which ``pipeline``, ``update``, ``flow`` and ``batch``. Under Airflow nothing is set up
here: its own handlers take the records.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TextIO

from headwater.errors import UsageError
from headwater.event_log.redaction import redact_text

LOGGER = "headwater"
FORMAT = "HEADWATER_LOG_FORMAT"
LEVEL = "HEADWATER_LOG_LEVEL"
_FORMATS = ("text", "json")
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_ABOUT = ("pipeline", "update", "flow", "batch")


def configure_logging(environment: Mapping[str, str] = os.environ) -> None:
    """Have ``headwater`` log to standard error, as HEADWATER_LOG_FORMAT and HEADWATER_LOG_LEVEL say; may be called again.

    Raises:
        UsageError: for a format or level that there is not; nothing is changed.
    """
    form = _choice(environment, FORMAT, _FORMATS, "text")
    level = _choice(environment, LEVEL, _LEVELS, "INFO")
    handler = _StandardError()
    handler.setFormatter(_Json() if form == "json" else _Lines())
    handler.addFilter(_without_secrets)
    logger = logging.getLogger(LOGGER)
    logger.handlers = [*(old for old in logger.handlers if not isinstance(old, _StandardError)), handler]
    logger.setLevel(level)


def show_error(error: object, *, trace: bool = False, **about: str | None) -> None:
    """Show how a program, or a part of its work, failed: in full for people, as one record where the log is JSON; without secrets.

    Args:
        error: what to show.
        trace: add the traceback of the exception that is being handled.
        about: the ``pipeline``, ``update`` and ``flow``, where they are known.
    """
    if _is_json():
        logging.getLogger(LOGGER).error("%s", error, exc_info=trace, extra=about)
        return
    print(redact_text(str(error)), file=sys.stderr)
    if trace:
        print(redact_text(traceback.format_exc()), end="", file=sys.stderr)


def _is_json() -> bool:
    return any(isinstance(handler.formatter, _Json) for handler in logging.getLogger(LOGGER).handlers)


def _choice(environment: Mapping[str, str], variable: str, choices: Sequence[str], default: str) -> str:
    value = environment.get(variable, "").strip()
    choice = next((candidate for candidate in choices if candidate.lower() == value.lower()), None)
    if value and choice is None:
        raise UsageError(
            f"{variable} is {value!r}.", remedy=f"Set it to one of {', '.join(choices)}, or leave it out."
        )
    return choice or default


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to whatever standard error is at the time, and not to what it was when this was made."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, _: TextIO) -> None:
        raise AttributeError


def _without_secrets(record: logging.LogRecord) -> bool:
    """Replace secrets in a record's text, its traceback and what it is about; a filter that lets all pass."""
    try:
        record.msg, record.args = redact_text(record.getMessage()), None
    except (TypeError, ValueError, KeyError):
        return True  # a text and values that do not fit each other: the handler complains of it, and goes on
    if record.exc_info and not record.exc_text:
        record.exc_text = logging.Formatter().formatException(record.exc_info)
    record.exc_text = redact_text(record.exc_text) if record.exc_text else None
    for name in _ABOUT:
        if isinstance(value := getattr(record, name, None), str):
            setattr(record, name, redact_text(value))
    return True


class _Lines(logging.Formatter):
    """For people: the time (UTC) and the message."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s  %(message)s", "%H:%M:%S")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 - of the base class
        """The time of day in UTC."""
        return datetime.fromtimestamp(record.created, UTC).strftime(datefmt or "%H:%M:%S")


class _Json(logging.Formatter):
    """For programs: one JSON object a line, with the same keys in each; null is what is not known."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        values: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **{name: getattr(record, name, None) for name in _ABOUT},
        }
        if record.exc_text:
            values["traceback"] = record.exc_text
        # Escaped to ASCII: whatever encoding standard error has, the line stays JSON.
        return json.dumps(values, default=str)
