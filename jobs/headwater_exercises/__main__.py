"""``python -m headwater_exercises``: list the exercises, begin one, and run what was answered."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from headwater.contract.failure_report import run_and_report
from headwater.errors import UsageError
from headwater_exercises.checks import AnswerWrong
from headwater_exercises.notebook_form import as_notebook, without_answer
from headwater_spark.loader.compilation import compile_source
from headwater_spark.loader.source_text import read_sources

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "exercises"
_DATA = "exercise_data.py"
_SUFFIXES = (".py", ".ipynb")


def main(argv: Sequence[str] | None = None) -> int:
    """Answer one verb; returns the exit code."""
    parser = argparse.ArgumentParser(prog="headwater_exercises", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="the exercises")
    start = verbs.add_parser("start", help="write an exercise, without its answer, into a folder")
    start.add_argument("number", type=int, metavar="N")
    start.add_argument("folder", type=Path, metavar="DIR")
    start.add_argument("--notebook", action="store_true", help="as an .ipynb")
    start.add_argument("--answer", action="store_true", help="with its answer")
    check = verbs.add_parser("check", help="run the file of an exercise, and check what it gives")
    check.add_argument("file", type=Path, metavar="FILE")
    parsed = parser.parse_args(argv)
    actions = {
        "list": show_exercises,
        "start": lambda: begin(parsed.number, parsed.folder, notebook=parsed.notebook, answer=parsed.answer),
        "check": lambda: check_file(parsed.file),
    }
    return run_and_report(actions[parsed.verb], as_json=False)


def script_of(number: int) -> Path:
    """The script of an exercise, with its answer; raises UsageError where there is none of that number."""
    script = FOLDER / f"exercise_{number}.py"
    if not script.is_file():
        raise UsageError(f"There is no exercise {number}.", remedy="python -m headwater_exercises list")
    return script


def show_exercises() -> int:
    """Print the number and title of each."""
    for script in sorted(FOLDER.glob("exercise_[0-9]*.py")):
        title = next(line for line in script.read_text(encoding="utf-8").split("\n") if "# Exercise" in line)
        print(title.removeprefix("# MAGIC # "))
    print(f"Their text: {FOLDER / 'README.md'}")
    return 0


def begin(number: int, folder: Path, *, notebook: bool, answer: bool) -> int:
    """Write the file of an exercise and its data; raises UsageError where it is there already."""
    text = script_of(number).read_text(encoding="utf-8")
    text = text if answer else without_answer(text)
    target = folder / f"exercise_{number}{'.ipynb' if notebook else '.py'}"
    if target.exists():
        raise UsageError(f"{target} is there already.", remedy="Name another folder, or remove it.")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(FOLDER / _DATA, folder)
    target.write_text(as_notebook(text) if notebook else text, encoding="utf-8")
    print(f"{target}: fill in your part, then\n  python -m headwater_exercises check {target}")
    return 0


def check_file(file: Path) -> int:
    """Run a script, or the cells of a notebook, as Python and Jupyter do; 1 where a check does not hold."""
    if file.suffix not in _SUFFIXES or not file.is_file():
        raise UsageError(f"{file} is no script or notebook.", remedy="Give the file of an exercise.")
    names: dict[str, object] = {"__name__": "__main__"}
    if file.suffix == ".py":
        names["__file__"] = str(file.resolve())
    before, sys.path[:0] = Path.cwd(), [str(file.resolve().parent)]
    units = read_sources(file.resolve())
    os.chdir(file.resolve().parent)  # as the kernel of a notebook has it
    try:
        for unit in units:
            exec(compile_source(unit), names)  # noqa: S102 - running the user's file is what was asked for
    except AnswerWrong as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        os.chdir(before)
        sys.path.pop(0)
        sys.modules.pop("exercise_data", None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
