"""The exercises: each answer passes its checks, in the form of a notebook, and a wrong one does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater_exercises.__main__ import FOLDER, main

# Two set others themselves.
pytestmark = pytest.mark.usefixtures("one_partition")


@pytest.mark.parametrize("number", range(1, 7))
def test_an_answer(number: int, spark: SparkSession, capsys: pytest.CaptureFixture[str]):
    """The notebook runs from its first cell on, and every check of what it gives holds."""
    assert main(["check", str(FOLDER / f"exercise_{number}.ipynb")]) == 0
    output = capsys.readouterr().out
    assert f"Exercise {number} is done." in output
    assert "WRONG" not in output


def test_a_wrong_answer(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A script whose table has rows that nobody asked for is told which checks failed; one without an answer, that it has none."""
    assert main(["start", "1", str(tmp_path)]) == 0
    script = tmp_path / "exercise_1.py"
    assert main(["check", str(script)]) == 2
    assert "your part of the exercise" in capsys.readouterr().err
    gap = 'raise NotImplementedError("your part of the exercise")'
    script.write_text(script.read_text().replace(gap, 'return spark.readStream.table("raw.events")'))
    assert main(["check", str(script)]) == 1
    captured = capsys.readouterr()
    assert "WRONG only the clicks are there, each once: ['e1', 'e2', 'e3', 'e4', 'e5']" in captured.err
    assert "2 of 5 checks of exercise 1 failed" in captured.err
