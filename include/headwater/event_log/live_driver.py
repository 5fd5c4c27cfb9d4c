"""The driver of the running update, for links to its Spark UI: a file that exists as long as the driver."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from headwater.files.atomic_files import write_atomically
from headwater.storage.place import Place


@dataclass(frozen=True)
class LiveDriver:
    """``spark_ui``: the address of its Spark UI; ``request_id``: whose update it runs."""

    request_id: str | None
    update_id: str
    spark_ui: str


@contextmanager
def published_driver(
    state_folder: Place, request_id: str | None, update_id: str, spark_ui: str | None
) -> Iterator[None]:
    """Publish a driver while the block runs; does nothing where it has no UI."""
    if spark_ui is None:
        yield
        return
    file = _file(state_folder)
    write_atomically(file, json.dumps(asdict(LiveDriver(request_id, update_id, spark_ui))) + "\n")
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def live_driver(state_folder: Place) -> LiveDriver | None:
    """The driver that was published last and has not ended; a killed one can't withdraw its entry."""
    try:
        return LiveDriver(**json.loads(_file(state_folder).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _file(state_folder: Place) -> Place:
    return state_folder / "driver.json"
