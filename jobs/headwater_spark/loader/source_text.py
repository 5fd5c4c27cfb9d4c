"""The text of a source file: a plain ``.py`` or ``.sql``, a Databricks notebook in either form, or an ``.ipynb``."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from headwater.errors import SourceFileFailed
from headwater.sql_sources.cells import cells_of_sql, sql_cells_of_python
from headwater_spark.loader.notebook_runs import run_target

_MAGIC_LINE = re.compile(r"^#\s*MAGIC ?(.*)$")
# Packages are the environment's; hand-written notebooks install them without the marker of an exported command.
_BARE_PIP = re.compile(r"^(?:%|!)pip\s")
_KIND = re.compile(r"%{1,2}(\w+)")
# Cells of these kinds hold no code of the pipeline; others must not be skipped silently.
_HARMLESS_MAGICS = {"md", "pip", "python", "html", "skip", "time", "timeit", "conda", "sql"}
_OTHER_LANGUAGES = {"sql", "scala", "r", "sh", "fs", "bash", "script"}
# What notebooks' kernels call Python; Sparkmagic's names its language "pyspark".
_NAMES_OF_PYTHON = {"python", "python3", "ipython", "pyspark", "pyspark3"}
# At the beginning of a line only: inside a block there is no place for another notebook's cells.
_RUN_LINE = re.compile(r"%run(?:\s|$)")
# A command of the notebook on a line of its own; a lone % is an operator that continues the line before.
_COMMAND_LINE = re.compile(r"(\s*)(?:%(?=[A-Za-z])|!)(\w*)")


@dataclass(frozen=True)
class SourceText:
    """A piece of source that is run as one unit. ``label`` is its name in errors; ``language``: ``python`` or ``sql``.

    ``whole``: what tracebacks show, where the unit is a part of it; it has the same lines.
    """

    path: Path
    label: str
    text: str
    language: str = "python"
    whole: str = ""


def read_sources(path: Path, root: Path | None = None, chain: tuple[Path, ...] = ()) -> list[SourceText]:
    """The units of a source file, in order, with those of notebooks that it runs with ``%run`` in their place.

    Args:
        path: the file.
        root: the folder that notebooks of ``%run`` have to lie in, if any.
        chain: the notebooks whose ``%run`` led here.

    Raises:
        SourceFileFailed: a part of it can't be run.

    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SourceFileFailed(f"{path.name} is not UTF-8 text: {error.reason}.", where=path) from None
    text = text.removeprefix("\ufeff")
    runs = _Runs(path, root, (*chain, path.resolve()))
    if path.suffix == ".ipynb":
        return _notebook_cells(path, text, runs)
    if path.suffix.lower() == ".sql":
        return [
            SourceText(path, str(path), cell.text, cell.language) for cell in cells_of_sql(text, str(path))
        ]
    if not text.startswith("# Databricks notebook source"):
        return [SourceText(path, str(path), text)]
    cells = [SourceText(path, str(path), cell, "sql") for cell in sql_cells_of_python(text)]
    return [*runs.units(str(path), _without_magics(path, text)), *cells]


@dataclass(frozen=True)
class _Runs:
    """Takes the ``%run`` lines out of a notebook's Python, and puts the units of what they name there."""

    path: Path
    root: Path | None
    chain: tuple[Path, ...]

    def units(self, label: str, text: str) -> list[SourceText]:
        lines = text.splitlines()
        at = [number for number, line in enumerate(lines) if _RUN_LINE.match(line)]
        if not at:
            return [SourceText(self.path, label, text)]
        whole = "\n".join("" if number in at else line for number, line in enumerate(lines)) + "\n"
        units: list[SourceText] = []
        for start, end in pairwise([-1, *at, len(lines)]):
            part = "\n" * (start + 1) + "\n".join(lines[start + 1 : end]) + "\n"
            if start >= 0:
                target = run_target(lines[start], self.path, self.root, self.chain, f"{label}:{start + 1}")
                units += read_sources(target, self.root, self.chain)
            if part.strip():
                units.append(SourceText(self.path, label, part, whole=whole))
        return units


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
            if kind not in {*_HARMLESS_MAGICS, "run"}:
                _refuse_magic(kind, f"{path}:{number}")
        is_code = magic is not None and (
            (kind == "python" and command is None) or (command is not None and kind == "run")
        )
        bare = magic is None and _BARE_PIP.match(line) is not None
        lines.append(magic[1] if is_code and magic is not None else "" if bare else line)
    return "\n".join(lines) + "\n"


def _notebook_cells(path: Path, text: str, runs: _Runs) -> list[SourceText]:
    cells, usual = _parsed_notebook(path, text)
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
            first.startswith("%%") or command[1] in {"md", "html", "python", *_OTHER_LANGUAGES}
        ):
            if command[1] not in _HARMLESS_MAGICS:
                _refuse_magic(command[1], label)
            if command[1] == "sql":
                units.append(SourceText(path, label, _without_first_word(lines), "sql"))
            if command[1] not in ("python", "time", "timeit"):
                continue
        elif usual == "sql" and command is None:
            if first:
                units.append(SourceText(path, label, "\n".join(lines) + "\n", "sql"))
            continue
        # A line of the notebook's own commands becomes nothing, and the lines after it keep their numbers.
        without_commands = [_without_command(line, label) for line in lines]
        units += runs.units(label, "\n".join(without_commands) + "\n")
    return units


def _parsed_notebook(path: Path, text: str) -> tuple[list[Any], str]:
    """The cells of a notebook, and what those without a magic are written in."""
    try:
        notebook = json.loads(text)
        cells, usual = notebook["cells"], _language(notebook)
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise SourceFileFailed(f"{path.name} is not a notebook: {error}.", where=path) from None
    if usual not in ("python", "sql"):
        _refuse_magic(usual, str(path))
    return cells, usual


def _language(notebook: Any) -> str:
    metadata = notebook.get("metadata") or {}
    places = ("application/vnd.databricks.v1+notebook", "language"), ("language_info", "name")
    languages = [(metadata.get(place) or {}).get(key) for place, key in places]
    language = next((str(one).lower() for one in languages if one), "python")
    return "python" if language in _NAMES_OF_PYTHON else language


def _without_first_word(lines: list[str]) -> str:
    """The lines of a cell without the command that begins it; the rest keeps its place."""
    text = "\n".join(lines)
    command = re.match(r"\s*%{1,2}\w+", text)
    assert command is not None
    return re.sub(r"\S", " ", command[0]) + text[command.end() :]


def _without_command(line: str, label: str) -> str:
    command = _COMMAND_LINE.match(line)
    if command is None or _RUN_LINE.match(line):
        return line
    if line.split(maxsplit=1)[0] == "%run":
        raise SourceFileFailed(
            f"A %run inside a block: {line.strip()}", where=label, remedy="Begin a line of its own with it."
        )
    return command[1] + "pass"


def _refuse_magic(kind: str, where: str) -> None:
    raise SourceFileFailed(
        f"A %{kind} cell can't be run here, and leaving it out could change the result.",
        where=where,
        remedy="Write it in Python, or in SQL.",
    )
