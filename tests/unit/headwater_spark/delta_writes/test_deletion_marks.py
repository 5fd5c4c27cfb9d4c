"""Marks become new vectors of their files, in whatever order Delta stores them; rows that were marked before are noticed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headwater.delta_log.deletion_vectors import serialized
from headwater_spark.delta_writes.deletion_marks import MarkWriter
from headwater_spark.delta_writes.delta_internals import DELTA
from headwater_spark.delta_writes.file_rewrite import DataFile, Marks
from headwater_spark.java_classes import OPTION, PYTHON_UTILS


class Action:
    """A file as Delta has it; what is done to it is what it gives."""

    def __init__(self, name: str, vector: str | None) -> None:
        self.name, self.vector = name, vector

    def deletionVector(self) -> Any:  # noqa: N802 - Delta's name
        return self.vector and SimpleNamespace(serializeToBase64=lambda: self.vector)

    def removeWithTimestamp(self, now: int, changes_data: bool) -> Any:  # noqa: N802
        return ("removed", self.name, now, changes_data)

    def removeRows(self, vector: Any, wide_bounds: bool, changes_data: bool) -> Any:  # noqa: N802
        parts = [
            ("added", self.name, vector.of, wide_bounds),
            ("removed", self.name, self.vector, changes_data),
        ]
        return SimpleNamespace(productElement=lambda number: parts[number])


def jvm(counts: dict[str, int], given: list[tuple[Any, ...]]) -> Any:
    """Delta's classes. ``counts``: how many rows the new vector of each file has; ``given``: what is stored."""

    def store(rows: Any) -> Any:
        given.extend(rows)
        results = [
            SimpleNamespace(
                filePath=lambda row=row: row[0],
                deletionVector=lambda row=row: SimpleNamespace(of=row[0], cardinality=lambda: counts[row[0]]),
            )
            for row in reversed(given)
        ]
        return SimpleNamespace(hasNext=lambda: bool(results), next=lambda: results.pop(0))

    mapper = SimpleNamespace(apply=store)
    return SimpleNamespace(
        **{
            f"{DELTA}.commands.DeletionVectorWriter": SimpleNamespace(
                createMapperToStoreDeletionVectors=lambda *_: mapper
            ),
            f"{DELTA}.commands.DeletionVectorData": lambda *values: values,
            OPTION: SimpleNamespace(apply=lambda value: [value], empty=list),
            PYTHON_UTILS: SimpleNamespace(toSeq=lambda rows: SimpleNamespace(iterator=lambda: rows)),
        }
    )


MARKS = [
    Marks(DataFile("a", 1, 1, rows=9, deleted=1), [7, 3]),
    Marks(DataFile("b", 1, 1, rows=2), [0, 1]),
    Marks(DataFile("c", 1, 1, rows=5), [4]),
]
ACTIONS = [Action("a", "old"), Action("b", None), Action("c", None)]
SESSION: Any = SimpleNamespace(_jsparkSession=None)
LOG: Any = SimpleNamespace(newDeltaHadoopConf=lambda: None, dataPath=lambda: None)


def test_each_file_gets_its_vector():
    """A file's action gets the vector of its own rows, added to those of before; one without a row left is only removed."""
    given: list[tuple[Any, ...]] = []
    writer = MarkWriter(SESSION, jvm({"0": 3, "2": 1}, given), LOG, MARKS, ACTIONS)
    assert writer.write(5) == [
        ("added", "a", "0", True), ("removed", "a", "old", True), ("removed", "b", 5, True),
        ("added", "c", "2", True), ("removed", "c", None, True),
    ]  # fmt: skip
    assert given == [("0", ["old"], serialized([3, 7]), 2), ("2", [], serialized([4]), 1)]


def test_rows_that_were_marked_before():
    """A vector with fewer rows than the old and the new ones together means that other rows were meant: nothing is done."""
    assert MarkWriter(SESSION, jvm({"0": 2, "2": 1}, []), LOG, MARKS, ACTIONS).write(5) is None


def test_files_that_go_need_no_vector():
    """Where no file keeps a row, nothing of Delta's for vectors is called."""
    assert MarkWriter(SESSION, SimpleNamespace(), LOG, MARKS[1:2], ACTIONS[1:2]).write(5) == [("removed", "b", 5, True)]  # fmt: skip
    assert MarkWriter(SESSION, SimpleNamespace(), LOG, [], []).write(5) == []
