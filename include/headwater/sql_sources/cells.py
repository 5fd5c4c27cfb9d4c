"""Notebooks as files: the cells of an exported SQL notebook, and the SQL cells of an exported Python notebook.

Each piece has the line numbers of its file: the lines of the other cells are empty in it.
"""

from __future__ import annotations

import re

from headwater.errors import SourceFileFailed

_BOUNDARY = re.compile(r"--\s*COMMAND\s*-{3,}\s*")
_HEADER = "-- Databricks notebook source"
_MAGIC = re.compile(r"--\s*MAGIC ?(.*)")
_PYTHON_MAGIC = re.compile(r"#\s*MAGIC ?(.*)")
_KIND = re.compile(r"\s*%{1,2}(\w+)(.*)", re.DOTALL)
# Cells of these kinds declare nothing.
_SILENT = {"md", "html", "pip", "skip", "conda"}


def cells_of_sql(text: str, label: str) -> list[str]:
    """The SQL cells of a ``.sql`` file; of a file that is no notebook the whole text.

    Raises SourceFileFailed for a cell of another language.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].strip() != _HEADER and not any(map(_BOUNDARY.fullmatch, lines)):
        return [text]
    cells: list[list[str]] = [[]]
    kind = ""
    for number, line in enumerate(lines, start=1):
        if _BOUNDARY.fullmatch(line):
            cells.append([""] * number)
            kind = ""
            continue
        magic = _MAGIC.match(line)
        command = _KIND.match(magic[1]) if magic else None
        if command is not None:
            kind = command[1]
            if kind not in {*_SILENT, "sql"}:
                _refuse(kind, f"{label}:{number}:1")
        if magic is None:
            cells[-1].append(line)
        else:
            of_sql = kind == "sql"
            cells[-1].append((command[2] if command else magic[1]) if of_sql else "")
    return ["\n".join(cell) for cell in cells]


def sql_cells_of_python(text: str) -> list[str]:
    """The ``%sql`` cells of a Python notebook that is exported as ``.py``."""
    lines = text.replace("\r\n", "\n").split("\n")
    cells: list[list[str]] = []
    inside = False
    for number, line in enumerate(lines):
        magic = _PYTHON_MAGIC.match(line)
        command = _KIND.match(magic[1]) if magic else None
        if command is not None:
            inside = command[1] == "sql"
            if inside:
                cells.append([""] * number + [command[2]])
        elif magic is not None and inside:
            cells[-1].append(magic[1])
        else:
            inside = False
    return ["\n".join(cell) for cell in cells]


def _refuse(kind: str, where: str) -> None:
    raise SourceFileFailed(
        f"A %{kind} cell of a SQL notebook can't be run here, and leaving it out could change the result.",
        where=where,
        remedy="Put it into a Python source.",
    )
