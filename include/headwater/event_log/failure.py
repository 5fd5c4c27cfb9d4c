from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

from headwater.errors import HeadwaterError
from headwater.event_log.redaction import shown

_MAX_FRAMES = 50


def error_column(error: BaseException | Mapping[str, Any]) -> dict[str, Any]:
    """An exception, with its causes, as the log's ``error`` column shows it (one with that shape is taken as it is).

    ``fatal`` is false where a retry may help.
    """
    if not isinstance(error, BaseException):
        return {"fatal": bool(error.get("fatal", True)), "exceptions": list(error.get("exceptions", ()))}
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain and len(chain) < 8:
        chain.append(current)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    fatal = not (isinstance(error, HeadwaterError) and error.transient)
    return {"fatal": fatal, "exceptions": [_exception(item) for item in chain]}


def _exception(error: BaseException) -> dict[str, Any]:
    kind = type(error)
    frames = traceback.extract_tb(error.__traceback__)[-_MAX_FRAMES:]
    return {
        "class_name": f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."),
        "message": shown(str(error)),
        "stack": [
            {"declaring_class": None, "method_name": f.name, "file_name": f.filename, "line_number": f.lineno}
            for f in reversed(frames)
        ],
    }
