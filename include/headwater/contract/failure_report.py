"""How every program of ours ends: the error message, the last JSON line, the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress

from headwater.checkpoints.conditions import StorageNotReadable
from headwater.checkpoints.rights import denied
from headwater.contract.driver_report import ReportedError
from headwater.contract.logs import configure_logging, show_error
from headwater.contract.printing import prepare_streams, print_json
from headwater.errors import HeadwaterError
from headwater.event_log.redaction import quoted

DEBUG = "HEADWATER_DEBUG"
_STATES = {2: "INVALID", 3: "REFUSED"}


def run_and_report(action: Callable[[], int], *, as_json: bool) -> int:
    """Set up the log, run ``action`` and return its exit code; errors go to standard error, and with JSON to the last line too.

    Codes: what ``action`` returns; an error's own (1 failed, 2 wrong use or invalid, 3 refused for safety).
    """
    prepare_streams()
    try:
        configure_logging()
        return action()
    except HeadwaterError as error:
        show_error(ReportedError.of(error), trace=bool(os.environ.get(DEBUG)))
        return _end(error.exit_code, ReportedError.of(error), as_json=as_json)
    except (PermissionError, NotADirectoryError, IsADirectoryError) as error:
        reported = ReportedError.of(denied(error))
        show_error(reported, trace=bool(os.environ.get(DEBUG)))
        return _end(StorageNotReadable.exit_code, reported, as_json=as_json)
    except KeyboardInterrupt:
        show_error("Interrupted.")
        return _end(
            1,
            ReportedError(condition="INTERRUPTED", message="Interrupted.", transient=True),
            as_json=as_json,
        )
    except BrokenPipeError:
        # Whoever read our output has seen enough (`| head`); Python would complain once more while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        what = f"Unexpected {quoted(error)}"
        remedy = f"Run it again with {DEBUG}=1 in the environment to see where it came from."
        show_error(f"{what}\n  what to do: {remedy}", trace=bool(os.environ.get(DEBUG)))
        return _end(1, ReportedError(condition="UNEXPECTED", message=what, remedy=remedy), as_json=as_json)


def _end(code: int, error: ReportedError, *, as_json: bool) -> int:
    if as_json:
        state = _STATES.get(code, "FAILED")
        with suppress(OSError):  # where nobody can read it, standard error has said why
            print_json({"update_id": None, "state": state, "flows": [], "error": error.model_dump()})
    return code
