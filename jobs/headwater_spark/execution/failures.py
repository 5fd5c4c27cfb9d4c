"""Turn what Spark throws into an error that says what happened and whether a retry helps."""

from __future__ import annotations

import re
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from headwater.definitions.flow import Flow
from headwater.errors import (
    ExpectationViolated,
    FlowFailed,
    FlowInterrupted,
    HeadwaterError,
    SourceAccessDenied,
    SourceNotFound,
    SourcePositionLost,
    SourceUnreachable,
)
from headwater.event_log.redaction import redact_text
from headwater.kinesis.connection import NOT_AGGREGATED
from headwater_spark.messages.exception_text import Cause, causes_of, worker_traceback
from headwater_spark.messages.known_exceptions import PASSING, hint_for, shows
from headwater_spark.messages.source_errors import describe, user_location
from headwater_spark.quarantine.unreadable_files import damaged_file
from headwater_spark.rules.expectations import find_violation

_RAISED = re.compile(r"headwater\.errors\.(?P<kind>[A-Z]\w+): \[(?P<condition>[A-Z_]+)\] (?P<what>.+)")
# What a Python worker of our own sources may raise, with the remedies: the first one, unless the message names another.
_OF_WORKERS: dict[type[HeadwaterError], tuple[str, ...]] = {
    SourcePositionLost: (
        "Unread data was deleted. --reset-checkpoint FLOW continues where the options of the read say, and rows may be written twice.",
    ),
    SourceUnreachable: ("Under Airflow it is tried again; by hand, run the update again.",),
    SourceAccessDenied: ("Check the keys or the role that the read uses, and its region and endpoint.",),
    SourceNotFound: ("Check the names in the options of the read, and whose account it uses.",),
    FlowFailed: (
        "Correct the cause and run the update again; it continues from its position.",
        NOT_AGGREGATED,
    ),
}


def flow_error(flow: Flow, error: BaseException, labels: frozenset[str] = frozenset()) -> HeadwaterError:
    """The error of a flow: typed, with the root cause as text, without stack traces of the JVM or secrets.

    ``labels``: the source files; where a line of theirs raised the error, that line is named.
    """
    line = user_location(error.__traceback__, labels) or flow.location
    if isinstance(error, HeadwaterError):
        error.where = error.where or str(line or "")
        return error
    messages = cause_messages(error)
    causes = causes_of(messages)
    violation = find_violation(causes)
    if violation is not None:
        rules = ", ".join(f"'{rule}'" for rule in violation.rules)
        return ExpectationViolated(
            f"[EXPECTATION_VIOLATION.VERBOSITY_ALL] Flow '{flow.name}' failed to meet the expectation. Violated expectations: {rules}. "
            f"Input data: '{redact_text(violation.input or '')}'. Output record: '{redact_text(violation.record)}'. "
            f"Missing input data: {str(violation.input is None).lower()}",
            where=line,
            remedy="Correct the row at its source, or drop such rows with expect_or_drop. Nothing of its batch was written.",
        )
    raised = next(filter(None, map(_raised_in_worker, causes)), None)
    if raised is not None:
        raised.where = str(line or "")
        return raised
    # The parser's messages begin with an empty line, and tables show the first line alone.
    text = re.sub(r"\A([\w.$]+:)\s+", r"\1 ", redact_text(_root(messages) or describe(error)))
    if (file := damaged_file(messages)) is not None:
        text = f"{file} can't be read: {text}"
    if isinstance(error, Py4JNetworkError) or shows(causes, PASSING):
        return FlowInterrupted(
            f"Flow '{flow.name}' was interrupted: {text}",
            where=line,
            remedy="Under Airflow it is tried again; by hand, run the update again. It continues from its position.",
        )
    hint = hint_for(causes) or "Correct the cause and run the update again; it continues from its position."
    return FlowFailed(f"Flow '{flow.name}' failed: {text}", where=line, remedy=hint)


def _raised_in_worker(cause: Cause) -> HeadwaterError | None:
    """The error of ours that a Python worker of Spark raised, known by its class."""
    ending = worker_traceback(cause)
    raised = _RAISED.fullmatch(ending) if ending is not None else None
    if raised is None:
        return None
    kind = next((kind for kind in _OF_WORKERS if kind.__name__ == raised["kind"]), None)
    if kind is None or kind.condition != raised["condition"]:
        return None
    remedies = _OF_WORKERS[kind]
    remedy = next(
        (each for each in remedies[1:] if f"\n  what to do: {each}\n" in cause.message), remedies[0]
    )
    return kind(redact_text(raised["what"]), remedy=remedy)


def causes_of_error(error: BaseException) -> tuple[Cause, ...]:
    """The exceptions in an error's chain."""
    return causes_of(cause_messages(error))


def cause_messages(error: BaseException) -> list[str]:
    """The messages of an error and its causes in the JVM, outermost first, each with its class: ``Class: message``."""
    messages = [f"{type(error).__name__}: {str(error).split(chr(10) * 2 + 'JVM stacktrace')[0]}"]
    if isinstance(error, PySparkException | Py4JJavaError):
        origin = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
        messages += _java_messages(origin)
    return messages


def _java_messages(throwable: Any) -> list[str]:
    messages: list[str] = []
    try:
        while throwable is not None and len(messages) < 20:
            message = throwable.getMessage()
            name = str(throwable.getClass().getSimpleName())
            messages.append(f"{name}: {message}" if message else name)
            throwable = throwable.getCause()
    except Py4JError:
        pass  # the JVM has ended; the messages so far are used
    return messages


def _root(messages: list[str]) -> str:
    # The innermost cause that says something; wrappers only repeat that a task or a query failed.
    for message in reversed(messages):
        head = message.split("Driver stacktrace")[0].strip()
        if head and ":" in head:
            return head if len(head) < 2000 else head[:2000] + " ..."
    return messages[-1] if messages else ""
