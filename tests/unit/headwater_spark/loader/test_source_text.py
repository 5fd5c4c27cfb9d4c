"""Source files of each form become units that compile, or are refused with their place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.errors import SourceFileFailed
from headwater_spark.loader.compilation import compile_source
from headwater_spark.loader.source_text import read_sources


def notebook(folder: Path, *cells: str | list[str], kind: str = "code") -> Path:
    """Write a notebook of code cells."""
    path = folder / "nb.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": kind, "source": cell} for cell in cells]}))
    return path


@pytest.mark.parametrize(
    "metadata",
    [{"application/vnd.databricks.v1+notebook": {"language": "sql"}}, {"language_info": {"name": "SQL"}}],
)
def test_a_notebook_in_sql(tmp_path: Path, metadata: dict[str, dict[str, str]]):
    """Its cells are SQL without a magic; those of Python say so, and a run notebook is Python as it says itself."""
    other = tmp_path / "setup.py"
    other.write_text("# Databricks notebook source\ny = 2\n")
    cells = ["A", "", "%python\nx = 1", "%md text", "%run ./setup"]
    path = tmp_path / "nb.ipynb"
    path.write_text(
        json.dumps({"metadata": metadata, "cells": [{"cell_type": "code", "source": cell} for cell in cells]})
    )
    units = [(unit.language, unit.text.strip()) for unit in read_sources(path)]
    assert units == [
        ("sql", "A"),
        ("python", "pass\nx = 1"),
        ("python", "# Databricks notebook source\ny = 2"),
    ]


def test_a_notebook_in_another_language(tmp_path: Path):
    """Scala is refused as a cell of it is."""
    path = tmp_path / "nb.ipynb"
    path.write_text(json.dumps({"metadata": {"language_info": {"name": "scala"}}, "cells": []}))
    with pytest.raises(SourceFileFailed, match="%scala"):
        read_sources(path)


def test_a_notebook_of_a_pyspark_kernel(tmp_path: Path):
    """Sparkmagic calls its language pyspark, and its cells are Python."""
    path = tmp_path / "nb.ipynb"
    cells = [{"cell_type": "code", "source": "x = 1"}]
    path.write_text(json.dumps({"metadata": {"language_info": {"name": "pyspark"}}, "cells": cells}))
    assert [(unit.language, unit.text.strip()) for unit in read_sources(path)] == [("python", "x = 1")]


def test_a_plain_file_is_one_unit(tmp_path: Path):
    """A .py file is taken as it is, and errors call it by its path."""
    path = tmp_path / "a.py"
    path.write_text("x = 1\n")
    (unit,) = read_sources(path)
    assert (unit.label, unit.text) == (str(path), "x = 1\n")


def test_a_databricks_notebook_in_python_form(tmp_path: Path):
    """Its markers are comments: the file runs as it is, with right lines, and cells of text and pip are no hindrance."""
    path = tmp_path / "a.py"
    path.write_text(
        "# Databricks notebook source\n# MAGIC %md\n# MAGIC # Title\n\n# COMMAND ----------\n\n"
        "# MAGIC %pip install nothing\n\n# COMMAND ----------\n\n%pip install -q nothing\n!pip list\nx = 1\n"
    )
    (unit,) = read_sources(path)
    names: dict[str, int] = {}
    exec(compile_source(unit), names)
    assert names["x"] == 1


@pytest.mark.parametrize("magic", ["scala", "sh"])
def test_a_cell_of_another_kind_is_refused(tmp_path: Path, magic: str):
    """What would be skipped in silence is refused with file, line and the way to write it."""
    path = tmp_path / "a.py"
    path.write_text(
        f"# Databricks notebook source\nx = 1\n# COMMAND ----------\n# MAGIC %{magic} something\n"
    )
    with pytest.raises(SourceFileFailed) as caught:
        read_sources(path)
    assert f"%{magic}" in caught.value.what
    assert caught.value.where == f"{path}:4"
    assert "Write it in Python" in caught.value.remedy


def test_sql_of_each_form(tmp_path: Path):
    """A .sql file, the %sql cells of notebooks and the cells of a SQL notebook are units of SQL, at their places."""
    (tmp_path / "a.sql").write_text("\ufeffCREATE STREAMING TABLE a;\n")
    (tmp_path / "b.SQL").write_text("-- Databricks notebook source\nA\n-- COMMAND ----------\nB\n")
    (tmp_path / "c.py").write_text("# Databricks notebook source\nx = 1\n# MAGIC %sql\n# MAGIC C\n")
    book = notebook(tmp_path, "x = 1", "%sql\nD", "%%sql E")
    units = [unit for name in ("a.sql", "b.SQL", "c.py", book.name) for unit in read_sources(tmp_path / name)]
    assert [
        (unit.label.removeprefix(str(tmp_path)), unit.text.strip())
        for unit in units
        if unit.language == "sql"
    ] == [
        ("/a.sql", "CREATE STREAMING TABLE a;"),
        ("/b.SQL", "-- Databricks notebook source\nA"),
        ("/b.SQL", "B"),
        ("/c.py", "C"),
        ("/nb.ipynb, cell 2", "D"),
        ("/nb.ipynb, cell 3", "E"),
    ]
    assert [unit.text.split("\n").index("B") for unit in units if unit.text.strip() == "B"] == [3]
    assert [unit.text.split("\n")[0] for unit in units if unit.language == "python"] == [
        "# Databricks notebook source",
        "x = 1",
    ]


def test_magic_in_a_plain_file_is_a_comment(tmp_path: Path):
    """Without the notebook's first line, `# MAGIC` is a comment like any other."""
    path = tmp_path / "a.py"
    path.write_text("# MAGIC %sql select 1\nx = 1\n")
    assert len(read_sources(path)) == 1


