"""Reads Airflow's task logs, which hold one JSON object a line."""

from __future__ import annotations

import json
from pathlib import Path

# Commands with all their settings are longer than anybody reads on a terminal.
_LINE_CHARACTERS = 400


def readable_tail(log: Path, lines: int = 40) -> str:
    """Return the last lines of a task's log as plain text; says so if there is no log."""
    if not log.exists():
        return f"(no log at {log})"
    return "\n".join(
        _plain(line)[:_LINE_CHARACTERS] for line in log.read_text(errors="replace").splitlines()[-lines:]
    )


def _plain(line: str) -> str:
    try:
        record = json.loads(line)
    except ValueError:
        return line
    if not isinstance(record, dict):
        return line
    errors = [
        f"{error.get('exc_type')}: {error.get('exc_value')}" for error in record.get("error_detail") or []
    ]
    return " ".join([str(record.get("event", line)), *errors])
