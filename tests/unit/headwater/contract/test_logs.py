"""What programs log to standard error: for people, as JSON, without secrets."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.commands.command_line import main
from headwater.contract.failure_report import run_and_report
from headwater.contract.logs import configure_logging, show_error
from headwater.errors import FlowFailed, UsageError
from headwater.runtime import secret_values

LOGGER = logging.getLogger("headwater")
UPDATE = logging.getLogger("headwater.update")
KEYS = {"time", "level", "logger", "message", "pipeline", "update", "flow", "batch"}


@pytest.fixture(autouse=True)
def as_before():
    """The logger is left as it was."""
    handlers, level = list(LOGGER.handlers), LOGGER.level
    yield
    LOGGER.handlers = handlers
    LOGGER.setLevel(level)


def configured(capsys: pytest.CaptureFixture[str], form: str = "", level: str = "") -> None:
    configure_logging({"HEADWATER_LOG_FORMAT": form, "HEADWATER_LOG_LEVEL": level})
    capsys.readouterr()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    shown = capsys.readouterr()
    assert shown.out == ""
    return [json.loads(line) for line in shown.err.splitlines()]


def test_lines_for_people(capsys):
    """The time of day and the message, on standard error alone; a second call sets nothing up twice."""
    configured(capsys)
    configured(capsys)
    UPDATE.info("%s is done", "bronze", extra={"pipeline": "orders"})
    UPDATE.debug("not at this level")
    shown = capsys.readouterr()
    assert re.fullmatch(r"\d\d:\d\d:\d\d  bronze is done\n", shown.err)
    assert shown.out == ""


def test_lines_for_programs(capsys):
    """Each line has the same keys; what is not known is null; a line break in a message stays inside its line."""
    configured(capsys, "json")
    UPDATE.info(
        "COMPLETED\nbronze: é", extra={"pipeline": "orders", "update": "u1", "flow": "bronze", "batch": 3}
    )
    logging.getLogger("headwater.event_log.writer").warning("It can't be written")
    first, second = lines(capsys)
    assert first.keys() == second.keys() == KEYS
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", first.pop("time"))
    assert first == {
        "level": "INFO",
        "logger": "headwater.update",
        "message": "COMPLETED\nbronze: é",
        "pipeline": "orders",
        "update": "u1",
        "flow": "bronze",
        "batch": 3,
    }
    assert (second["level"], second["pipeline"], second["batch"]) == ("WARNING", None, None)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text())
def test_any_text_is_one_line_of_json(capsys, text):
    """Also line separators, control characters and broken surrogates, in whatever encoding standard error has."""
    configured(capsys, "json")
    UPDATE.info("%s", "<" + text + ">")
    shown = capsys.readouterr().err
    assert shown.isascii()
    assert shown.count("\n") == 1
    assert json.loads(shown)["message"].startswith("<")


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("", ["INFO", "WARNING", "ERROR"]),
        ("debug", ["DEBUG", "INFO", "WARNING", "ERROR"]),
        ("Warning", ["WARNING", "ERROR"]),
        ("CRITICAL", []),
    ],
)
def test_levels(capsys, level, shown):
    """From the level on that the variable names, in capitals or not."""
    configured(capsys, "JSON", level)
    for number in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        UPDATE.log(number, "x")
    assert [line["level"] for line in lines(capsys)] == shown


@pytest.mark.parametrize(
    ("variable", "value", "choices"),
    [
        ("HEADWATER_LOG_FORMAT", "xml", "text, json"),
        ("HEADWATER_LOG_LEVEL", "loud", "DEBUG, INFO, WARNING, ERROR, CRITICAL"),
        ("HEADWATER_LOG_LEVEL", "10", "DEBUG, INFO"),
    ],
)
def test_a_value_that_there_is_not(capsys, monkeypatch, variable, value, choices):
    """It ends with code 2, the variable and what it may be, before anything is done."""
    with pytest.raises(UsageError):
        configure_logging({variable: value})
    monkeypatch.setenv(variable, value)
    assert run_and_report(lambda: pytest.fail("done all the same"), as_json=True) == 2
    shown = capsys.readouterr()
    assert f"{variable} is {value!r}." in shown.err
    assert choices in shown.err
    assert json.loads(shown.out)["error"]["condition"] == "USAGE"


def test_no_secret_is_logged(capsys, monkeypatch):
    """Not in a message or its values, not in a traceback, not in a name; in either form."""
    monkeypatch.setattr(secret_values, "_noted", set())
    secret_values.note_secret("Hunter2-canary")
    for form in ("text", "json"):
        configured(capsys, form)
        UPDATE.info("it is %s", "Hunter2-canary", extra={"flow": "Hunter2-canary"})
        UPDATE.info("password=%s", "canary-of-a-name")
        try:
            int("Hunter2-canary")
        except ValueError:
            UPDATE.exception("failed")
        shown = capsys.readouterr().err
        assert "canary" not in shown
        assert shown.count("[redacted]") >= 3
        assert "ValueError" in shown


def test_a_log_call_that_is_wrong_stops_nothing(capsys, monkeypatch):
    """Values that do not fit their text are reported by `logging` itself; what logs goes on."""
    monkeypatch.setattr(LOGGER, "propagate", False)  # pytest's own handler raises
    configured(capsys)
    UPDATE.info("%d rows", "no number")
    UPDATE.info("next")
    assert capsys.readouterr().err.endswith("  next\n")


def test_errors_of_programs_are_records_too(capsys, monkeypatch):
    """Where the log is JSON, all that a program of ours writes to standard error is."""
    monkeypatch.setenv("HEADWATER_LOG_FORMAT", "json")
    monkeypatch.delenv("HEADWATER_DEBUG", raising=False)

    def failing() -> int:
        raise FlowFailed("It broke.", where="a.py:3")

    assert run_and_report(failing, as_json=False) == 1
    monkeypatch.setenv("HEADWATER_DEBUG", "1")
    assert run_and_report(failing, as_json=False) == 1
    show_error(FlowFailed("Bad cast."), pipeline="orders", update="u1", flow="bronze")
    assert main(["fly"]) == 2
    plain, traced, of_flow, of_verb = lines(capsys)
    assert plain["message"].startswith("[FLOW_FAILED] It broke.")
    assert (plain["level"], plain.keys()) == ("ERROR", KEYS)
    assert "in failing" in traced["traceback"]
    assert (of_flow["pipeline"], of_flow["update"], of_flow["flow"]) == ("orders", "u1", "bronze")
    assert "[USAGE]" in of_verb["message"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_secret_is_in_the_error_that_a_program_ends_with(capsys, monkeypatch, form):
    """Not in its text and not in its traceback, in either form."""
    monkeypatch.setattr(secret_values, "_noted", set())
    secret_values.note_secret("Hunter2-canary")
    monkeypatch.setenv("HEADWATER_LOG_FORMAT", form)
    monkeypatch.setenv("HEADWATER_DEBUG", "1")

    def failing() -> int:
        raise FlowFailed("Login failed for Hunter2-canary.", where="a.py:3")

    assert run_and_report(failing, as_json=False) == 1
    shown = capsys.readouterr().err
    assert "in failing" in shown
    assert "Login failed for [redacted]." in shown
    assert "canary" not in shown


def test_for_people_an_error_stands_by_itself(capsys, monkeypatch):
    """No time before it: it is the command's answer."""
    monkeypatch.delenv("HEADWATER_LOG_FORMAT", raising=False)
    assert main(["fly"]) == 2
    assert capsys.readouterr().err.startswith("[USAGE] ")


def test_a_standard_error_of_another_encoding(tmp_path: Path):
    """As under `LC_ALL=C` in a container: each line can be read as JSON, all the same."""
    code = (
        "import logging; from headwater.contract.logs import configure_logging as c; c();"
        "logging.getLogger('headwater.x').info('caf\\u00e9 \\udcff')"
    )
    environment = {
        "PYTHONPATH": "include",
        "PYTHONIOENCODING": "ascii:backslashreplace",
        "HEADWATER_LOG_FORMAT": "json",
    }
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert json.loads(done.stderr)["message"] == "caf\u00e9 \udcff"
