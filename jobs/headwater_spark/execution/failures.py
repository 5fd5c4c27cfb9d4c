"""From what Spark throws to an error that says what happened and whether a retry helps."""

from __future__ import annotations

import re
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from headwater import errors
from headwater.definitions.flow import Flow
from headwater.errors import ExpectationViolated, FlowFailed, FlowInterrupted, HeadwaterError
from headwater.event_log.redaction import redact_text
from headwater_spark.messages.hints import hint_for
from headwater_spark.messages.source_errors import describe, user_location
from headwater_spark.quarantine.unreadable_files import damaged_file
from headwater_spark.rules.expectations import find_violation

_TRANSIENT = re.compile(
    r"TimeoutException|ConnectException|Connection refused|UnknownHostException|SocketException|NoRouteToHost"
    r"|ExecutorLost|SparkOutOfMemory|BrokerNotAvailable|DisconnectException|LEADER_NOT_AVAILABLE"
    r"|DELTA_CONCURRENT|DELTA_METADATA_CHANGED|CONCURRENT_STREAM_LOG_UPDATE|No space left|InterruptedException|NoBrokersAvailable"
)


_RAISED = re.compile(
    r"^headwater\.errors\.(?P<kind>[A-Z]\w+): \[[A-Z_]+\] (?P<what>[^\n]+)(?:\n  what to do: (?P<remedy>[^\n]+))?",
    re.MULTILINE,
)


def flow_error(flow: Flow, error: BaseException, labels: frozenset[str] = frozenset()) -> HeadwaterError:
    """The error of a flow: typed, with the root cause as text, without the JVM's stack traces or any secret.

    ``labels``: the files of the sources: where one of their lines raised the error, that line is named.
    """
    line = user_location(error.__traceback__, labels) or flow.location
    if isinstance(error, HeadwaterError):
        error.where = error.where or str(line or "")
        return error
    messages = cause_messages(error)
    violation = next((found for text in messages if (found := find_violation(text)) is not None), None)
    if violation is not None:
        rules = ", ".join(f"'{rule}'" for rule in violation.rules)
        return ExpectationViolated(
            f"[EXPECTATION_VIOLATION.VERBOSITY_ALL] Flow '{flow.name}' failed to meet the expectation. Violated expectations: {rules}. "
            f"Input data: '{redact_text(violation.input or '')}'. Output record: '{redact_text(violation.record)}'. "
            f"Missing input data: {str(violation.input is None).lower()}",
            where=line,
            remedy="Correct the row at its source, or drop such rows with expect_or_drop. Nothing of its batch was written.",
        )
    raised = next(filter(None, map(_raised_in_worker, messages)), None)
    if raised is not None:
        raised.where = str(line or "")
        return raised
    text = redact_text(_root(messages) or describe(error))
    if (file := damaged_file(messages)) is not None:
        text = f"{file} can't be read: {text}"
    whole = "\n".join(messages) or text
    if isinstance(error, Py4JNetworkError) or _TRANSIENT.search(whole):
        return FlowInterrupted(
            f"Flow '{flow.name}' was interrupted: {text}",
            where=line,
            remedy="Under Airflow it is tried again; by hand, run the update again. It goes on from where it stood.",
        )
    hint = hint_for(whole) or "Correct the cause and run the update again; it goes on from where it stood."
    return FlowFailed(f"Flow '{flow.name}' failed: {text}", where=line, remedy=hint)


def _raised_in_worker(text: str) -> HeadwaterError | None:
    """The error of ours that a Python worker of Spark raised: its traceback is in the text."""
    found = _RAISED.search(text)
    kind = getattr(errors, found["kind"], None) if found is not None else None
    if found is None or not (isinstance(kind, type) and issubclass(kind, HeadwaterError)):
        return None
    error: HeadwaterError = kind(redact_text(found["what"]), remedy=found["remedy"] or "")
    return error


def passes_by_itself(text: str) -> bool:
    """Whether an error with this text is one that another try may not meet."""
    return _TRANSIENT.search(text) is not None


def cause_messages(error: BaseException) -> list[str]:
    """What an error and its causes in the JVM say, outermost first."""
    messages = [str(error).split("\n\nJVM stacktrace")[0]]
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
