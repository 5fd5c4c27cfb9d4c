"""The last line that a program of ours prints is its report, whatever texts it quotes."""

from __future__ import annotations

import json
import subprocess
from types import SimpleNamespace

import pytest

from headwater.commands import run


@pytest.mark.parametrize("text", ["plain", "\u2028 hi", "a\u2029b\u0085", "\x0b\x0c\x1c\r\n"])
def test_a_report_that_quotes_any_text(monkeypatch: pytest.MonkeyPatch, text: str):
    """A message with the ends of lines that only Python knows is read whole, as it was printed."""
    report = {"error": {"message": text}}
    printed = f"Starting.\n{json.dumps(report, ensure_ascii=False)}\n"
    done = SimpleNamespace(stdout=printed, returncode=1)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    monkeypatch.setattr(run, "job_file", lambda name: name)
    monkeypatch.setattr(run, "_job_environment", dict)
    assert run.report_of_program("lint.py", []) == report
    done.stdout = ""
    assert "without a report" in run.report_of_program("lint.py", [])["error"]["message"]
