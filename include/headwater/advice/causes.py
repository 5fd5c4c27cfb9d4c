"""Why batches take as long as they do, from the parts of their time, the work of executors and the state."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from enum import StrEnum

from headwater.advice.facts import BatchFact, FlowFact, PipelineFacts
from headwater.advice.finding import Place, Remedy, Setting
from headwater.contract.quantities import size

_LISTING = ("latestOffset", "getBatch", "getOffset")
_LOG = ("walCommit", "commitOffsets", "commitBatch")
_WHOLE = "triggerExecution"
_BUSY = 0.6
_SHARE = 0.4


class Cause(StrEnum):
    """What takes the time of a batch."""

    COMPUTE = "the executors are busy"
    STATE = "the state is read and written"
    LISTING = "the source is asked what is new"
    LOG = "the checkpoint is written"
    PLANNING = "the query is planned"
    FIXED = "starting tasks and committing, whatever the number of rows"
    UNKNOWN = "not known"


def cause_of(flow: FlowFact, cores: int | None) -> Cause:
    """The cause that takes most of the time of the newest batches."""
    batches = flow.working[-5:]
    seconds = _median(batch.seconds for batch in batches)
    if not seconds:
        return Cause.UNKNOWN
    for cause, names in ((Cause.LISTING, _LISTING), (Cause.LOG, _LOG), (Cause.PLANNING, ("queryPlanning",))):
        if phase_seconds(batches, names) > _SHARE * seconds:
            return cause
    if not phase_seconds(batches, ("addBatch",)):
        return Cause.UNKNOWN
    work = _median(batch.executor_seconds for batch in batches)
    if work is not None and work >= _BUSY * seconds * (cores or 1):
        return Cause.STATE if any(batch.state_rows >= 100_000 for batch in batches) else Cause.COMPUTE
    return Cause.FIXED if work is not None else Cause.UNKNOWN


def evidence_of(flow: FlowFact, cores: int | None) -> tuple[str, ...]:
    """The numbers behind the cause, a sentence each."""
    batches = flow.working[-5:]
    parts = {
        name: phase_seconds(batches, (name,)) for batch in batches for name in batch.phases if name != _WHOLE
    }
    longest = sorted(parts.items(), key=lambda part: (-part[1], part[0]))[:3]
    lines = []
    if longest:
        shown = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in longest)
        lines.append(f"parts of a batch (median): {shown}; {cause_of(flow, cores).value}")
    work = _median(batch.executor_seconds for batch in batches)
    if work is not None:
        on = f" on {cores} cores" if cores else ""
        lines.append(f"tasks worked {work:.2f} s a batch{on}")
    if batches and batches[-1].states:
        lines.append(f"state: {batches[-1].state_rows:,} rows, {size(batches[-1].state_bytes)}")
    return tuple(lines)


def remedies_of(cause: Cause, facts: PipelineFacts) -> tuple[Remedy, ...]:
    """What to do about a cause, apart from limits and intervals."""
    if cause in (Cause.COMPUTE, Cause.STATE):
        if facts.cores is not None:
            setting = Setting(Place.SPEC, f'spark: {{spark.master: "local[{2 * facts.cores}]"}}')
            return (Remedy("Give the driver more cores", "the machine must have them", (setting,)),)
        setting = Setting(Place.SPEC, 'spark: {spark.executor.instances: "4"}')
        return (Remedy("Give the update more workers", "their machines", (setting,)),)
    if cause is Cause.LISTING:
        return (
            Remedy(
                "Move files that were read out of the folder: read it by cloudFiles, which can do that",
                "the files are elsewhere then",
                (Setting(Place.READ, '.option("cloudFiles.cleanSource", "MOVE").option("cloudFiles.cleanSource.moveDestination", "read")'),),
            ),
        )  # fmt: skip
    return ()


def phase_seconds(batches: Sequence[BatchFact], names: Sequence[str]) -> float:
    """The median seconds that some parts of a batch take together."""
    return _median(sum(batch.phases.get(name, 0.0) for name in names) for batch in batches) or 0.0


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
