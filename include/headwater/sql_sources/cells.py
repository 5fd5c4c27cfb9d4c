"""Notebooks as files: the cells of an exported SQL notebook, and the SQL cells of an exported Python notebook.

Each piece has the line numbers of its file: the lines of the other cells are empty in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headwater.errors import SourceFileFailed

_BOUNDARY = re.compile(r"--\s*COMMAND\s*-{3,}\s*")
_HEADER = "-- Databricks notebook source"
_MAGIC = re.compile(r"--\s*MAGIC ?(.*)")
_PYTHON_MAGIC = re.compile(r"#\s*MAGIC ?(.*)")
_KIND = re.compile(r"\s*%{1,2}(\w+)(.*)", re.DOTALL)
# Cells of these kinds declare nothing.
_SILENT = {"md", "html", "pip", "skip", "conda", "environment"}
_RUN = {"sql", "python"}


@dataclass(frozen=True)
class Cell:
    """A cell's text and its language, ``sql`` or ``python``."""

    text: str
    language: str = "sql"


def cells_of_sql(text: str, label: str) -> list[Cell]:
    """The SQL and Python cells of a ``.sql`` file; of a file that is not a notebook the whole text.

    Raises SourceFileFailed for a cell of another language.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].strip() != _HEADER and not any(map(_BOUNDARY.fullmatch, lines)):
        return [Cell(text)]
    ends = [number for number, line in enumerate(lines) if _BOUNDARY.fullmatch(line)]
    starts = [0, *(number + 1 for number in ends)]
    return [_cell(lines, start, end, label) for start, end in zip(starts, [*ends, len(lines)], strict=True)]


def _cell(lines: list[str], start: int, end: int, label: str) -> Cell:
    kept = [""] * start
    kind = ""
    for number in range(start, end):
        magic = _MAGIC.match(lines[number])
        command = _KIND.match(magic[1]) if magic else None
        if command is not None:
            kind = command[1]
            if kind not in {*_SILENT, *_RUN}:
                _refuse(kind, f"{label}:{number + 1}:1")
        if magic is None:
            # Beside Python, lines of the notebook's own language are its comments.
            kept.append("" if kind == "python" else lines[number])
        else:
            kept.append((command[2] if command else magic[1]) if kind in _RUN else "")
    if kind == "python":  # what came before was a title
        first = next(number for number in range(start, end) if _MAGIC.match(lines[number]))
        kept[start:first] = [""] * (first - start)
    return Cell("\n".join(kept), "python" if kind == "python" else "sql")


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
