"""Findings of the linter reach the reader whole."""

from __future__ import annotations

import pytest

from headwater.contract.findings import show_findings
from headwater.definitions.finding import Finding, Severity
from headwater.definitions.source_location import SourceLocation

LONG = "The state keeps every key that it has seen. " * 5


@pytest.mark.parametrize("columns", ["40", "200"])
def test_no_text_is_cut(columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """However wide the terminal is, or a pipe is taken to be, each sentence is there to its last word, below its finding."""
    monkeypatch.setenv("COLUMNS", columns)
    one = Finding(
        "HW101",
        Severity.WARNING,
        LONG.strip(),
        f"Do this: {LONG}\nor that.",
        dataset="orders",
        where=SourceLocation("tables.py", 3),
    )
    show_findings([one], 0)
    text = capsys.readouterr().out
    assert text.startswith("warning HW101  orders\n")
    assert f"  {LONG.strip()}\n" in text
    assert f"  what to do: Do this: {LONG}\n  or that.\n" in text
    assert text.endswith("The linter found 1 warning.\n")
