"""The Python text of a source file: a plain ``.py``, a Databricks notebook in ``.py`` form, or an ``.ipynb``."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from headwater.errors import SourceFileFailed

_MAGIC_LINE = re.compile(r"^#\s*MAGIC ?(.*)$")
_KIND = re.compile(r"%{1,2}(\w+)")
# Cells of these kinds hold no code of the pipeline; others must not be skipped silently.
_HARMLESS_MAGICS = {"md", "pip", "python", "html", "skip", "time", "timeit", "conda"}
_OTHER_LANGUAGES = {"sql", "scala", "r", "sh", "fs", "bash", "script"}
# A command of the notebook on a line of its own; a lone % is an operator that continues the line before.
_COMMAND_LINE = re.compile(r"(\s*)(?:%(?=[A-Za-z])|!)(\w*)")


@dataclass(frozen=True)
class SourceText:
    """A piece of source that compiles as one unit. ``label`` is its name in errors."""

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
        text = _without_magics(path, text)
    return [SourceText(path, str(path), text)]


def _without_magics(path: Path, text: str) -> str:
    """The notebook's Python with the same line numbers: code of ``%python`` cells is uncommented."""
    lines = []
    kind = ""
    for number, line in enumerate(text.splitlines(), start=1):
        magic = _MAGIC_LINE.match(line)
        command = _KIND.match(magic[1]) if magic else None
        if magic is None:
            kind = ""
        elif command is not None:
            kind = command[1]
            if kind not in _HARMLESS_MAGICS:
                _refuse_magic(kind, f"{path}:{number}")
        is_code = magic is not None and kind == "python" and command is None
        lines.append(magic[1] if is_code and magic is not None else line)
    return "\n".join(lines) + "\n"


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
        command = _KIND.match(first)
        if command is not None and (
            first.startswith("%%") or command[1] in {"md", "html", *_OTHER_LANGUAGES}
        ):
            if command[1] not in _HARMLESS_MAGICS:
                _refuse_magic(command[1], label)
            if command[1] not in ("python", "time", "timeit"):
                continue
        # A line of the notebook's own commands becomes nothing, and the lines after it keep their numbers.
        without_commands = [_without_command(line, label) for line in lines]
        units.append(SourceText(path, label, "\n".join(without_commands) + "\n"))
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
