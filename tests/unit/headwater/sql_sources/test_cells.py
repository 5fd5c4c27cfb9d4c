"""Cells of exported notebooks are found, each with the line numbers of its file."""

from __future__ import annotations

import pytest

from headwater.errors import SourceFileFailed
from headwater.sql_sources.cells import Cell, cells_of_sql, sql_cells_of_python

NOTEBOOK = """-- Databricks notebook source
-- MAGIC %md
-- MAGIC # A title; with a semicolon

-- COMMAND ----------

-- DBTITLE 1,Bronze
CREATE STREAMING TABLE a

-- COMMAND ----------
-- MAGIC %sql
-- MAGIC CREATE STREAMING TABLE b
"""


def test_a_sql_notebook():
    """Cells end statements; text cells are left out, code in comments is taken in."""
    cells = [cell.text for cell in cells_of_sql(NOTEBOOK, "f.sql")]
    lines = NOTEBOOK.split("\n")
    assert len(cells) == 3
    for cell in cells:
        for number, line in enumerate(cell.split("\n")):
            assert line.strip() in ("", lines[number].removeprefix("-- MAGIC ").strip())
    assert "title" not in cells[0]
    assert cells[1].split("\n")[7] == "CREATE STREAMING TABLE a"
    assert cells[2].split("\n")[11] == "CREATE STREAMING TABLE b"


@pytest.mark.parametrize("kind", ["md", "pip install x", "environment"])
def test_cells_that_declare_nothing(kind: str):
    """Text, packages and what Databricks itself writes at a notebook's end are passed over."""
    text = f'-- Databricks notebook source\nSELECT 1\n-- COMMAND ----------\n-- MAGIC %{kind}\n-- MAGIC "client": "1"\n'
    first, last = cells_of_sql(text, "f.sql")
    assert (first.text.split("\n")[1], last.text.strip()) == ("SELECT 1", "")


def test_a_plain_file():
    """A file that is not a notebook is one piece, whatever its comments say."""
    text = "-- MAGIC %python\nCREATE STREAMING TABLE a;\r\n"
    assert cells_of_sql(text, "f.sql") == [Cell(text)]


def test_python_cells_of_a_sql_notebook():
    """They are Python, at their lines, whatever title they have."""
    first, second = cells_of_sql(
        "-- Databricks notebook source\n-- DBTITLE 1,T\n-- MAGIC %python\n-- MAGIC x = [1,\n-- MAGIC   2]\n"
        "-- COMMAND ----------\nSELECT 1\n",
        "f.sql",
    )
    assert first == Cell("\n\n\nx = [1,\n  2]", "python")
    assert (second.text.strip(), second.language) == ("SELECT 1", "sql")


@pytest.mark.parametrize("kind", ["scala", "run", "sh", "fs"])
def test_cells_of_other_languages(kind: str):
    """They are refused with their place: leaving them out could change the result."""
    with pytest.raises(SourceFileFailed, match=f"%{kind}") as caught:
        cells_of_sql(f"-- Databricks notebook source\n\n-- MAGIC %{kind}\n-- MAGIC x = 1\n", "f.sql")
    assert caught.value.where == "f.sql:3:1"


def test_sql_cells_of_a_python_notebook():
    """Each cell is a piece; the Python between them is no part of it."""
    text = "# Databricks notebook source\nx = 1\n# MAGIC %sql SELECT\n# MAGIC 1\n\n# MAGIC %md\n# MAGIC no\n# MAGIC %sql\n# MAGIC B\ny = 2\n"
    first, second = sql_cells_of_python(text)
    assert first.split("\n") == ["", "", " SELECT", "1"]
    assert second.split("\n")[8:] == ["B"]
