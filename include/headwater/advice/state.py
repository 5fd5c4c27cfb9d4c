"""Rules about state: what frees it, and where it lies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from headwater.advice.facts import FlowFact, PipelineFacts
from headwater.advice.finding import Advice, Place, Remedy, Setting
from headwater.contract.quantities import size
from headwater.definitions.finding import Severity

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# State that has gained so much over the batches looked at is growing, and not just settling.
_GROWTH, _ROWS = 1.5, 100
# In the heap of a JVM this much state makes its pauses long.
_HEAP_ROWS, _HEAP_BYTES = 100_000, 64_000_000
_MUCH = 1_000_000_000
# More parts than this for each core run one after the other.
_PARTS_OF_A_CORE, _ROWS_OF_A_PART = 8, 10_000
# Where nothing says how many there are: a small cluster.
_CORES = 8
_KEYS = re.compile(r"(\w+)\((.*?)\)")
_WINDOW = "1 hour"
_DELAY = "10 minutes"
# Columns of a window are not keys of the user's.
_MADE = re.compile(r"window|session", re.IGNORECASE)


def unbounded_state(facts: PipelineFacts) -> Iterator[Advice]:
    """STATE_UNBOUNDED: the state grows from batch to batch and nothing frees it."""
    for flow in facts.flows:
        grown = _growth(flow)
        if grown is None:
            continue
        first, last = grown
        marks = [batch.watermark for batch in flow.working]
        marked = any(mark is not None for mark in marks)
        freed = sum(state.removed for batch in flow.working for state in batch.states)
        if freed or (marked and len({mark for mark in marks if mark is not None}) < 3):
            continue  # a watermark that has not moved yet can't have freed anything
        why = "the watermark frees none of it" if marked else "no watermark frees it"
        operators = ", ".join(dict.fromkeys(s.operator for s in flow.working[-1].states))
        yield Advice(
            "STATE_UNBOUNDED",
            Severity.WARNING,
            flow.dataset,
            flow.flow,
            f"the state grows with each batch, and {why}",
            (
                f"{first:,} rows after batch {flow.working[0].batch_id}, {last:,} after batch {flow.working[-1].batch_id}, none removed",
                f"{size(flow.working[-1].state_bytes)} in memory; operators: {operators}",
                *(f"it keeps: {text}" for text in flow.state_plan),
            ),
            tuple(_bounded(flow, facts)),
        )


def state_in_the_heap(facts: PipelineFacts) -> Iterator[Advice]:
    """STATE_IN_HEAP: much state, kept by the provider that has all of it in the heap."""
    for flow in facts.flows:
        provider = flow.state_settings.get(PROVIDER, "")
        if not flow.working or not provider.endswith("HDFSBackedStateStoreProvider"):
            continue
        newest = flow.working[-1]
        if newest.state_rows < _HEAP_ROWS and newest.state_bytes < _HEAP_BYTES:
            continue
        setting = Setting(
            Place.DECORATOR, f'spark_conf={{"{PROVIDER}": "{_ROCKSDB}"}}', f"the {PROVIDER} that is set"
        )
        yield Advice(
            "STATE_IN_HEAP",
            Severity.WARNING,
            flow.dataset,
            flow.flow,
            "much state lies in the heap of the JVM",
            (
                f"{newest.state_rows:,} rows, {size(newest.state_bytes)}; provider {provider.rpartition('.')[2]}",
            ),
            (
                Remedy(
                    "Keep it in RocksDB (Headwater's default): take the setting away, or write",
                    _REREAD,
                    (setting,),
                    (_refresh(flow, facts),),
                ),
            ),
        )


def large_state(facts: PipelineFacts) -> Iterator[Advice]:
    """STATE_LARGE: a gigabyte or more in few parts."""
    for flow in facts.flows:
        if not flow.working or flow.working[-1].state_bytes < _MUCH:
            continue
        newest = flow.working[-1]
        parts = int(flow.state_settings.get(PARTITIONS) or 0)
        wanted = max(2 * parts, round(newest.state_bytes / 128e6))
        setting = Setting(Place.DECORATOR, f'spark_conf={{"{PARTITIONS}": "{wanted}"}}')
        shorter = f"headwater lateness {facts.folder} {flow.dataset}"
        yield Advice(
            "STATE_LARGE",
            Severity.WARNING,
            flow.dataset,
            flow.flow,
            "the state is large for its number of parts",
            (f"{newest.state_rows:,} rows, {size(newest.state_bytes)} in {parts or 'an unknown number of'} parts",),
            (
                Remedy("Wait less time for late rows: see which delay is enough", "rows that come later than that are left out", (), (shorter,)),
                Remedy("Cut it into more parts", _REREAD, (setting,), (_refresh(flow, facts),)),
            ),
        )  # fmt: skip


def scattered_state(facts: PipelineFacts) -> Iterator[Advice]:
    """STATE_SCATTERED: little state in many parts, each of which is opened and committed with every batch."""
    cores = facts.cores or _CORES
    for flow in facts.flows:
        parts = int(flow.state_settings.get(PARTITIONS) or 0)
        if (
            flow.pace is None
            or parts < _PARTS_OF_A_CORE * cores
            or flow.working[-1].state_rows > _ROWS_OF_A_PART * parts
        ):
            continue
        setting = Setting(Place.DECORATOR, f'spark_conf={{"{PARTITIONS}": "{2 * cores}"}}')
        newest = flow.working[-1]
        yield Advice(
            "STATE_SCATTERED",
            Severity.WARNING,
            flow.dataset,
            flow.flow,
            "little state lies in many parts, which cost time with every batch",
            (
                f"{newest.state_rows:,} rows in {parts} parts on {cores} cores; a batch takes {flow.pace:.2f} s (median)",
            ),
            (Remedy("Cut it into fewer parts", _REREAD, (setting,), (_refresh(flow, facts),)),),
        )


_REREAD = "the table is filled again from all that its source still has"


def _growth(flow: FlowFact) -> tuple[int, int] | None:
    """The rows of state after the first and the last of the newest batches, where they grew all along; else None."""
    rows = [batch.state_rows for batch in flow.working if batch.states]
    if len(rows) < 3 or any(later < earlier for earlier, later in pairwise(rows)):
        return None
    grew = (
        rows[-1] >= _GROWTH * rows[0] and rows[-1] - rows[0] >= _ROWS and rows[-1] > rows[len(rows) // 2 - 1]
    )
    return (rows[0], rows[-1]) if grew else None


def _bounded(flow: FlowFact, facts: PipelineFacts) -> Iterator[Remedy]:
    """How to bound the state of the flow's operators, and how to do without."""
    refresh = (_refresh(flow, facts),)
    time = flow.time_columns[0] if flow.time_columns else "event_time"
    mark = f'.withWatermark("{time}", "{_DELAY}")'
    late = f"rows more than {_DELAY} late are left out"
    known = "" if flow.time_columns else f" (the source has no column of times: make one, here {time})"
    for kind, keys in _operators(flow):
        if kind in ("Deduplicate", "Distinct"):
            names = ", ".join(f'"{key}"' for key in keys)
            text = f"{mark}.dropDuplicatesWithinWatermark([{names}])"
            yield Remedy(
                f"Forget a key when its time has passed{known}",
                f"a duplicate that comes more than {_DELAY} after the first gets through; {_REREAD}",
                (Setting(Place.QUERY, text, "the .dropDuplicates"),),
                refresh,
            )
        elif kind == "Aggregate":
            own = ", ".join(f'"{key}"' for key in keys)
            text = f'{mark}.groupBy(F.window("{time}", "{_WINDOW}"){", " if own else ""}{own})'
            yield Remedy(
                f"Count in windows that end{known}",
                f"a row of the table is a window's, written when it ends, and {late}; {_REREAD}",
                (Setting(Place.QUERY, text, "the .groupBy"),),
                refresh,
            )
        elif kind == "Join":
            text = f"{mark} on both sides, and in the condition AND right.{time} BETWEEN left.{time} AND left.{time} + INTERVAL 10 MINUTES"
            yield Remedy(
                f"Say how far apart partners may lie{known}",
                f"{late}; {_REREAD}",
                (Setting(Place.QUERY, text),),
                refresh,
            )
        else:
            text = 'timeMode="ProcessingTime" with a timer that clears, or "ProcessingTimeTimeout" of applyInPandasWithState'
            yield Remedy("Give the function's state a timeout", f"a key that is silent is forgotten; {_REREAD}", (Setting(Place.QUERY, text),), refresh)  # fmt: skip
    yield Remedy(
        "Compute it whole, without state",
        "each update reads all of its source",
        (
            Setting(
                Place.DECORATOR, "@dp.materialized_view", "@dp.table, with dp.read instead of dp.read_stream"
            ),
        ),
    )


def _operators(flow: FlowFact) -> list[tuple[str, tuple[str, ...]]]:
    """Kind and keys of the flow's stateful operators, from their texts; from Spark's names of them where there are no texts."""
    operators = []
    for text in flow.state_plan:
        kind = text.partition("(")[0].strip()
        match = _KEYS.match(text)
        keys = tuple(part.partition(":")[0].strip() for part in _parts(match[2])) if match else ()
        operators.append(
            (kind, tuple(key for key in keys if re.fullmatch(r"\w+", key) and not _MADE.match(key)))
        )
    return operators or [(_kind(state.operator), ()) for state in flow.working[-1].states]


def _parts(text: str) -> list[str]:
    """The keys in a text, at commas that stand in no bracket."""
    return re.split(r",\s*(?![^(<]*[)>])", text)


def _kind(operator: str) -> str:
    words = (("dedupe", "Deduplicate"), ("statestoresave", "Aggregate"), ("join", "Join"))
    return next((kind for word, kind in words if word in operator.lower()), operator)


def _refresh(flow: FlowFact, facts: PipelineFacts) -> str:
    return f"headwater run {facts.folder} --full-refresh {flow.dataset}"
