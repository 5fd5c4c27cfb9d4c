"""Tables for people, JSON lines for programs."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

# Where answers go that must stand alone; None: standard output.
_alone: TextIO | None = None


def print_json(value: Mapping[str, Any]) -> None:
    """Print one line of JSON, the last of standard output; its signs are escaped where the output's encoding has not all of them."""
    output = _alone or sys.stdout
    text = json.dumps(value, ensure_ascii=False, default=_plain)
    try:
        text.encode(output.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, default=_plain)
    print(text, file=output, flush=True)


def json_alone() -> None:
    """Leave standard output to ``print_json``: what else is printed from now on, by this process or its children, goes to standard error.

    It is for processes of our own: it turns the stream itself, which all libraries share.
    """
    global _alone
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    _alone = open(kept, "w", encoding=sys.stdout.encoding, errors="backslashreplace")  # noqa: PTH123, SIM115 - as long as the process


def prepare_streams() -> None:
    """Make the standard streams such that every command can use them.

    What the encoding of standard output lacks is escaped, as standard error does by itself. A stream that is closed leads nowhere: else
    the next file that is opened would have its number, and get what Java prints.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the process
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the process
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, row_styles: Sequence[str] = ()
) -> None:
    """Print a table, or one line where it has no rows; numbers stand to the right, None is left empty."""
    if not rows:
        print(f"{title}: none", flush=True)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", title_style="bold", row_styles=None)
    for index, name in enumerate(columns):
        numeric = any(isinstance(row[index], int | float) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for number, row in enumerate(rows):
        style = row_styles[number] if number < len(row_styles) else ""
        # Text, not markup: square brackets in names and messages are meant as they are.
        table.add_row(*(Text(_shown(value)) for value in row), style=style)
    Console(width=None if _on_terminal() else 200).print(table)


def _on_terminal() -> bool:
    return sys.stdout.isatty()


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
