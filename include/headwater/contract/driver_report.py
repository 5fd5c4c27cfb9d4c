"""The last line of a driver with ``--json``: what programs under ``jobs/`` write, and what Airflow reads.

Decision 0139.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from headwater.errors import HeadwaterError, InvalidSpec
from headwater.event_log.redaction import redact_text
from headwater.runtime.secret_values import without_known


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
        """The report of an error, without the secrets that it quotes.

        Only in what others said is a value told by the name before it: where `password_env` is wrong, the words behind it are ours.
        """
        ours = isinstance(error, InvalidSpec)
        said = {
            name: without_known(value) if isinstance(value, str) else value
            for name, value in error.as_dict().items()
        }
        return cls.model_validate(said if ours else {**said, "message": redact_text(error.what)})

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


def is_report(content: object) -> bool:
    """Whether a line of JSON that came from a driver is its report: the code of a pipeline prints JSON, too (logs, mostly)."""
    if not isinstance(content, dict) or not isinstance(content.get("state"), str):
        return False
    return any(isinstance(content.get(part), list) for part in ("flows", "steps"))


def read_report(content: Mapping[str, Any] | None) -> DriverReport | None:
    """A driver's last line; None where there is none, or it is of another form."""
    if content is None:
        return None
    try:
        return DriverReport.model_validate(content)
    except ValidationError:
        return None
