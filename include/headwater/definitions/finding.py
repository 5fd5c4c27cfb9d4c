"""What `validate` reports about a pipeline that can be run: the linter's rules, by their codes, and findings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headwater.definitions.source_location import SourceLocation


class Severity(StrEnum):
    """How bad a finding is: an error will fail (or lose data), a warning may in time, an info is good to know."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True)
class LintRule:
    """A rule of the linter. Its code never changes its meaning; docs/linter.md has a section on each."""

    code: str
    severity: Severity
    title: str


LINT_RULES = {
    rule.code: rule
    for rule in (
        LintRule("HW001", Severity.WARNING, "An ignore comment without a known code"),
        LintRule("HW002", Severity.INFO, "An ignore comment that silences nothing"),
        LintRule("HW101", Severity.WARNING, "A streaming aggregation without a watermark"),
        LintRule("HW102", Severity.WARNING, "A join of two streams that forgets nothing"),
        LintRule("HW103", Severity.WARNING, "A streaming deduplication without a bound"),
        LintRule("HW104", Severity.WARNING, "State of a function of your own without a timeout"),
        LintRule("HW105", Severity.ERROR, "An operation that streams do not have"),
        LintRule("HW106", Severity.WARNING, "A cache that nothing releases"),
        LintRule("HW107", Severity.INFO, "Shuffle partitions set in a source"),
        LintRule("HW108", Severity.INFO, "A watermark that nothing uses"),
        LintRule("HW201", Severity.ERROR, "A stream from a table whose rows are replaced"),
        LintRule("HW202", Severity.WARNING, "A stream from a table that gets updates or deletes"),
        LintRule("HW203", Severity.WARNING, "A read of a table that the pipeline no longer fills"),
        LintRule(
            "HW301", Severity.WARNING, "A log kept for less time than the schedule leaves between updates"
        ),
        LintRule(
            "HW302", Severity.WARNING, "Old files kept for less time than the schedule leaves between updates"
        ),
        LintRule("HW401", Severity.WARNING, "A key that differs from run to run"),
        LintRule("HW402", Severity.ERROR, "Two columns with one name"),
        LintRule("HW403", Severity.WARNING, "A variable that has changed since the definition"),
        LintRule("HW404", Severity.WARNING, "A transaction id that stays when batches begin anew"),
        LintRule("HW501", Severity.INFO, "A first load without a limit"),
        LintRule("HW601", Severity.INFO, "A setting without effect here"),
        LintRule("HW602", Severity.INFO, "Rules of a view that a batch reads are not counted"),
        LintRule("HW603", Severity.INFO, "What became of a setting of Lakeflow"),
        LintRule("HW604", Severity.ERROR, "Real-time mode in updates that end"),
        LintRule("HW605", Severity.WARNING, "A setting that is almost one of Spark's"),
        LintRule("HW606", Severity.WARNING, "A z-order by a column that the table does not have"),
        LintRule("HW701", Severity.WARNING, "A table that a named reader can't read"),
    )
}

# Errors of the resolution that are findings as well.
CODE_OF_CONDITION = {
    "UNSUPPORTED_STREAM_OPERATION": "HW105",
    "STREAMING_READ_OF_MATERIALIZED_VIEW": "HW201",
    "DUPLICATE_COLUMN": "HW402",
}


@dataclass(frozen=True)
class Finding:
    """Something about one definition of a pipeline.

    Attributes:
        code: of the rule.
        severity: how bad it is.
        message: what was found.
        remedy: what to do.
        where: the user's line, None where it is nowhere in a source.
        dataset: the dataset that it is about, if any.

    """

    code: str
    severity: Severity
    message: str
    remedy: str
    where: SourceLocation | None = None
    dataset: str | None = None

    @property
    def silence(self) -> str:
        """How to say that it is meant."""
        if self.where is None:
            return f"`lint: {{ignore: [{self.code}]}}` in pipeline.yml"
        mark = "--" if self.where.in_sql else "#"
        return f"`{mark} headwater: ignore[{self.code}]` in the definition, with the reason"

    def as_dict(self) -> dict[str, object]:
        """The finding as plain values."""
        return {
            "code": self.code,
            "severity": str(self.severity),
            "dataset": self.dataset,
            "message": self.message,
            "where": str(self.where) if self.where else "",
            "remedy": self.remedy,
            "silence": self.silence,
        }


def finding(
    code: str, message: str, remedy: str, where: SourceLocation | None = None, dataset: str | None = None
) -> Finding:
    """A finding with its rule's severity."""
    return Finding(code, LINT_RULES[code].severity, message, remedy, where, dataset)
