"""The forms of an exercise are made from its script."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from headwater_exercises.__main__ import FOLDER, main
from headwater_exercises.notebook_form import as_notebook, without_answer
from headwater_spark.loader.compilation import compile_source
from headwater_spark.loader.source_text import read_sources

SCRIPTS = sorted(FOLDER.glob("exercise_[0-9]*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_notebooks_are_those_of_the_scripts(script: Path):
    """The committed notebook has the script's cells: one opens the session, one runs the data with %run, and all compile."""
    text = script.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert text == as_notebook(script.read_text(encoding="utf-8"))
    code = ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert code[0] == "from headwater.testing import local_session\n\nspark = local_session()"
    assert code[1] == "%run ./exercise_data.py"
    for unit in read_sources(script.with_suffix(".ipynb")):
        compile_source(unit)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_answer_is_left_out(script: Path):
    """What is asked for stands there, and an error in place of the answer; the rest is the same, and compiles."""
    text = script.read_text(encoding="utf-8")
    gap = without_answer(text)
    ast.parse(gap)
    assert gap.count("raise NotImplementedError") == gap.count("YOUR PART") == text.count("# ANSWER: ") > 0
    assert "ANSWER" not in gap
    answers = [part.split("# END")[0] for part in text.split("# ANSWER: ")[1:]]
    code = [line.strip() for answer in answers for line in answer.split("\n")[1:] if line.strip() and not line.strip().startswith("#")]  # fmt: skip
    assert code
    assert not [line for line in code if line in gap and text.count(line) == 1]


def test_a_folder_is_begun(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Script or notebook with its data, never over what is there; the list has the titles."""
    folder = tmp_path / "mine"
    assert main(["start", "1", str(folder)]) == 0
    assert main(["start", "1", str(folder), "--notebook"]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["exercise_1.ipynb", "exercise_1.py", "exercise_data.py"]  # fmt: skip
    (folder / "exercise_1.py").write_text("mine")
    assert main(["start", "1", str(folder)]) == 2
    assert (folder / "exercise_1.py").read_text() == "mine"
    assert main(["start", "9", str(folder)]) == 2
    assert main(["start", "1", str(tmp_path / "two"), "--answer"]) == 0
    assert (tmp_path / "two" / "exercise_1.py").read_text() == SCRIPTS[0].read_text()
    capsys.readouterr()
    assert main(["list"]) == 0
    assert [line[:11] for line in capsys.readouterr().out.split("\n")[:6]] == [f"Exercise {n}:" for n in range(1, 7)]  # fmt: skip
