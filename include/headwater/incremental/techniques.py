"""How a materialized view is refreshed, and why not in another way: Lakeflow's names, and its event's JSON.

Decision 0162.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Technique(StrEnum):
    """What a refresh does to the rows of its view."""

    COMPLETE_RECOMPUTE = "COMPLETE_RECOMPUTE"
    NO_OP = "NO_OP"
    APPEND_ONLY = "APPEND_ONLY"
    GROUP_AGGREGATE = "GROUP_AGGREGATE"
    PARTITION_OVERWRITE = "PARTITION_OVERWRITE"
    GENERIC_AGGREGATE = "GENERIC_AGGREGATE"
    WINDOW_FUNCTION = "WINDOW_FUNCTION"
    ROW_BASED = "ROW_BASED"

    @property
    def maintenance_type(self) -> str:
        """Lakeflow's name in events."""
        return f"MAINTENANCE_TYPE_{self}"

    @property
    def incremental(self) -> bool:
        """Whether it writes, and less than the whole view."""
        return self not in (Technique.COMPLETE_RECOMPUTE, Technique.NO_OP)

    @property
    def meaning(self) -> str:
        """What it does, in a few words."""
        return _MEANING[self]

    @property
    def direct(self) -> bool:
        """Whether it takes new rows in as they come, and looks for no affected keys."""
        return self in (Technique.APPEND_ONLY, Technique.GROUP_AGGREGATE)


_MEANING = {
    Technique.COMPLETE_RECOMPUTE: "the query runs over all rows of its sources, and its result replaces the view",
    Technique.NO_OP: "the view stays as it is",
    Technique.APPEND_ONLY: "the query runs over the new rows alone, and its result is appended to the view",
    Technique.GROUP_AGGREGATE: "the new rows are grouped, and merged into the groups that the view has",
    Technique.PARTITION_OVERWRITE: "the view's partitions that a changed row belongs to are computed again, the others stay",
    Technique.GENERIC_AGGREGATE: "the groups that a changed row belongs to are computed again, the others stay",
    Technique.WINDOW_FUNCTION: "the window partitions that a changed row belongs to are computed again, the others stay",
    Technique.ROW_BASED: "the rows of the view that a changed row leads to are computed again, the others stay",
}


class RefreshPolicy(StrEnum):
    """What the declaration of a view asks for."""

    AUTO = "auto"
    INCREMENTAL = "incremental"
    INCREMENTAL_STRICT = "incremental_strict"
    FULL = "full"

    @property
    def meaning(self) -> str:
        """What it asks for, in a few words."""
        return {
            RefreshPolicy.AUTO: "each refresh takes the way that is expected to be faster",
            RefreshPolicy.INCREMENTAL: "it is refreshed by what changed where that is possible, else recomputed",
            RefreshPolicy.INCREMENTAL_STRICT: "it is refreshed by what changed, and the update fails where that is not possible",
            RefreshPolicy.FULL: "each refresh recomputes it",
        }[self]

    @property
    def promises_increments(self) -> bool:
        """Whether a view of this policy has to be one that can be refreshed by what changed."""
        return self in (RefreshPolicy.INCREMENTAL, RefreshPolicy.INCREMENTAL_STRICT)


class IssueType(StrEnum):
    """Why a refresh is not incremental; Lakeflow's ``issue_type``."""

    CDF_UNAVAILABLE = "CDF_UNAVAILABLE"
    CHANGE_SET_MISSING = "CHANGE_SET_MISSING"
    CONFIGURATION_CHANGED = "CONFIGURATION_CHANGED"
    DATA_FILE_MISSING = "DATA_FILE_MISSING"
    DATA_HAS_CHANGED = "DATA_HAS_CHANGED"
    DATA_SCHEMA_CHANGED = "DATA_SCHEMA_CHANGED"
    DELTA_PROTOCOL_CHANGED = "DELTA_PROTOCOL_CHANGED"
    EXPECTATIONS_NOT_SUPPORTED = "EXPECTATIONS_NOT_SUPPORTED"
    INCREMENTAL_PLAN_REJECTED_BY_COST_MODEL = "INCREMENTAL_PLAN_REJECTED_BY_COST_MODEL"
    INPUT_NOT_IN_DELTA = "INPUT_NOT_IN_DELTA"
    MAP_TYPE_NOT_SUPPORTED = "MAP_TYPE_NOT_SUPPORTED"
    PARTITION_SCHEMA_CHANGED = "PARTITION_SCHEMA_CHANGED"
    PLAN_NOT_DETERMINISTIC = "PLAN_NOT_DETERMINISTIC"
    PLAN_NOT_INCREMENTALIZABLE = "PLAN_NOT_INCREMENTALIZABLE"
    QUERY_FINGERPRINT_CHANGED = "QUERY_FINGERPRINT_CHANGED"
    SERIALIZATION_VERSION_CHANGED = "SERIALIZATION_VERSION_CHANGED"
    TIME_ZONE_CHANGED = "TIME_ZONE_CHANGED"
    TOO_MANY_FILE_ACTIONS = "TOO_MANY_FILE_ACTIONS"


_SUB_TYPE = {
    IssueType.PLAN_NOT_INCREMENTALIZABLE: "plan_not_incrementalizable_sub_type",
    IssueType.PLAN_NOT_DETERMINISTIC: "plan_not_deterministic_sub_type",
    IssueType.INCREMENTAL_PLAN_REJECTED_BY_COST_MODEL: "cost_model_rejection_subtype",
}


