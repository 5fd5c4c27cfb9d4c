"""PySpark notes no line for columns of the engine, and all lines for those of users."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import FunctionType

import delta
import pyspark
import pytest
from pyspark.errors import utils

import headwater_spark
from headwater_spark import call_sites
from headwater_spark.call_sites import note_lines_of_users_only

Asks = Callable[[], bool]
ENGINE, PYSPARK, DELTA = (Path(module.__path__[0]) for module in (headwater_spark, pyspark, delta))


@pytest.fixture(autouse=True)
def _noting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that notes lines, as it does unless somebody says otherwise."""
    monkeypatch.setattr(call_sites, "_notes_call_sites", lambda: True)
    monkeypatch.setattr(utils, "is_debugging_enabled", utils.is_debugging_enabled)
    note_lines_of_users_only()


def code_of(file: Path, asks: Asks) -> Asks:
    """A function in a file, which calls another one."""
    names = {"asks": asks}
    exec(compile("def function():\n    return asks()\n", str(file), "exec"), names)
    function = names["function"]
    assert isinstance(function, FunctionType)
    return function


@pytest.mark.parametrize(
    ("files", "noted"),
    [
        (["user/source.py"], True),
        ([ENGINE / "rules/judgement.py"], False),
        ([ENGINE / "rules/judgement.py", PYSPARK / "sql/functions/builtin.py"], False),
        ([ENGINE / "delta_writes/delta_merge.py", DELTA / "tables.py"], False),
        (["user/source.py", DELTA / "tables.py", PYSPARK / "sql/functions/builtin.py"], True),
        ([ENGINE / "resolution/evaluation.py", "user/source.py"], True),
        (["user/source.py", ENGINE / "sources/cloud_files/rescue.py"], False),
        (["user/headwater_spark.py"], True),
        ([f"{ENGINE}_of_a_user/source.py"], True),
    ],
)
def test_whose_line_is_noted(files: list[Path | str], noted: bool):
    """That of the caller nearest to the operation, and outside of PySpark and Delta, where it is not the engine's."""
    asks: Asks = code_of(PYSPARK / "errors/utils.py", utils.is_debugging_enabled)
    for file in reversed(files):
        asks = code_of(Path(file), asks)
    assert asks() is noted


def test_who_wants_no_notes_gets_none(monkeypatch: pytest.MonkeyPatch):
    """Where they are switched off for the session, they stay so."""
    monkeypatch.setattr(call_sites, "_notes_call_sites", lambda: False)
    assert not utils.is_debugging_enabled()


def test_the_operations_of_a_column_ask():
    """PySpark goes by this answer; with another one its columns would be as slow as ever, and nobody would see it."""
    asked: list[str] = []
    wrapped = utils._with_origin(lambda *_: "result")  # type: ignore[type-var]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utils, "is_debugging_enabled", lambda: asked.append("asked"))
        assert wrapped() == "result"
    assert asked == ["asked"]
