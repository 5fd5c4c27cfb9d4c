"""The last line of a driver with ``--json``: what programs under ``jobs/`` write, and what Airflow reads.

Decision 0139.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from headwater.errors import HeadwaterError


class ReportedError(BaseModel):
    """An error as a report has it. ``transient``: another try may not meet it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    condition: str
    message: str
    where: str = ""
    remedy: str = ""
    transient: bool = False
    help: str = ""

    @classmethod
    def of(cls, error: HeadwaterError) -> ReportedError:
        """The report of an error."""
        return cls.model_validate(error.as_dict())

    def __str__(self) -> str:
        """As people read it."""
        labels = (("where", self.where), ("what to do", self.remedy), ("more", self.help))
        return "\n".join(
            [f"[{self.condition}] {self.message}", *(f"  {name}: {text}" for name, text in labels if text)]
        )


class ReportedFlow(BaseModel):
    """What is read of a flow (or of a table of a backfill); what else is reported of it is for people."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    flow: str = ""
    state: str = ""
    error: ReportedError | None = None


class DriverReport(BaseModel):
    """Any driver's report (of an update, a backfill, maintenance), as far as success is decided by it.

    ``error``: what ended it, where that was more than the errors of its flows.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    state: str = ""
    flows: tuple[ReportedFlow, ...] = ()
    error: ReportedError | None = None


def read_report(content: Mapping[str, Any] | None) -> DriverReport | None:
    """A driver's last line; None where there is none, or it is of another form."""
    if content is None:
        return None
    try:
        return DriverReport.model_validate(content)
    except ValidationError:
        return None
