"""Where in the user's files an error occurred."""

from __future__ import annotations

import builtins
import traceback
from collections.abc import Collection
from pathlib import Path
from types import ModuleType, TracebackType

import pyspark

import headwater
import headwater_spark
from headwater.definitions.source_location import SourceLocation
from headwater.event_log.redaction import redact_text
from headwater.suggestions import did_you_mean, nearest


def user_location(trace: TracebackType | None, labels: Collection[str]) -> SourceLocation | None:
    """The innermost frame that lies in one of the pipeline's sources."""
    frames = [frame for frame in traceback.extract_tb(trace) if frame.filename in labels]
    return SourceLocation(frames[-1].filename, frames[-1].lineno or 0) if frames else None


# Headwater and Spark: not the pipeline's code.
_NOT_THE_USERS = tuple(
    str(Path(module.__file__ or "").parent) for module in (headwater_spark, headwater, pyspark)
)


def line_being_run() -> SourceLocation | None:
    """The innermost line on the stack that is neither ours nor Spark's."""
    for frame in reversed(traceback.extract_stack()):
        if not frame.filename.startswith((*_NOT_THE_USERS, "<frozen")):
            return SourceLocation(frame.filename, frame.lineno or 0)
    return None


def describe(error: BaseException) -> str:
    """An error's type and first line, without the JVM's stack trace and without secrets: users' code and Spark quote options."""
    return redact_text(_described(error))


def _described(error: BaseException) -> str:
    thrown = getattr(error, "java_exception", None)
    if thrown is not None:
        # "An error occurred while calling o60.load" is no help; the JVM's exception is.
        return str(thrown.toString()).partition("\n")[0]
    text = str(error).strip().split("\n\nJVM stacktrace")[0]
    first = text.splitlines()[0] if text else ""
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def name_meant(error: BaseException) -> str | None:
    """The remedy for a name that is not there: the nearest one; None where none is like it, or the error is about something else.

    Python itself says so in tracebacks only, which users of a pipeline do not see.
    """
    name = getattr(error, "name", None)
    if not isinstance(error, AttributeError | NameError) or not isinstance(name, str):
        return None
    names = [known for known in _names_there(error) if known != name and not known.startswith("_")]
    alike = next((known for known in names if known.lower() == name.lower()), None) or nearest(name, names)
    return did_you_mean(alike, "") or None


def _names_there(error: AttributeError | NameError) -> Collection[str]:
    if isinstance(error, AttributeError):
        # Of a module all names, of an object those of its class: a frame's own would be its columns.
        return dir(error.obj if isinstance(error.obj, ModuleType | type) else type(error.obj))
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    inner = frames[-1] if frames else None
    return [*(inner.f_locals if inner else ()), *(inner.f_globals if inner else ()), *dir(builtins)]
