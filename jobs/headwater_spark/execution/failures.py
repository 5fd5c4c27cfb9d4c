"""From what Spark throws to an error that says what happened and whether a retry helps."""

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
# What a Python worker of a source of ours may raise, and what to do about it: the first sentence, unless it names another.
_OF_WORKERS: dict[type[HeadwaterError], tuple[str, ...]] = {
    SourcePositionLost: (
        "What was not read yet is gone. --reset-checkpoint FLOW goes on from where the options of the read say, and rows may double.",
    ),
    SourceUnreachable: ("Under Airflow it is tried again; by hand, run the update again.",),
    SourceAccessDenied: ("Check the keys or the role that the read uses, and its region and endpoint.",),
    SourceNotFound: ("Check the names in the options of the read, and whose account it uses.",),
    FlowFailed: (
        "Correct the cause and run the update again; it goes on from where it stood.",
        NOT_AGGREGATED,
    ),
}


def flow_error(flow: Flow, error: BaseException, labels: frozenset[str] = frozenset()) -> HeadwaterError:
    """The error of a flow: typed, with the root cause as text, without the JVM's stack traces or any secret.

    ``labels``: the files of the sources: where one of their lines raised the error, that line is named.
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
    text = redact_text(_root(messages) or describe(error))
    if (file := damaged_file(messages)) is not None:
        text = f"{file} can't be read: {text}"
    if isinstance(error, Py4JNetworkError) or shows(causes, PASSING):
        return FlowInterrupted(
            f"Flow '{flow.name}' was interrupted: {text}",
            where=line,
            remedy="Under Airflow it is tried again; by hand, run the update again. It goes on from where it stood.",
        )
    hint = hint_for(causes) or "Correct the cause and run the update again; it goes on from where it stood."
    return FlowFailed(f"Flow '{flow.name}' failed: {text}", where=line, remedy=hint)


def _raised_in_worker(cause: Cause) -> HeadwaterError | None:
    """The error of ours that a Python worker of Spark raised: the class decides what is done about it, no text."""
    ending = worker_traceback(cause)
    found = _RAISED.fullmatch(ending) if ending is not None else None
    if found is None:
        return None
    kind = next((kind for kind in _OF_WORKERS if kind.__name__ == found["kind"]), None)
    if kind is None or kind.condition != found["condition"]:
        return None
    remedies = _OF_WORKERS[kind]
    remedy = next((one for one in remedies[1:] if f"\n  what to do: {one}\n" in cause.message), remedies[0])
    return kind(redact_text(found["what"]), remedy=remedy)


def causes_of_error(error: BaseException) -> tuple[Cause, ...]:
    """The exceptions of the chain that an error is."""
    return causes_of(cause_messages(error))


def cause_messages(error: BaseException) -> list[str]:
    """What an error and its causes in the JVM say, outermost first, each behind its class: ``Class: message``."""
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
        pass  # the JVM is gone; what is known is said
    return messages


def _root(messages: list[str]) -> str:
    # The innermost cause that says something; wrappers only repeat that a task or a query failed.
    for message in reversed(messages):
        head = message.split("Driver stacktrace")[0].strip()
        if head and ":" in head:
            return head if len(head) < 2000 else head[:2000] + " ..."
    return messages[-1] if messages else ""
