"""Files in which storage remembers something beside Spark's checkpoints: read whole, or refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from headwater.checkpoints.conditions import FlowStateDamaged
from headwater.checkpoints.rights import not_readable
from headwater.storage.place import Place

_Record = TypeVar("_Record")


def _text(file: Place) -> str:
    return file.read_text(encoding="utf-8")


def recorded(
    file: Place,
    parse: Callable[[Any], _Record],
    *,
    what: str,
    unknown: str,
    remedy: str = "Restore the file from a backup.",
    read: Callable[[Place], str] = _text,
) -> _Record | None:
    """What a file of JSON says; None where it is not there.

    Args:
        file: the file.
        parse: makes the record of the file's value; whatever it raises of a wrong value counts as damage.
        what: the file, as the subject of a sentence.
        unknown: what can't be known without it, as a clause.
        remedy: what to do about a damaged one.
        read: gives the file's text, or raises FileNotFoundError.

    Raises:
        FlowStateDamaged: it is not what was written.
        StorageNotReadable: it may not be read, or its disk is away.
    """
    try:
        return parse(json.loads(read(file)))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise not_readable(file, unknown, error) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FlowStateDamaged(f"{what} can't be read: {error!r}.", where=file, remedy=remedy) from None
