"""Whether an incremental refresh is worth it: by the log's sizes, the last full refresh's time, and limits that can be set.

Decision 0165, decision 0171, decision 0199.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median
from typing import Any

from headwater.errors import InvalidSpec
from headwater.incremental.techniques import Issue, IssueType, Technique

PREFIX = "headwater.incremental."
# What a refresh costs that looks for affected keys: log, plan, two or three jobs, commit (measured: 0.7 to 1.2 s).
FIXED_SECONDS = 1.0
# So much of it goes into the look for rows that changed, where no other view of the update has looked.
LOOK_SECONDS = 0.4
# Those that only take new rows in have one job less, and no files to read again.
_DIRECT = {Technique.APPEND_ONLY: 0.4, Technique.GROUP_AGGREGATE: 0.7}
# Below this nothing is gained by any other refresh.
SMALL_SECONDS = 0.8
# What a full refresh of small sources takes by a driver that is warm.
SMALL_FULL_SECONDS = 0.5
# Sources this small are read in no time: what took longer in the first run was the driver's beginning.
SMALL_BYTES = 1_000_000
# Changes of fewer bytes are looked into in no time.
LOOKED_INTO_BYTES = 8_000_000
# It has to be clearly better: predictions err.
ADVANTAGE = 0.8
# So many of the last refreshes of a technique correct what is predicted for it, and not further than this.
KEPT_RUNS = 5
# The full refreshes that are remembered.
KEPT_FULL_RUNS = 3
# What the first of them counts.
FIRST_RUN = 0.6
_CORRECTION = (0.2, 5.0)
# So much of a view is affected where that is not known yet.
UNKNOWN_PART = 0.1
# What reading rows costs of which nothing is made, to rows that are joined, grouped or sorted as well.
SCANNED = 0.25
# With each refresh that did not look for affected keys, less of what was seen last is expected: at some time it looks again.
FADING = 0.8
# Where no full refresh was measured.
BYTES_PER_SECOND = 20_000_000


@dataclass(frozen=True)
class Limits:
    """Limits that pipelines can set, under ``configuration`` in pipeline.yml or as a view's ``spark_conf``.

    Args:
        enabled: False: views are recomputed whole.
        max_changed_share: of a source's bytes; where more changed, the view is recomputed whole.
        max_changed_sources: more changed sources than this, and it is recomputed whole.
        max_keys: more distinct values of a column than this are not named one by one.
        max_changed_reads: where a query reads what changed more often, finding the affected part costs more than the query.
    """

    enabled: bool = True
    max_changed_share: float = 0.25
    max_changed_sources: int = 3
    max_keys: int = 2000
    max_changed_reads: int = 12


_SPELLED = {
    "enabled": "enabled", "max_changed_share": "maxChangedShare",
    "max_changed_sources": "maxChangedSources", "max_keys": "maxKeys",
    "max_changed_reads": "maxChangedReads",
}  # fmt: skip


def limits_from(settings: Mapping[str, str]) -> Limits:
    """The limits that settings name, the others as they are by default.

    Raises:
        InvalidSpec: a setting below ``headwater.incremental.`` that there is not, or a value that it can't have.
    """
    known = {(PREFIX + spelled).lower(): name for name, spelled in _SPELLED.items()}
    limits = Limits()
    types = {part.name: str(part.type) for part in fields(Limits)}
    for key, value in settings.items():
        if not key.lower().startswith(PREFIX):
            continue
        name = known.get(key.lower())
        if name is None:
            allowed = ", ".join(PREFIX + spelled for spelled in _SPELLED.values())
            raise InvalidSpec(f"There is no setting {key}.", where=key, remedy=f"There are {allowed}.")
        change: dict[str, Any] = {name: _value(key, str(value), types[name])}
        limits = replace(limits, **change)
    return limits


def _value(key: str, text: str, kind: str) -> bool | float | int:
    plain = text.strip().lower()
    if kind == "bool":
        if plain in ("true", "false"):
            return plain == "true"
    else:
        try:
            number = float(plain) if kind == "float" else int(plain)
        except ValueError:
            number = -1
        if number > 0 and (kind != "float" or number <= 1):
            return number
    wanted = {"bool": "true or false", "float": "a number above 0 and up to 1"}.get(
        kind, "a whole number above 0"
    )
    raise InvalidSpec(f"{key} is {text!r}.", where=key, remedy=f"Give {wanted}.")


@dataclass(frozen=True)
class SourceSize:
    """A source that changed: bytes in all, and in the files that changed."""

    name: str
    full_bytes: int
    changed_bytes: int

    @property
    def share(self) -> float:
        """The part that changed."""
        return min(1.0, self.changed_bytes / self.full_bytes) if self.full_bytes else 1.0


@dataclass(frozen=True)
class Effort:
    """What the refresh of a part moves, in bytes.

    Args:
        read: of the files of its sources that may have rows of the part, of ``sources`` in all.
        rewritten: of the view's files that may have rows of it, of ``stored`` in all.
        selected: the part of the rows read that is left when those of other keys are out; 1 where that is not known.
    """

    read: int
    sources: int
    rewritten: int
    stored: int
    selected: float = 1.0

    @property
    def share(self) -> float:
        """Of what recomputing the view moves; what is written counts double, as it takes about twice as long."""
        every = self.sources + 2 * self.stored
        read = self.read * (SCANNED + (1 - SCANNED) * self.selected)
        return min(1.0, (read + 2 * self.rewritten) / every) if every else 1.0


@dataclass(frozen=True)
class Reach:
    """How far changes reached when affected keys were looked for last.

    Args:
        share: of what recomputing the view moves.
        changed: the part of a source that had changed then.
        since: the refreshes since then that did not look.
    """

    share: float
    changed: float
    since: int = 0

    def expected(self, changed: float) -> float:
        """How far changes of this part of a source are likely to reach."""
        smaller = min(1.0, changed / self.changed) if self.changed else 1.0
        return self.share * smaller * FADING**self.since

    @property
    def unseen(self) -> Reach:
        """The same after one more refresh that did not look."""
        return replace(self, since=self.since + 1)


def known_reach(known: Mapping[str, Any], technique: Technique) -> Reach | None:
    """What a flow's state knows of how far changes reach."""
    noted = known.get("reach", {}).get(str(technique))
    return None if noted is None else Reach(float(noted[0]), float(noted[1]), int(noted[2]))


