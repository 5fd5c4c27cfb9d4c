"""Why an update ended badly, and whether a retry can help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.contract.driver_report import DriverReport, read_report
from headwater.errors import InvalidPipeline, RefusedForSafety
from headwater.event_log.details import UpdateState

_TERMINAL_CODES = (InvalidPipeline.exit_code, RefusedForSafety.exit_code)


@dataclass(frozen=True)
class Failure:
    """The message, and whether Airflow should retry. ``silent``: the driver could not report it itself."""

    message: str
    transient: bool
    silent: bool = False


def judge(
    code: int | None, report: Mapping[str, Any] | None, failed_flows: Sequence[Mapping[str, Any]]
) -> Failure:
    """Decide from what a driver has left behind.

    Args:
        code: what it ended with (negative or over 128: a signal); None if that is not known.
        report: its last line with ``--json`` (a ``DriverReport``), if it wrote one.
        failed_flows: the last FAILED record of each flow in the event log, for this request.

    """
    driver_report = read_report(report)
    if driver_report is not None and (failure := _reported(driver_report)) is not None:
        return failure
    logged = _flows_of_log(failed_flows)
    message = "\n".join(text for text, _ in logged)
    if code in _TERMINAL_CODES:
        return Failure(
            message or f"The driver refused to run the update (exit code {code}).", transient=False
        )
    if logged:
        return Failure(message, all(transient for _, transient in logged))
    if driver_report is None:
        return Failure(f"The driver ended without a report ({_ending(code)}).", transient=True, silent=True)
    if driver_report.state == UpdateState.CANCELED:
        return Failure("The update was stopped at a batch boundary; it goes on from there.", transient=True)
    return Failure(f"The update failed ({_ending(code)}).", transient=False)


def _reported(report: DriverReport) -> Failure | None:
    """What a report's own errors decide, if it has any."""
    if report.error is not None:
        return Failure(str(report.error), report.error.transient)
    failed = [(flow.flow, flow.error) for flow in report.flows if flow.error is not None]
    if not failed:
        return None
    message = "\n".join(f"{name}: {error}" for name, error in failed)
    return Failure(message, all(error.transient for _, error in failed))


def _flows_of_log(records: Sequence[Mapping[str, Any]]) -> list[tuple[str, bool]]:
    failures = []
    for record in records:
        error = record.get("error") or {}
        exceptions = error.get("exceptions") or [{"message": record.get("message", "")}]
        failures.append(
            (f"{record['origin']['flow_name']}: {exceptions[0]['message']}", error.get("fatal") is False)
        )
    return failures


def _ending(code: int | None) -> str:
    if code is None:
        return "it was not started"
    if code < 0:
        return f"killed by signal {-code}"
    return f"killed by signal {code - 128}" if code > 128 else f"exit code {code}"
