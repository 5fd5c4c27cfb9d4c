"""What the next refresh of a view is expected to do, in a sentence for whoever does not know the engine.

Decision 0250.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwater.incremental.techniques import RefreshPolicy, Technique

_ANYWAY = 'With refresh_policy="incremental" it would be refreshed by what changed all the same.'

_EDITED = "The pipeline's files have changed since the last refresh: if the view has another query by that, it is recomputed."


@dataclass(frozen=True)
class NextRefresh:
    """What is known before it begins.

    Args:
        policy: of the view; ``eligible``: whether its query and rules allow a refresh by what changed; ``enabled``: whether settings do.
        replaced_part: the declaration says itself which part of the view is replaced.
        looked_at: it is looked at in each update, since its query may be another one at another time.
        unchanged: no source has changed since the last refresh, as far as is known.
        against: why what has changed can't be followed this time; None where it can. ``begins``: the view begins anew by it, under each policy.
        technique: by which what changed would be followed; ``seconds``: how long that is expected to take, ``full``: a full refresh.
        rejected: why the cost is against it; None where it is not.
        edited: the pipeline's files have changed since the last refresh.
        fed: the sources that an update brings up to date before the view; ``unknown``: those that no log tells of.
    """

    policy: RefreshPolicy
    eligible: bool
    enabled: bool = True
    replaced_part: bool = False
    looked_at: bool = False
    unchanged: bool = False
    against: str | None = None
    begins: bool = False
    technique: str | None = None
    seconds: float = 0.0
    full: float = 0.0
    rejected: str | None = None
    edited: bool = False
    fed: Sequence[str] = ()
    unknown: Sequence[str] = ()

    @property
    def text(self) -> str:
        """The technique, and why."""
        return self._planned + (f" {_EDITED}" if self.edited and self.against is None else "")

    @property
    def _planned(self) -> str:  # noqa: PLR0911 - one return a case
        if self.unchanged and self.against is None:
            return self._unchanged
        if self.replaced_part:
            return f"{Technique.PARTITION_OVERWRITE}: replace_where names the part of the view that each refresh recomputes."
        reason = self._recomputed
        if reason is not None and self._fails:
            return f'The update will fail, as refresh_policy="incremental_strict" asks: {reason}.'
        if reason is not None:
            return f"{Technique.COMPLETE_RECOMPUTE}: {reason}."
        if self.unknown:
            sources = ", ".join(self.unknown)
            otherwise = self.technique or Technique.NO_OP
            return f"{Technique.COMPLETE_RECOMPUTE}, if {sources} has changed, else {otherwise}: no log tells that, so the update looks when it begins."
        if self.technique is None:
            return "Not known: no log tells what happened to the sources."
        if self.policy is RefreshPolicy.AUTO and self.rejected is not None:
            return f"{Technique.COMPLETE_RECOMPUTE}: {self.rejected}. {_ANYWAY}"
        slower = self.seconds > self.full and self.policy.promises_increments
        wish = f', but refresh_policy="{self.policy}" asks for this one' if slower else ""
        return (
            f"{self.technique}: it is expected to take about {self.seconds:.1f} s, a full refresh {self.full:.1f} s{wish}. "
            f"{Technique.NO_OP}, if no row that the view uses is another one."
        )

    @property
    def _fails(self) -> bool:
        return (
            self.against is not None and self.policy is RefreshPolicy.INCREMENTAL_STRICT and not self.begins
        )

    @property
    def _recomputed(self) -> str | None:
        """Why what has changed can't be followed, or is not to be."""
        if not self.eligible:
            return "the query or its rules allow nothing else, as said above"
        if self.policy is RefreshPolicy.FULL:
            return 'refresh_policy="full" asks for it'
        if not self.enabled:
            return "headwater.incremental.enabled=false asks for it"
        return self.against

    @property
    def _unchanged(self) -> str:
        if self.looked_at and not self.eligible:
            return f"{Technique.COMPLETE_RECOMPUTE}: its result may be another one at another time, though no source has changed."
        text = f"{Technique.NO_OP}: no source has changed since the last refresh."
        if self.looked_at:
            text = f"{text} It is looked at in each update all the same, since its query may be another one at another time."
        return text + (f" {', '.join(self.fed)} may change before, in the same update." if self.fed else "")
