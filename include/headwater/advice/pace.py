"""Rules about lag and the time of batches: backlogs, limits, intervals, uneven batches."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from headwater.advice.causes import Cause, cause_of, evidence_of, remedies_of
from headwater.advice.facts import BatchFact, FlowFact, PipelineFacts, SourceFact
from headwater.advice.finding import Advice, Place, Remedy, Setting
from headwater.advice.limits import BY_BYTES, Limit, countable, limit_of, limit_setting, round_up
from headwater.contract.quantities import age, size
from headwater.definitions.finding import Severity
from headwater.definitions.flow_settings import TRIGGER_INTERVAL
from headwater.definitions.source import SourceKind

# Of a backlog: batches that it takes are no trouble up to here, whatever the limit.
_FEW_BATCHES = 5
_MANY_BATCHES = 20
_SHORT_BATCH = 5.0
# A batch of so many rows is large enough: a limit is not raised further for it.
_ROWS_OF_A_BATCH = 1_000_000
_SKEW = 10
_SKEWED_ROWS = 1000
# Without a schedule nothing says how soon a backlog should be read.
_PATIENCE = 60.0
# Minutes that divide an hour: cron starts over with each.
_EVEN = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)


def slow_against_interval(facts: PipelineFacts) -> Iterator[Advice]:
    """BATCH_OVER_INTERVAL."""
    for flow in facts.flows:
        if flow.interval is None or flow.pace is None or flow.pace <= flow.interval:
            continue
        cause = cause_of(flow, facts.cores)
        enough = 1.5 * _slowest(flow, facts)
        cost = f"rows wait up to {_readable(enough)} for their batch"
        remedies = [Remedy("Look less often", cost, (_interval(flow, facts, enough),))]
        remedies += _lower_limits(flow, flow.interval / flow.pace, cause)
        yield Advice(
            "BATCH_OVER_INTERVAL",
            Severity.WARNING,
            flow.dataset,
            flow.flow,
            "batches take longer than the trigger's interval",
            (
                f"the newest batches took {flow.pace:.2f} s (median), the trigger looks every {_readable(flow.interval)}",
                *evidence_of(flow, facts.cores),
            ),
            (*remedies, *remedies_of(cause, facts)),
        )


def falling_behind(facts: PipelineFacts) -> Iterator[Advice]:
    """LAG_GROWS: each update leaves more, or rows come in faster than they are processed."""
    for flow in facts.flows:
        evidence = _growth(flow)
        waiting = [source for source in flow.sources if any(source.unread.values())]
        if not evidence or not waiting:
            continue
        cause = cause_of(flow, facts.cores)
        remedies = [r for source in waiting for r in _higher_limits(flow, source)]
        remedies += [r for source in waiting for r in _more_partitions(source, facts.cores)]
        remedies += [*remedies_of(cause, facts), *_more_time(facts)]
        unread = "; ".join(_unread(source) for source in waiting)
        yield Advice(
            "LAG_GROWS",
            Severity.WARNING,
            flow.dataset,
            flow.flow,
            "the flow falls further behind its source",
            (*evidence, f"not read yet: {unread}", *evidence_of(flow, facts.cores)),
            tuple(remedies),
        )


def limits_too_low(facts: PipelineFacts) -> Iterator[Advice]:
    """LIMIT_TOO_LOW: what waits takes many batches, or the newest update did."""
    for flow in facts.flows:
        for source in flow.sources:
            limit = limit_of(source)
            needed = _batches_needed(source, limit) if limit else 0
            pace = flow.pace
            evidence: list[str] = []
            if limit and pace and needed >= _FEW_BATCHES and needed * pace > _patience(flow, facts):
                evidence.append(
                    f"{_unread(source)} wait, {limit.option} takes {limit.value:,} a batch: {needed:,} batches of {pace:.2f} s, "
                    f"{age(needed * pace)}"
                )
            elif limit and limit.given and pace and (last := _many_short_batches(flow)):
                evidence.append(
                    f"the newest update took {last} batches of {pace:.2f} s (median); {limit.option} takes {limit.value:,} a batch"
                )
            remedies = [*_higher_limits(flow, source, max(needed, _last_update(flow)))] if evidence else []
            if remedies:
                yield Advice(
                    "LIMIT_TOO_LOW",
                    Severity.WARNING,
                    flow.dataset,
                    flow.flow,
                    "the limit of a batch is low for what its source has",
                    (*evidence, *evidence_of(flow, facts.cores)),
                    (*remedies, *(_more_time(facts) if needed else ())),
                )


def uneven_batches(facts: PipelineFacts) -> Iterator[Advice]:
    """SKEWED_BATCHES."""
    for flow in facts.flows:
        if not is_uneven(flow.batches):
            continue
        rows = [batch.input_rows for batch in flow.working if batch.input_rows]
        usual, most = statistics.median(rows), max(rows)
        largest = next(batch for batch in flow.working if batch.input_rows == most)
        took = f" and took {largest.seconds:.2f} s" if largest.seconds is not None else ""
        remedies = [r for source in flow.sources for r in _evened(source, usual)]
        if remedies:
            yield Advice(
                "SKEWED_BATCHES",
                Severity.WARNING,
                flow.dataset,
                flow.flow,
                "batches differ much in size",
                (
                    f"batch {largest.batch_id} had {most:,} rows{took}; the median of {len(rows)} batches is {usual:,.0f} rows",
                    *(
                        f"files of {source.name}: {_sizes(source)}"
                        for source in flow.sources
                        if source.file_bytes
                    ),
                ),
                tuple(remedies),
            )


def is_uneven(batches: Sequence[BatchFact]) -> bool:
    """Whether one of the batches is large, and has ten times the rows that they usually have."""
    rows = [batch.input_rows for batch in batches if batch.input_rows]
    return len(rows) >= 5 and max(rows) >= max(_SKEWED_ROWS, _SKEW * statistics.median(rows))


def slow_batch(facts: PipelineFacts) -> Iterator[Advice]:
    """SLOW_BATCH: the newest one took much longer than those before, for no more rows."""
    for flow in facts.flows:
        timed = [batch for batch in flow.working if batch.seconds is not None]
        if len(timed) < 6:
            continue
        newest, before = timed[-1], timed[-6:-1]
        usual = statistics.median(batch.seconds or 0.0 for batch in before)
        rows = [batch.input_rows or 0 for batch in before]
        took = newest.seconds or 0.0
        if took < _SHORT_BATCH + usual or took < 3 * usual or (newest.input_rows or 0) > 2 * max(rows):
            continue
        parts = sorted(newest.phases.items(), key=lambda part: -part[1])
        longest = next(((name, s) for name, s in parts if name != "triggerExecution"), None)
        where = (f"longest part: {longest[0]}, {longest[1]:.2f} s",) if longest else ()
        cause = cause_of(flow, facts.cores)
        remedies = remedies_of(cause, facts) or (
            Remedy("See what else the machine does, and the update's log at that time", "nothing", (), (f"headwater events {facts.folder} --flow {flow.flow}",)),
        )  # fmt: skip
        yield Advice(
            "SLOW_BATCH", Severity.INFO, flow.dataset, flow.flow, "the newest batch was much slower than those before",
            (f"batch {newest.batch_id} took {took:.2f} s for {newest.input_rows or 0:,} rows, those before {usual:.2f} s", *where),
            remedies,
        )  # fmt: skip


def _growth(flow: FlowFact) -> tuple[str, ...]:
    lines = []
    left = flow.left_over[-3:]
    if len(left) == 3 and left[0] < left[1] < left[2]:
        lines.append(f"the newest three updates left {left[0]:,}, {left[1]:,} and {left[2]:,} unread")
    pairs = [
        (batch.input_rate, batch.processing_rate) for batch in flow.working[-5:] if batch.input_rate and batch.processing_rate
    ]  # fmt: skip
    if len(pairs) >= 3:
        came, done = (statistics.median(rates) for rates in zip(*pairs, strict=True))
        if came > 1.1 * done:
            lines.append(f"{came:,.0f} rows a second come in, {done:,.0f} are processed (medians)")
    return tuple(lines)


def _higher_limits(flow: FlowFact, source: SourceFact, needed: int = 0) -> Iterator[Remedy]:
    limit = limit_of(source)
    if limit is None:
        return
    needed = needed or _batches_needed(source, limit)
    rows = statistics.median([batch.input_rows or 0 for batch in flow.working[-5:]] or [0])
    bearable = max(2.0, _ROWS_OF_A_BATCH / rows) if rows else float("inf")
    factor = min(math.ceil(needed / 2), bearable, 1000.0)
    if factor <= 1:
        return
    value = round_up(limit.value * factor)
    yield Remedy(
        f"Let a batch take more of {source.name}",
        f"a batch has up to {value / limit.value:,.0f} times the rows: it takes more memory, and a failed one repeats more",
        (limit_setting(source, limit.option, value),),
    )


def _lower_limits(flow: FlowFact, share: float, cause: Cause) -> Iterator[Remedy]:
    if cause in (Cause.FIXED, Cause.PLANNING, Cause.LOG, Cause.LISTING):
        return  # a smaller batch takes as long
    for source in flow.sources:
        limit = limit_of(source)
        if limit and limit.given and limit.value > 1:
            value = max(1, int(limit.value * share * 0.8))
            what, cost = f"Let a batch take less of {source.name}", "a backlog takes more batches"
            yield Remedy(what, cost, (limit_setting(source, limit.option, value),))


def _more_partitions(source: SourceFact, cores: int | None) -> Iterator[Remedy]:
    if (
        source.kind is not SourceKind.KAFKA
        or not cores
        or not source.partitions
        or source.partitions >= cores
    ):
        return
    what = f"Read the {source.partitions} partitions of {source.name} with more tasks"
    setting = Setting(Place.READ, f'.option("minPartitions", {2 * cores})')
    yield Remedy(what, "rows of one partition are spread over tasks", (setting,))


def _more_time(facts: PipelineFacts) -> Iterator[Remedy]:
    if facts.interval is not None and facts.run_for is not None:
        text = f"trigger: {{processing_time: {_readable(facts.interval)}, run_for: {_readable(2 * facts.run_for)}}}"
        yield Remedy("Let an update run longer", "it holds its workers longer", (Setting(Place.SPEC, text),))
    elif facts.schedule_gap is not None and facts.schedule_gap > 60:
        minutes = max((each for each in _EVEN if each <= facts.schedule_gap / 120), default=1)
        cron = f"*/{minutes} * * * *" if facts.schedule_gap < 7200 else "0 * * * *"
        setting = Setting(Place.SPEC, f'airflow: {{schedule: "{cron}"}}')
        yield Remedy("Start updates more often", "each start of Spark takes seconds", (setting,))


def _evened(source: SourceFact, usual_rows: float) -> Iterator[Remedy]:
    cost = "a batch that would have been large becomes several"
    what = f"Bound batches of {source.name} by what they weigh"
    batches = [sum(sizes) for sizes in source.file_bytes if sizes]
    if source.kind is SourceKind.FILES and batches:
        largest = max(size for sizes in source.file_bytes for size in sizes)
        value = max(largest, round(2 * statistics.median(batches)))
        yield Remedy(what, f"{cost}; one file is never cut", (limit_setting(source, BY_BYTES, value),))
    elif source.kind in (SourceKind.DATASET, SourceKind.DELTA) and source.bytes_per_row:
        value = max(1, round(2 * usual_rows * source.bytes_per_row))
        yield Remedy(what, f"{cost}; one file is never cut", (limit_setting(source, BY_BYTES, value),))
    elif source.kind in (SourceKind.KAFKA, SourceKind.KINESIS) and (option := countable(source)):
        yield Remedy(what, cost, (limit_setting(source, option, round_up(2 * usual_rows)),))


def _slowest(flow: FlowFact, facts: PipelineFacts) -> float:
    """The pace of the slowest flow with this flow's interval: what is written for one holds for all of them."""
    same = [other for other in facts.flows if other.interval_place == flow.interval_place == "trigger"]
    return max(other.pace or 0.0 for other in (flow, *same))


