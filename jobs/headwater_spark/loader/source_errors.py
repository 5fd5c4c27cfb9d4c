"""Where in the user's own files an error came from."""

from __future__ import annotations

import traceback
from collections.abc import Collection
from types import TracebackType

from headwater.definitions.source_location import SourceLocation


def user_location(trace: TracebackType | None, labels: Collection[str]) -> SourceLocation | None:
    """The innermost frame that lies in one of the pipeline's sources."""
    frames = [frame for frame in traceback.extract_tb(trace) if frame.filename in labels]
    return SourceLocation(frames[-1].filename, frames[-1].lineno or 0) if frames else None


def describe(error: BaseException) -> str:
    """An error's type and first line, without the JVM's stack trace."""
    thrown = getattr(error, "java_exception", None)
    if thrown is not None:
        # "An error occurred while calling o60.load" says nothing; what the JVM threw does.
        return str(thrown.toString()).partition("\n")[0]
    text = str(error).strip().split("\n\nJVM stacktrace")[0]
    first = text.splitlines()[0] if text else ""
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
