"""An exercise in its other forms: as a notebook, and without its answer.

The script is what is written by hand. The notebook has the same cells, and runs the data's file with ``%run`` where the script
imports it.
"""

from __future__ import annotations

import json
import re

_HEADER = "# Databricks notebook source\n"
_NEXT_CELL = "\n# COMMAND ----------\n"
_RUN = re.compile(r"^from \w+ import \*  # (%run .+)$", re.MULTILINE)
_ANSWER = re.compile(r"^( *)# ANSWER: (.*?)^ *# END\n?", re.MULTILINE | re.DOTALL)
_MAGIC = re.compile(r"^# MAGIC ?", re.MULTILINE)


def as_notebook(script: str) -> str:
    """The script's cells as an ``.ipynb``."""
    cells = []
    for number, text in enumerate(script.removeprefix(_HEADER).split(_NEXT_CELL), start=1):
        is_text = text.lstrip().startswith("# MAGIC %md")
        source = _MAGIC.sub("", text).strip().removeprefix("%md").strip() if is_text else text.strip("\n")
        source = _RUN.sub(r"\1", source)
        cell: dict[str, object] = {
            "cell_type": "markdown" if is_text else "code",
            "id": f"cell-{number}",
            "metadata": {},
            "source": [f"{line}\n" for line in source.split("\n")[:-1]] + [source.split("\n")[-1]],
        }
        if not is_text:
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def without_answer(script: str) -> str:
    """The script with each answer replaced by what it is asked for, and an error that says so."""

    def gap(match: re.Match[str]) -> str:
        indent = match[1]
        task: list[str] = []
        for line in match[2].split("\n"):
            if task and not line.strip().startswith("#"):
                break
            task.append(line.strip().removeprefix("#").strip())
        lines = [f"{indent}# YOUR PART: {task[0]}", *(f"{indent}# {line}" for line in task[1:])]
        return "\n".join([*lines, f'{indent}raise NotImplementedError("your part of the exercise")', ""])

    return _ANSWER.sub(gap, script)