# What Lakeflow's error MATERIALIZED_VIEW_NOT_INCREMENTALIZABLE calls what the event log has other names for: by the further name, by the type.
_IN_ERRORS = {
    "NON_DETERMINISTIC_EXPRESSION": "EXPRESSION_NOT_DETERMINISTIC",
    "TIME_FUNCTION": "EXPRESSION_NOT_DETERMINISTIC",
    "USER_DEFINED_FUNCTION": "UDF_NOT_DETERMINISTIC",
    "AGGREGATE_NOT_TOP_NODE": "AGGREGATE_NOT_TOP_NODE",
    "OPERATOR_NOT_SUPPORTED": "OPERATOR_NOT_INCREMENTALIZABLE",
    "SUBQUERY_EXPRESSION": "SUBQUERY_EXPRESSION_NOT_INCREMENTALIZABLE",
    "WINDOW_FUNCTION_WITHOUT_PARTITION_BY": "WINDOW_WITHOUT_PARTITION_BY",
}


@dataclass(frozen=True)
class Issue:
    """One reason against an incremental refresh.

    Args:
        kind: Lakeflow's ``issue_type``.
        reason: a sentence for people, without its full stop.
        sub_type: Lakeflow's further name, where it has one (OPERATOR_NOT_SUPPORTED, TIME_FUNCTION, ...).
        operator: the plan's operator it is about; ``expression``: the expression; ``table``: the source.
        lasting: whether it lies in the query, so that no refresh can ever be incremental.
    """

    kind: IssueType
    reason: str
    sub_type: str | None = None
    operator: str | None = None
    expression: str | None = None
    table: str | None = None
    lasting: bool = False

    @property
    def name(self) -> str:
        """The names that say it: type, and sub-type where there is one."""
        return str(self.kind) if self.sub_type is None else f"{self.kind} ({self.sub_type})"

    @property
    def name_in_errors(self) -> str:
        """The name that Lakeflow's error has for it, with ours behind it where they differ."""
        published = _IN_ERRORS.get(self.sub_type or "", str(self.kind))
        return published if published == self.name else f"{published}, {self.name}"

    def as_dict(self) -> dict[str, Any]:
        """As the event has it."""
        values = {
            "issue_type": str(self.kind),
            "prevent_incrementalization": True,
            "operator_name": self.operator,
            "expression_name": self.expression,
            "table_information": {"table_name": self.table} if self.table else None,
            _SUB_TYPE.get(self.kind, "sub_type"): self.sub_type,
            "reason": self.reason,
        }
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class TableInformation:
    """What is known of a table that a refresh reads or writes. Sizes are bytes; None where they are not known."""

    name: str
    table_id: str | None = None
    change_type: str = "TABLE_CHANGE_TYPE_UNKNOWN"
    full_size: int | None = None
    change_size: int | None = None
    cdf: bool | None = None

    def as_dict(self) -> dict[str, Any]:
        """As the event has it."""
        values = {
            "table_name": self.name,
            "table_id": self.table_id,
            "table_change_type": self.change_type,
            "full_size": self.full_size,
            "change_size": self.change_size,
            "is_cdf_enabled": self.cdf,
        }
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class Planned:
    """What a refresh is going to do.

    Args:
        chosen: the technique.
        issues: why it is not another one.
        other: the technique that would have been possible, where the cost decided against it.
        costs: predicted seconds by technique.
        sources: what is known of the tables that are read.
    """

    chosen: Technique
    issues: tuple[Issue, ...] = ()
    other: Technique | None = None
    costs: Mapping[Technique, float] | None = None
    sources: Sequence[TableInformation] = ()
    note: str = ""

    @property
    def reason(self) -> str:
        """Why, in a sentence without its full stop."""
        return self.note or "; ".join(f"{issue.reason} [{issue.name}]" for issue in self.issues)

    def message(self, flow: str) -> str:
        """The event's message, as Lakeflow words it, with the reason."""
        text = f"Flow '{flow}' has been planned in Headwater to be executed as {self.chosen}."
        if self.other is not None:
            text += (
                f" Another option is available:{self.other}. {self.chosen} was chosen in the current run for its "
                "optimal performance."
            )
        return text + (f" Reason: {self.reason}." if self.reason else "")

    def details(self) -> dict[str, Any]:
        """The event's details."""
        techniques: list[dict[str, Any]] = []
        if self.issues:
            techniques.append({"incrementalization_issues": [issue.as_dict() for issue in self.issues]})
        techniques.append(self._technique(self.chosen, chosen=True))
        if self.other is not None:
            techniques.append(self._technique(self.other, chosen=False))
        elif self.chosen.incremental:
            techniques.append(self._technique(Technique.COMPLETE_RECOMPUTE, chosen=False))
        body: dict[str, Any] = {"technique_information": techniques, "reason": self.reason}
        if self.sources:
            body["source_table_information"] = [source.as_dict() for source in self.sources]
        return {"planning_information": body}

    def _technique(self, technique: Technique, *, chosen: bool) -> dict[str, Any]:
        values: dict[str, Any] = {
            "maintenance_type": technique.maintenance_type,
            "is_chosen": chosen,
            "is_applicable": True,
        }
        cost = (self.costs or {}).get(technique)
        return values if cost is None else {**values, "cost": round(cost, 2)}
