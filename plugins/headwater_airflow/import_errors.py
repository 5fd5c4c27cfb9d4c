"""Import errors of parts of a DAG file, beside the DAGs of its other parts.

A DAG file that raises has no DAGs. A DAG that is refused later, while the file's DAGs are collected, is recorded under the
file's own name, and Airflow then takes all DAGs of that file off the schedule. An import error under another name has no such
effect. Only the result of the import that is under way can take one, and Airflow hands it to nobody: it is looked up in the frames of the callers.

Decision 0167.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from types import FrameType

from airflow.dag_processing.importers import DagImportError, DagImportResult

_log = logging.getLogger(__name__)


def record_import_errors(errors: Mapping[str, str]) -> None:
    """Make import errors of the DAG file that is being imported; outside of an import they only go to the log.

    Args:
        errors: the message of each, by a name, which stands behind that of the file.

    """
    result = _result_under_way()
    for name, message in errors.items():
        _log.error("The DAGs of %s can't be made: %s", name, message)
        if result is not None:
            result.errors.append(DagImportError(f"{result.file_path} ({name})", message))


def _result_under_way() -> DagImportResult | None:
    return next(
        (
            value
            for frame in _callers()
            for value in frame.f_locals.values()
            if isinstance(value, DagImportResult)
        ),
        None,
    )


def _callers() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
    while frame is not None:
        yield frame
        frame = frame.f_back