def _interval(flow: FlowFact, facts: PipelineFacts, seconds: float) -> Setting:
    text = _readable(seconds)
    if flow.interval_place in ("table_properties", "spark_conf"):
        return Setting(Place.DECORATOR, f'{flow.interval_place}={{"{TRIGGER_INTERVAL}": "{text}"}}')
    if flow.interval_place in ("configuration", "spark"):
        return Setting(Place.SPEC, f'{flow.interval_place}: {{{TRIGGER_INTERVAL}: "{text}"}}')
    run_for = max(facts.run_for or 0.0, 2 * math.ceil(seconds))
    return Setting(Place.SPEC, f"trigger: {{processing_time: {text}, run_for: {_readable(run_for)}}}")


def _batches_needed(source: SourceFact, limit: Limit) -> int:
    return math.ceil(source.unread.get(limit.measure, 0) / limit.value)


def _many_short_batches(flow: FlowFact) -> int:
    """How many batches the newest update took, where they are many and short, and it had an end of its own; else 0."""
    count = _last_update(flow)
    short = flow.pace is not None and flow.pace < _SHORT_BATCH
    return count if flow.interval is None and count >= _MANY_BATCHES and short else 0


def _last_update(flow: FlowFact) -> int:
    return sum(batch.update_id == flow.working[-1].update_id for batch in flow.working) if flow.working else 0


def _patience(flow: FlowFact, facts: PipelineFacts) -> float:
    """How long a backlog may take: until the next look, or the next update."""
    return flow.interval or facts.schedule_gap or _PATIENCE


def _unread(source: SourceFact) -> str:
    parts = [f"{size(n)}" if unit == "bytes" else f"{n:,} {unit}" for unit, n in source.unread.items() if n]
    return f"{', '.join(parts) or 'nothing'} of {source.name}"


def _sizes(source: SourceFact) -> str:
    sizes = [size for batch in source.file_bytes for size in batch]
    return f"{size(min(sizes))} to {size(max(sizes))}, median {size(statistics.median(sizes))}"


def _readable(seconds: float) -> str:
    """A length of time as ``pipeline.yml`` takes it, rounded up to whole seconds from one second on."""
    if seconds < 1:
        return f"{math.ceil(seconds * 10) * 100} milliseconds"
    whole = math.ceil(seconds)
    if whole % 60 == 0:
        minutes = whole // 60
        return f"{minutes} minute{'s' if minutes > 1 else ''}"
    return f"{whole} second{'s' if whole > 1 else ''}"
