"""The lines of progress of an update, as they are logged."""

from __future__ import annotations

import ast
import json
import logging
from pathlib import Path

import pytest
from tests.unit.headwater_spark.update_parts import context_of

import headwater_spark
from headwater.contract.logs import configure_logging
from headwater_spark.execution.update_context import UpdateContext

LOGGER = logging.getLogger("headwater")


@pytest.fixture(autouse=True)
def as_before():
    """The logger is left as it was."""
    handlers, level = list(LOGGER.handlers), LOGGER.level
    yield
    LOGGER.handlers = handlers
    LOGGER.setLevel(level)


def test_a_line_says_whose_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Pipeline and update stand beside each line, the flow where the caller knows it; a percent sign is a character."""
    configure_logging({"HEADWATER_LOG_FORMAT": "json"})
    context = context_of(tmp_path)
    UpdateContext.say(context, "COMPLETED  orders is 100% done", flow="orders")
    UpdateContext.say(context, "of no flow")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (first["logger"], first["level"]) == ("headwater.update", "INFO")
    assert first["message"] == "COMPLETED  orders is 100% done"
    assert [(line["pipeline"], line["update"], line["flow"]) for line in (first, second)] == [
        ("p", "u1", "orders"),
        ("p", "u1", None),
    ]


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
def test_a_line_of_a_batch_has_its_number(tmp_path: Path, capsys: pytest.CaptureFixture[str], level: str):
    """It is a number in JSON; lines of single batches are there where the level is DEBUG."""
    configure_logging({"HEADWATER_LOG_FORMAT": "json", "HEADWATER_LOG_LEVEL": level})
    context = context_of(tmp_path)
    UpdateContext.say(context, "RECOUNT    batch 4", flow="orders", batch=4)
    UpdateContext.say(context, "BATCH      5", flow="orders", batch=5, level=logging.DEBUG)
    shown = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["level"], line["flow"], line["batch"]) for line in shown] == [
        ("INFO", "orders", 4),
        ("DEBUG", "orders", 5),
    ][: len(shown)]
    assert len(shown) == (2 if level == "DEBUG" else 1)


def test_lines_about_a_flow_name_it():
    """Where a function has a flow's run or outcome, its progress lines say which flow it is: in JSON, too."""
    unnamed = []
    for path in Path(headwater_spark.__file__).parent.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            if not {"run", "outcome", "table"} & {argument.arg for argument in function.args.args}:
                continue
            calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
            lines = [call for call in calls if ast.unparse(call.func).endswith("context.say")]
            unnamed += [f"{path.name}:{c.lineno}" for c in lines if "flow" not in {k.arg for k in c.keywords}]
    assert unnamed == []
