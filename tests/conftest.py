"""What holds for all tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.captured_streams import forget_captured_streams

from headwater.storage.place import Place

# How long an example takes says how busy the machine is, and nothing of the code.
# The same examples in each run; `make soak` gives a seed, and has other ones.
settings.register_profile(
    "any machine",
    deadline=None,
    derandomize="HEADWATER_SEED" not in os.environ,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any machine")

# Compiled modules are kept, as the Makefile has it, whatever the environment says: each process of a test would compile them again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# `make` has made the archive of classes before; no process is to make one beside the tests.
os.environ.setdefault("HEADWATER_CLASS_SHARING", "use")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many tests ran, and how many were skipped for want of something on this machine."""
    stats = terminalreporter.stats
    run = sum(len(stats.get(outcome, ())) for outcome in ("passed", "failed", "xfailed", "xpassed"))
    skipped = len(stats.get("skipped", ()))
    terminalreporter.write_sep("=", f"{run} tests ran, {skipped or 'none'} skipped")


def pytest_unconfigure() -> None:
    """Before the captured output is closed: nothing is to be logged into it while the process ends."""
    forget_captured_streams()


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Place, Place]:
    """Storage and warehouse; a module may have them elsewhere."""
    return tmp_path / "storage", tmp_path / "warehouse"
