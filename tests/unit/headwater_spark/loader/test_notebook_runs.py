"""%run brings another notebook's names, in its place, in both forms of a notebook."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.errors import SourceFileFailed
from headwater_spark.loader.compilation import compile_source
from headwater_spark.loader.source_text import read_sources


def notebook(path: Path, *cells: str) -> Path:
    """Write a notebook of code cells."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]}))
    return path


def executed(path: Path, root: Path | None = None) -> dict[str, object]:
    """The names that the units of a source leave behind."""
    names: dict[str, object] = {}
    for unit in read_sources(path, root):
        exec(compile_source(unit), names)
    return names


@pytest.mark.parametrize(
    "line", ["%run ./setup", "%run setup.ipynb", '%run "./setup"', "%run parts/../setup"]
)
def test_a_cell(tmp_path: Path, line: str):
    """The other notebook's names are there for the lines behind, those before it run first, and lines keep their numbers."""
    (tmp_path / "parts").mkdir()
    notebook(tmp_path / "setup.ipynb", "day = start + 1")
    path = notebook(tmp_path / "nb.ipynb", f"start = 1\n{line}\nnext_day = day + 1", "broken = 1 / 0")
    units = read_sources(path)
    assert [unit.label for unit in units] == [
        f"{path}, cell 1", f"{tmp_path / 'setup.ipynb'}, cell 1", f"{path}, cell 1", f"{path}, cell 2",
    ]  # fmt: skip
    names: dict[str, object] = {}
    for unit in units[:3]:
        exec(compile_source(unit), names)
    assert names["next_day"] == 3
    assert units[2].text.split("\n")[2] == "next_day = day + 1"
    assert units[0].whole == units[2].whole == "start = 1\n\nnext_day = day + 1\n"


def test_a_notebook_as_a_python_file(tmp_path: Path):
    """The same in the exported form, with the line in a comment; a plain file takes the comment for one."""
    (tmp_path / "setup.py").write_text("day = 1\n")
    text = (
        "# Databricks notebook source\n# MAGIC %run ./setup\n\n# COMMAND ----------\n\nnext_day = day + 1\n"
    )
    path = tmp_path / "nb.py"
    path.write_text(text)
    assert executed(path)["next_day"] == 2
    path.write_text(text.removeprefix("# Databricks notebook source\n"))
    with pytest.raises(NameError):
        executed(path)


def test_notebooks_that_run_others(tmp_path: Path):
    """A notebook may be run by several; one that would run itself is refused."""
    notebook(tmp_path / "base.ipynb", "one = 1")
    notebook(tmp_path / "setup.ipynb", "%run base", "two = one + 1")
    assert executed(notebook(tmp_path / "nb.ipynb", "%run base\n%run setup\nthree = two + 1"))["three"] == 3
    notebook(tmp_path / "base.ipynb", "%run ./nb")
    with pytest.raises(SourceFileFailed, match="being run already"):
        read_sources(tmp_path / "nb.ipynb")


WRONG = {
    "%run ./nowhere": "no such file",
    "%run": "without a notebook",
    "%run ./setup $day=1": "is given arguments",
    "%run -i setup": "is given arguments",
    "%run ../outside": "not in the pipeline's folder",
}


@pytest.mark.parametrize(("line", "says"), WRONG.items())
def test_what_is_refused(tmp_path: Path, line: str, says: str):
    """With the notebook, the cell and the line."""
    folder = tmp_path / "pipeline"
    notebook(tmp_path / "outside.ipynb", "x = 1")
    notebook(folder / "setup.ipynb", "x = 1")
    path = notebook(folder / "nb.ipynb", "y = 1", f"z = 1\n{line}")
    with pytest.raises(SourceFileFailed, match=says) as caught:
        read_sources(path, folder)
    assert caught.value.where == f"{path}, cell 2:2"
