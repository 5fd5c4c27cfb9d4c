"""What is wrong where a view is to be refreshed incrementally, and can't be."""

from __future__ import annotations

from headwater.errors import FlowFailed, InvalidPipeline
from headwater.incremental.techniques import Issue, RefreshPolicy


class NotIncrementalizable(FlowFailed):
    """A view whose policy is incremental_strict can't be refreshed incrementally this time; it was left as it was."""

    condition = "VIEW_NOT_REFRESHED_INCREMENTALLY"

    @classmethod
    def of(cls, view: str, policy: RefreshPolicy, issue: Issue) -> NotIncrementalizable:
        """The error for a view and the reason."""
        return cls(
            f"The view {view!r} was not refreshed: its refresh policy is {policy.upper().replace('_', ' ')}, and this time "
            f"{issue.reason}. Reason: {issue.name_in_errors}",
            remedy=f"Recompute it once, --full-refresh {view}, or set refresh_policy='incremental', which recomputes it where it has to.",
        )


class NeverIncrementalizable(InvalidPipeline):
    """The refresh policy of a view asks for what its query never allows."""

    condition = "MATERIALIZED_VIEW_NOT_INCREMENTALIZABLE"

    @classmethod
    def of(cls, view: str, policy: RefreshPolicy, issue: Issue, where: object) -> NeverIncrementalizable:
        """The error for a view and the reason."""
        shown = policy.upper().replace("_", " ")
        return cls(
            f"Cannot create the materialized view {view!r} with {shown} refresh policy because it is not supported for "
            f"incremental refresh. Reason: {issue.name_in_errors}: {issue.reason}",
            where=where,
            remedy='Change the query, or set refresh_policy="auto".',
        )
