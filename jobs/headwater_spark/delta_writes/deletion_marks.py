"""Marks rows of a Delta table's files as deleted: each file comes back with a new deletion vector, in Delta's own classes.

Decision 0208.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from headwater.delta_log.deletion_vectors import serialized
from headwater_spark.delta_writes.delta_internals import DELTA
from headwater_spark.java_classes import OPTION, PYTHON_UTILS, java_class

if TYPE_CHECKING:
    from headwater_spark.delta_writes.file_rewrite import Marks


# Reads the vector that a file has, adds rows and stores it, as Delta's commands do on their executors.
_WRITER = f"{DELTA}.commands.DeletionVectorWriter"


class MarkWriter:
    """Writes deletion vectors of files of one table. ``actions``: of the files of ``marks``, as Delta has them."""

    def __init__(
        self, session: SparkSession, jvm: Any, log: Any, marks: Sequence[Marks], actions: Sequence[Any]
    ) -> None:
        self._jvm, self._marks, self._actions = jvm, marks, actions
        self._store: Any = None
        if not all(mark.empties for mark in marks):
            spark = session._jsparkSession  # noqa: SLF001 - Delta's internals take Java's session
            writer = java_class(jvm, _WRITER)
            self._store = writer.createMapperToStoreDeletionVectors(spark, log.newDeltaHadoopConf(), log.dataPath(), 0)  # fmt: skip

    def write(self, now: int) -> list[Any] | None:
        """Store the vectors.

        Args:
            now: milliseconds since 1970.

        Returns:
            the actions that give the files their new vectors, or remove files without a row left; None where rows had been
            marked before: then they are not the rows that were meant.
        """
        vectors = self._vectors()
        written: list[Any] = []
        for number, (mark, action) in enumerate(zip(self._marks, self._actions, strict=True)):
            if mark.empties:
                written.append(action.removeWithTimestamp(now, True))
                continue
            if vectors[str(number)].cardinality() != mark.file.deleted + len(mark.rows):
                return None
            pair = action.removeRows(vectors[str(number)], True, True)
            written += [pair.productElement(0), pair.productElement(1)]
        return written

    def _vectors(self) -> dict[str, Any]:
        """The new vectors, by the number of their file."""
        given = [
            self._of(number, mark, action)
            for number, (mark, action) in enumerate(zip(self._marks, self._actions, strict=True))
            if not mark.empties
        ]
        if not given:
            return {}
        stored = self._store.apply(java_class(self._jvm, PYTHON_UTILS).toSeq(given).iterator())
        vectors = {}
        while stored.hasNext():
            result = stored.next()
            vectors[result.filePath()] = result.deletionVector()
        return vectors

    def _of(self, number: int, mark: Marks, action: Any) -> Any:
        option = java_class(self._jvm, OPTION)
        before = action.deletionVector()
        known = option.empty() if before is None else option.apply(before.serializeToBase64())
        rows = sorted(mark.rows)
        data = java_class(self._jvm, f"{DELTA}.commands.DeletionVectorData")
        return data(str(number), known, serialized(rows), len(rows))
