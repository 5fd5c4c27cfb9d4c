"""The tests end without errors from loggers whose output was captured."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from pathlib import Path

from tests.captured_streams import forget_captured_streams

ROOT = Path(__file__).resolve().parents[2]
LOGS_AT_EXIT = """
import atexit, logging, sys

def test_something_logs_when_the_process_ends():
    logging.root.addHandler(logging.StreamHandler(sys.stderr))  # as Airflow does where it is imported
    logging.root.setLevel("INFO")
    atexit.register(logging.getLogger("py4j.clientserver").info, "Closing down clientserver connection")
"""


def test_only_captured_streams_are_forgotten(tmp_path):
    """Handlers of the process's own streams and of files stay."""
    logger = logging.getLogger("captured")
    captured, own = logging.StreamHandler(io.StringIO()), logging.StreamHandler(sys.__stderr__)
    file = logging.FileHandler(tmp_path / "log")
    before = list(logging.root.handlers)
    logger.handlers = [captured, own, file]
    try:
        forget_captured_streams()
        assert logger.handlers == [own, file]
    finally:
        logger.handlers = []
        logging.root.handlers = before
        file.close()


def test_a_run_ends_without_tracebacks(tmp_path):
    """A run of pytest with this conftest, in which something logs at the very end, writes nothing to standard error."""
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "test_it.py").write_text(LOGS_AT_EXIT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(
        [*command, f"--rootdir={tmp_path}"],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": ""}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert done.stderr == ""
