"""A frame whose writes are recorded instead of carried out: what Spark would get."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


class RecordedWrite:
    """The options of one write, in Spark's own words; it is in ``log`` once it is saved or started."""

    def __init__(self, log: list[RecordedWrite], rows: Any = None) -> None:
        self.options_given: dict[str, Any] = {}
        self.partitions: tuple[str, ...] = ()
        self.path: str | None = None
        self.rows = rows
        self.words: dict[str, Any] = {}
        self._log = log

    def __getattr__(self, name: str) -> Any:
        if name not in ("format", "mode", "outputMode", "queryName", "trigger", "foreachBatch"):
            raise AttributeError(name)

        def say(*given: Any, **named: Any) -> RecordedWrite:
            self.words[name] = given[0] if given else named
            return self

        return say

    def option(self, name: str, value: Any) -> RecordedWrite:
        self.options_given[name] = value
        return self

    def options(self, **given: Any) -> RecordedWrite:
        self.options_given.update(given)
        return self

    def partitionBy(self, *columns: str) -> RecordedWrite:  # noqa: N802 - Spark's name
        self.partitions = columns
        return self

    def save(self, path: str | None = None) -> None:
        self.path = path
        self._log.append(self)

    def start(self, path: str | None = None) -> Any:
        self.save(path)
        return SimpleNamespace(id="query-id")


class Conf:
    """A session's settings, and which were set at what moment."""

    def __init__(self) -> None:
        self.now: dict[str, str] = {}

    def set(self, key: str, value: str) -> None:
        self.now[key] = value

    def unset(self, key: str) -> None:
        self.now.pop(key, None)

    def get(self, key: str, default: str | None = None) -> str | None:
        return self.now.get(key, default)


class Packages:
    """A view of a JVM that has none of our classes: Py4J takes every name for a package."""

    def __getattr__(self, name: str) -> Packages:
        return self


def recorded_session() -> SimpleNamespace:
    """A session with settings, in a JVM that was started without our jar."""
    return SimpleNamespace(conf=Conf(), _jvm=Packages())


class RecordedFrame:
    """A batch's frame, or a stream's."""

    def __init__(self, columns: tuple[str, ...] = ("id",)) -> None:
        self.columns = list(columns)
        self.writes: list[RecordedWrite] = []
        self.sparkSession = recorded_session()
        self.calls: list[str] = []

    @property
    def write(self) -> RecordedWrite:
        return RecordedWrite(self.writes, self)

    @property
    def writeStream(self) -> RecordedWrite:  # noqa: N802
        return RecordedWrite(self.writes, self)

    def alias(self, name: str) -> RecordedFrame:
        self.calls.append(f"alias {name}")
        return self
