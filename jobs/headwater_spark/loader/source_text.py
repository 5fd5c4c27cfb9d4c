"""The Python text of a source file: a plain ``.py``, a Databricks notebook in ``.py`` form, or an ``.ipynb``."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from headwater.errors import SourceFileFailed

_MAGIC = re.compile(r"^#\s*MAGIC\s+%(\w+)", re.MULTILINE)
# Cells of these kinds hold no code of the pipeline; others would be skipped without a word.
_HARMLESS_MAGICS = {"md", "pip", "python", "html"}
# A command of the notebook on a line of its own; a lone % is an operator that continues the line before.
_COMMAND_LINE = re.compile(r"(\s*)(?:%(?=[A-Za-z])|!)(\w*)")


@dataclass(frozen=True)
class SourceText:
    """A piece of source that compiles as one unit. ``label`` is what errors call it."""

    path: Path
    label: str
    text: str


def read_sources(path: Path) -> list[SourceText]:
    """The units of a source file, in order; raises SourceFileFailed where a part of it can't be run."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SourceFileFailed(f"{path.name} is not UTF-8 text: {error.reason}.", where=path) from None
    if path.suffix == ".ipynb":
        return _notebook_cells(path, text)
    if text.startswith("# Databricks notebook source"):
        _check_magics(path, text)
    return [SourceText(path, str(path), text)]


def _check_magics(path: Path, text: str) -> None:
    for match in _MAGIC.finditer(text):
        if match[1] not in _HARMLESS_MAGICS:
            line = text.count("\n", 0, match.start()) + 1
            _refuse_magic(match[1], f"{path}:{line}")


def _notebook_cells(path: Path, text: str) -> list[SourceText]:
    try:
        cells = json.loads(text)["cells"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise SourceFileFailed(f"{path.name} is not a notebook: {error}.", where=path) from None
    units = []
    for number, cell in enumerate(cells, start=1):
        if cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        lines = ("".join(source) if isinstance(source, list) else source).splitlines()
        label = f"{path}, cell {number}"
        first = next((line.strip() for line in lines if line.strip()), "")
        if first.startswith("%%") or (first.startswith("%") and first[1:].split()[:1] in (["sql"], ["md"])):
            kind = first.lstrip("%").split()[0]
            if kind not in _HARMLESS_MAGICS:
                _refuse_magic(kind, label)
            if kind != "python":
                continue
        # A line of the notebook's own commands becomes nothing, and the lines after it keep their numbers.
        kept = [_without_command(line, label) for line in lines]
        units.append(SourceText(path, label, "\n".join(kept) + "\n"))
    return units


def _without_command(line: str, label: str) -> str:
    command = _COMMAND_LINE.match(line)
    if command is None:
        return line
    if command[2] == "run" and not line.lstrip().startswith("!"):
        _refuse_magic("run", label)
    return command[1] + "pass"


def _refuse_magic(kind: str, where: str) -> None:
    raise SourceFileFailed(
        f"A %{kind} cell can't be run here, and leaving it out could change the result.",
        where=where,
        remedy="Write it in Python: spark.sql(...) for SQL, an import for %run.",
    )