@dataclass(frozen=True)
class FullRun:
    """A full refresh that was measured: how long it took, over how many bytes of sources."""

    seconds: float
    bytes: int

    def at(self, bytes_now: int) -> float:
        """How long it would take over so many bytes, in seconds."""
        return self.seconds * max(1.0, bytes_now / self.bytes)


def full_runs(known: Mapping[str, Any]) -> list[FullRun]:
    """The full refreshes that a flow's state knows of, the last one at the end."""
    pairs = known.get("full_runs") or [(known.get("full_seconds", 0), known.get("full_bytes", 0))]
    runs = [FullRun(float(seconds), int(size)) for seconds, size in pairs]
    return [run for run in runs if run.bytes > 0]


def predicted_full(runs: Sequence[FullRun], bytes_now: int) -> float:
    """How long a full refresh would take, in seconds: what the fastest of the measured ones says.

    A single one was the view's first: of a driver that had just begun, and that made other views beside it.
    """
    if not runs:
        return FIXED_SECONDS / 2 + bytes_now / BYTES_PER_SECOND
    fastest = min(run.at(bytes_now) for run in runs)
    if len(runs) > 1:
        return fastest
    return fastest * FIRST_RUN if bytes_now >= SMALL_BYTES else min(fastest, SMALL_FULL_SECONDS)


def _fixed(technique: Technique | None, *, shared: bool) -> float:
    direct = None if technique is None else _DIRECT.get(technique)
    return direct if direct is not None else FIXED_SECONDS - (LOOK_SECONDS if shared else 0.0)


def predicted_part(full: float, effort: Effort, *, shared: bool = False) -> float:
    """How long the refresh of a part takes whose extent is known, in seconds.

    Args:
        full: what a full one would take.
        shared: whether the changed rows are looked for once for several views.
    """
    return _fixed(None, shared=shared) + full * effort.share