def test_a_notebook_gives_a_unit_for_each_cell_of_code(tmp_path: Path):
    """Cells are units with their own lines; a source may be a list or a text; `%` and `!` lines become nothing."""
    path = notebook(
        tmp_path,
        "x = 1",
        [
            "%matplotlib inline\n",
            "!ls\n",
            "if x:\n",
            "    %time\n",
            "    y = x + 1\n",
            "    z = (7\n",
            "     % 4)",
        ],
    )
    first, second = read_sources(path)
    names: dict[str, int] = {}
    for unit in (first, second):
        exec(compile_source(unit), names)
    assert (names["y"], names["z"]) == (2, 3)
    assert second.label == f"{path}, cell 2"
    assert second.text.splitlines()[4] == "    y = x + 1"


def test_cells_of_text_are_passed_over(tmp_path: Path):
    """Markdown cells, and code cells that hold markdown, are not units."""
    assert read_sources(notebook(tmp_path, "# not code at all", kind="markdown")) == []
    assert read_sources(notebook(tmp_path, "%md\n# not code", "%%html\n<b>")) == []


@pytest.mark.parametrize("cell", ["%%bash\nls", "%%run ./other", "if x:\n    %run ./other"])
def test_a_notebook_cell_of_another_kind_is_refused(tmp_path: Path, cell: str):
    """Cells of a shell, and %run where there is no place for another notebook, are refused by the number of the cell."""
    with pytest.raises(SourceFileFailed) as caught:
        read_sources(notebook(tmp_path, "x = 1", cell))
    assert caught.value.where.endswith("nb.ipynb, cell 2")


@pytest.mark.parametrize("text", ["not json", '{"no": "cells"}', "[]"])
def test_a_file_that_is_no_notebook(tmp_path: Path, text: str):
    """An .ipynb that is not a notebook is refused as such."""
    path = tmp_path / "nb.ipynb"
    path.write_text(text)
    with pytest.raises(SourceFileFailed, match="is not a notebook"):
        read_sources(path)


def test_a_file_that_is_not_text(tmp_path: Path):
    """Bytes that are not UTF-8 are an error that names the file."""
    path = tmp_path / "a.py"
    path.write_bytes(b"x = '\xff'")
    with pytest.raises(SourceFileFailed, match="not UTF-8") as caught:
        read_sources(path)
    assert caught.value.where == str(path)


def test_a_syntax_error_in_a_cell(tmp_path: Path):
    """A syntax error names the cell and the line in it."""
    (unit,) = read_sources(notebook(tmp_path, "x = 1\ny = = 2"))
    with pytest.raises(SourceFileFailed) as caught:
        compile_source(unit)
    assert caught.value.where == f"{unit.label}:2"
    assert "y = = 2" in caught.value.what


def test_a_python_cell_of_a_databricks_notebook_is_run(tmp_path: Path):
    """Code of a %python cell stands in comments: it is brought out, on its own lines, and a following cell ends it."""
    path = tmp_path / "a.py"
    path.write_text(
        "# Databricks notebook source\n# MAGIC %python\n# MAGIC x = 1\n# MAGIC if x:\n# MAGIC     y = 2\n"
        "# COMMAND ----------\n# MAGIC %md\n# MAGIC z = 3\n"
    )
    (unit,) = read_sources(path)
    names: dict[str, int] = {}
    exec(compile_source(unit), names)
    assert (names["x"], names["y"]) == (1, 2)
    assert "z" not in names
    assert unit.text.splitlines()[4] == "    y = 2"


@pytest.mark.parametrize("cell", ["%sh ls", "%scala\nval x = 1", "%fs ls /", "%r\nx <- 1"])
def test_cells_of_other_languages_in_a_notebook(tmp_path: Path, cell: str):
    """A cell of another language is refused by name, not as wrong Python."""
    with pytest.raises(SourceFileFailed, match=cell.split()[0]):
        read_sources(notebook(tmp_path, cell))
