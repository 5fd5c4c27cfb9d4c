"""The lines of progress of an update, as they are logged."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from tests.unit.headwater_spark.update_parts import context_of

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