def changed_share(changed: Sequence[SourceSize]) -> float:
    """The part of the source that changed most."""
    return max((source.share for source in changed), default=0.0)


def worth_a_look(limits: Limits, changed: Sequence[SourceSize], full: float) -> bool:
    """Whether rows that changed are compared before the cost is weighed: they may be equal in the columns that a view uses.

    Of a small table, one file that was written anew for another column is all of it.

    Args:
        full: how long a full refresh would take, in seconds.
    """
    few = sum(source.changed_bytes for source in changed) < LOOKED_INTO_BYTES and full >= SMALL_SECONDS
    return few or changed_share(changed) <= limits.max_changed_share


def predicted_incremental(
    full: float,
    changed: Sequence[SourceSize],
    technique: Technique,
    reach: Reach | None = None,
    *,
    shared: bool = False,
) -> float:
    """How long an incremental refresh would take, in seconds, before it is known how far the changes reach.

    Args:
        full: what a full one would take.
        changed: the sources that changed.
        reach: how far changes reached before, where that is known.
        shared: whether the changed rows are looked for once for several views.
    """
    fixed = _fixed(technique, shared=shared)
    part = changed_share(changed) if technique in _DIRECT else expected_part(changed, technique, reach)
    return fixed + full * part


def expected_part(changed: Sequence[SourceSize], technique: Technique, reach: Reach | None) -> float:
    """The part of what a full refresh moves that is affected besides the changes themselves, before it is known."""
    if technique in _DIRECT:
        return 0.0
    share = changed_share(changed)
    # The affected part is read by the view's own query, too.
    return min(1.0, share + UNKNOWN_PART if reach is None else reach.expected(share))


def corrected(predicted: float, runs: Sequence[Sequence[float]]) -> float:
    """A predicted time in seconds, corrected by how the last ones came out.

    Args:
        runs: of the last refreshes by the same technique, what was predicted and what it took, in seconds.
    """
    ratios = [float(took) / float(expected) for expected, took in runs if float(expected) > 0]
    if not ratios:
        return predicted
    low, high = _CORRECTION
    return predicted * min(high, max(low, median(ratios)))


def rejected(limits: Limits, changed: Sequence[SourceSize], full: float, incremental: float) -> Issue | None:
    """Why an incremental refresh is not worth it, None where it is."""

    def because(sub_type: str, reason: str, table: str | None = None) -> Issue:
        return Issue(
            IssueType.INCREMENTAL_PLAN_REJECTED_BY_COST_MODEL, reason, sub_type=sub_type, table=table
        )

    if len(changed) > limits.max_changed_sources:
        return because(
            "NUM_JOINS_THRESHOLD_EXCEEDED",
            f"{len(changed)} sources changed, more than {PREFIX}maxChangedSources={limits.max_changed_sources}",
        )
    if full < SMALL_SECONDS:
        return because(
            "TABLE_SIZE_THRESHOLD_EXCEEDED",
            f"a full refresh takes about {full:.1f} s, and an incremental one hardly less than {SMALL_SECONDS} s",
        )
    for source in changed:
        if source.share > limits.max_changed_share:
            return because(
                "CHANGESET_SIZE_THRESHOLD_EXCEEDED",
                f"{source.share:.0%} of {source.name} lies in files that changed, more than "
                f"{PREFIX}maxChangedShare={limits.max_changed_share}",
                source.name,
            )
    return not_faster(full, incremental)


def not_faster(full: float, incremental: float) -> Issue | None:
    """Why an incremental refresh is not worth it by its time, in seconds; None where it is."""
    if incremental < ADVANTAGE * full:
        return None
    return Issue(
        IssueType.INCREMENTAL_PLAN_REJECTED_BY_COST_MODEL,
        f"it would take about {incremental:.1f} s, and a full refresh {full:.1f} s",
        sub_type="COST_MODEL_REJECTION_SUB_TYPE_UNSPECIFIED",
    )
