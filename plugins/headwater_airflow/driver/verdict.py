"""Why an update ended badly, and whether a retry can help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.errors import InvalidPipeline, RefusedForSafety
from headwater.event_log.details import UpdateState

_TERMINAL_CODES = (InvalidPipeline.exit_code, RefusedForSafety.exit_code)


@dataclass(frozen=True)
class Failure:
    """What to tell, and whether Airflow should try again. ``silent``: the driver could not say it itself."""

    message: str
    transient: bool
    silent: bool = False


def judge(
    code: int | None, report: Mapping[str, Any] | None, failed_flows: Sequence[Mapping[str, Any]]
) -> Failure:
    """Decide from what is left of a driver.

    Args:
        code: what it ended with (negative or over 128: a signal); None if that is not known.
        report: its last line with ``--json``, if it wrote one.
        failed_flows: the last FAILED record of each flow in the event log, for this request.

    """
    error = (report or {}).get("error")
    if isinstance(error, Mapping):
        return Failure(_told(error), bool(error.get("transient")))
    told = _flows_of_report(report) or _flows_of_log(failed_flows)
    if code in _TERMINAL_CODES:
        refused = "\n".join(message for message, _ in told) or error
        return Failure(
            str(refused or f"The driver refused to run the update (exit code {code})."), transient=False
        )
    if told:
        return Failure("\n".join(message for message, _ in told), all(transient for _, transient in told))
    if report is None:
        return Failure(f"The driver ended without a word ({_ending(code)}).", transient=True, silent=True)
    if report.get("state") == UpdateState.CANCELED:
        return Failure("The update was stopped at a batch boundary; it goes on from there.", transient=True)
    return Failure(str(error or f"The update failed ({_ending(code)})."), transient=False)


def _told(error: Mapping[str, Any]) -> str:
    lines = [f"[{error.get('condition', 'ERROR')}] {error.get('message', '')}"]
    lines += [
        f"  {label}: {error[key]}"
        for label, key in (("where", "where"), ("what to do", "remedy"), ("more", "help"))
        if error.get(key)
    ]
    return "\n".join(lines)


def _flows_of_report(report: Mapping[str, Any] | None) -> list[tuple[str, bool]]:
    found = []
    for flow in (report or {}).get("flows") or ():
        error = flow.get("error")
        if isinstance(error, Mapping):
            found.append((f"{flow.get('flow')}: {_told(error)}", bool(error.get("transient"))))
    return found


def _flows_of_log(records: Sequence[Mapping[str, Any]]) -> list[tuple[str, bool]]:
    found = []
    for record in records:
        error = record.get("error") or {}
        exceptions = error.get("exceptions") or [{"message": record.get("message", "")}]
        found.append(
            (f"{record['origin']['flow_name']}: {exceptions[0]['message']}", error.get("fatal") is False)
        )
    return found


def _ending(code: int | None) -> str:
    if code is None:
        return "it was not started"
    if code < 0:
        return f"killed by signal {-code}"
    return f"killed by signal {code - 128}" if code > 128 else f"exit code {code}"
