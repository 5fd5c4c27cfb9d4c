"""Findings of the linter, for people."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

from headwater.definitions.finding import Finding, Severity

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold cyan"}


def show_findings(findings: Sequence[Finding], silenced: int) -> None:
    """Print each finding with its place and what to do, then how many there are of each severity."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for one in findings:
        head = Text(f"{one.severity} {one.code}", style=_STYLES[one.severity])
        head.append(f"  {one.dataset or ''}", style="bold")
        console.print(head, soft_wrap=True)
        lines = [one.message, f"where: {one.where}" if one.where else "", f"what to do: {one.remedy}", f"to silence: {one.silence}"]  # fmt: skip
        for line in filter(None, lines):
            # Rich cuts a padded text at the width that it takes a pipe to have.
            console.print(Text(indent(line, "  ")), soft_wrap=True)
    print(summary(findings, silenced))


def summary(findings: Sequence[Finding], silenced: int) -> str:
    """How many findings there are, as a sentence."""
    counts = {severity: sum(one.severity is severity for one in findings) for severity in Severity}
    parts = [f"{n} {s}{'s' if n != 1 and s is not Severity.INFO else ''}" for s, n in counts.items() if n]
    text = ", ".join(parts) or "nothing"
    return f"The linter found {text}" + (f"; {silenced} silenced." if silenced else ".")
