"""Spark's exceptions, split into what Spark itself wrote and what may be data.

A message may quote a record, and a record may contain anything: names of exceptions, of conditions, our own marks. Only Spark
decides an exception's class, the condition in brackets at the beginning of its message, and the class after the fixed phrase
with the reason why a job was aborted. Decisions (is it transient, which remedy) rely only on these.

Decision 0138.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# The message of Spark's scheduler; everything before the class is Spark's own text.
_ABORTED = re.compile(
    r"(?:\[[A-Z0-9_.]+\] )?Job aborted due to stage failure: [^\n]{0,200}? most recent failure: Lost task [\d.]+ in stage [\d.]+ "
    r"\(TID \d+\) \([^()\n]*\): (?P<kind>[\w.$]+)(?:: (?P<message>.*))?",
    re.DOTALL,
)
_CAUSE = re.compile(r"(?P<kind>[A-Za-z_]\w*)(?:: (?P<message>.*))?", re.DOTALL)
_CONDITION = re.compile(r"\[(?P<condition>[A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\] ?")
_USER_RAISED = ("", "USER_RAISED_EXCEPTION", "UNKNOWN_FIELDS")
# What Spark writes before the traceback of a worker: only its own text.
_BEFORE_TRACEBACK = re.compile(
    r"(?:Failed when Python streaming data source perform \w+: |An exception was thrown from [\w -]{1,60}: )?\s*Traceback \(most recent call last\):\n(?=  File )"
)


@dataclass(frozen=True)
class Cause:
    """One exception of a chain: its class without the package, and its message."""

    kind: str
    message: str

    @property
    def condition(self) -> str:
        """The condition that the message begins with, empty where it has none."""
        match = _CONDITION.match(self.message)
        return match["condition"] if match is not None else ""

    @property
    def rest(self) -> str:
        """The message after its condition."""
        match = _CONDITION.match(self.message)
        return self.message[match.end() :] if match is not None else self.message


def causes_of(messages: Iterable[str]) -> tuple[Cause, ...]:
    """The exceptions of a chain.

    Args:
        messages: each as ``Class: message``, outermost first, as ``failures.cause_messages`` gives them.

    """
    causes: list[Cause] = []
    for text in messages:
        match = _CAUSE.fullmatch(text)
        if match is None:
            continue
        cause = Cause(match["kind"], match["message"] or "")
        causes.append(cause)
        if (inner := _ABORTED.match(cause.message)) is not None:
            causes.append(Cause(re.split(r"[.$]", inner["kind"])[-1], inner["message"] or ""))
    return tuple(causes)


def marked(causes: Iterable[Cause], mark: str) -> str | None:
    """The text after one of our marks (from ``raise_error``), where a message begins with it; else None."""
    for cause in causes:
        if cause.condition in _USER_RAISED and cause.rest.startswith(mark):
            return cause.rest[len(mark) :]
    return None


def worker_traceback(cause: Cause) -> str | None:
    """The class and message of what a Python worker raised, None where the exception is of another kind.

    Only the first traceback counts: a message may have lines that look like another one.
    """
    if cause.kind != "PythonException" and not cause.condition.startswith("PYTHON_"):
        return None
    start = _BEFORE_TRACEBACK.match(cause.rest)
    if start is None:
        return None
    lines = cause.rest[start.end() :].split("\n")
    return next((line for line in lines if line and not line.startswith(" ")), None)
