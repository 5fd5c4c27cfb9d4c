"""From which files the part of a view that is recomputed is read, and how much that is of all."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.delta_log.file_bounds import Bounds, Sought, TableFile
from headwater_spark.views import needed_files as module
from headwater_spark.views.needed_files import NeededFiles, NeededRows

SOUGHT = (Sought("id", (5,)),)


def file(path: str, size: int, low: int, high: int) -> TableFile:
    """A file with ids from ``low`` to ``high``."""
    return TableFile(path, size, 0, 1, {}, {"id": Bounds(low, high, 0)})


FILES = [file("a", 10, 1, 4), file("b", 20, 5, 5), file("c", 40, 5, 9), file("d", 80, 6, 9)]


def chosen(
    monkeypatch: pytest.MonkeyPatch, *tables: list[TableFile] | None, most: int = 500
) -> tuple[NeededRows, Any]:
    """What is read, and the files that are named to Spark, by leaf; the condition is pushed down to the first table alone."""
    leaves: Any = {
        number: SimpleNamespace(folder=Path(str(number)), version=7) for number in range(len(tables))
    }
    asked: list[Any] = []

    def listed(folder: Path, version: int, columns: set[str]) -> list[TableFile] | None:
        asked.append((str(folder), version, columns))
        return tables[int(str(folder))]

    over: list[dict[int, list[str]]] = []

    def rows(_: object, files: Any, condition: str) -> Any:
        assert condition == "id = 5"
        over.append({number: [one.path for one in of] for number, of in files.items()})
        plan = SimpleNamespace(optimizedPlan=lambda: "plan")
        return SimpleNamespace(_jdf=SimpleNamespace(queryExecution=lambda: plan))

    monkeypatch.setattr(module, "table_files", listed)
    monkeypatch.setattr(module, "pushed_conditions", {"plan": {"0": SOUGHT}}.__getitem__)
    monkeypatch.setattr(module, "MAX_FILES", most)
    monkeypatch.setattr(NeededFiles, "_over", rows)
    needed = NeededFiles(SimpleNamespace(), leaves, ["id"]).chosen("id = 5")  # type: ignore[arg-type]
    assert over[0] == {number: [] for number in leaves}
    assert asked == [(str(number), 7, {"id"} if number == 0 else set()) for number in leaves]
    return needed, over[1]


def test_files_that_may_have_the_rows(monkeypatch: pytest.MonkeyPatch):
    """Of a table that the condition reaches, those alone; of another, all."""
    needed, named = chosen(monkeypatch, FILES, FILES)
    assert named == {0: ["b", "c"], 1: ["a", "b", "c", "d"]}
    assert (needed.read, needed.sources) == (60 + 150, 300)


def test_a_table_that_says_nothing_of_its_files(monkeypatch: pytest.MonkeyPatch):
    """Delta looks for them itself, and no bytes are counted: nothing is known of them."""
    needed, named = chosen(monkeypatch, FILES, None)
    assert named == {0: ["b", "c"]}
    assert (needed.read, needed.sources) == (60, 150)


def test_more_files_than_are_named(monkeypatch: pytest.MonkeyPatch):
    """As many as the limit are named; a table with more is left to Delta, and its bytes count."""
    needed, named = chosen(monkeypatch, FILES, FILES, most=2)
    assert named == {0: ["b", "c"]}
    assert (needed.read, needed.sources) == (210, 300)
