"""The answer to requirements: kind of table, trigger, output mode, watermark and limit, each with its reason.

Decision 0166.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from datetime import timedelta

from headwater.choosing.requirements import BadRows, Budget, Guarantee, Processing, Requirements, Source
from headwater.definitions.flow_settings import STREAM_INTERVAL, TRIGGER_INTERVAL

_SECOND, _MINUTE, _HOUR, _DAY = (
    timedelta(seconds=1),
    timedelta(minutes=1),
    timedelta(hours=1),
    timedelta(days=1),
)
# A row of state takes about this much, with its key and in memory.
_BYTES_OF_STATE = 200
_ROWS_OF_A_BATCH = 1_000_000
# Up to this long a pipeline that keeps running is worth its driver.
_AT_ONCE = timedelta(seconds=10)
# Minutes that divide an hour: cron starts over with each.
_EVEN = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)
STREAMING, WHOLE = "streaming table", "materialized view"


@dataclass(frozen=True)
class Choice:
    """What to write. ``workload``: batch or streaming; empty texts are not needed. ``reasons``: a sentence for each choice."""

    workload: str
    table: str
    declaration: str
    trigger: str
    output_mode: str
    watermark: str
    limit: str
    rule: str
    reasons: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """The choice as JSON values."""
        return asdict(self)


def choose(needs: Requirements) -> Choice:
    """The choice for these requirements."""
    table, declaration, why_table = _table(needs)
    streams = table != WHOLE
    trigger, why_trigger = _trigger(needs, streams=streams)
    mode, why_mode = (
        _output_mode(needs)
        if streams
        else ("none: it is recomputed whole", "A materialized view has no output mode.")
    )
    watermark, why_watermark = _watermark(needs) if streams else ("", "")
    limit, why_limit = _limit(needs) if streams else ("", "")
    rule = f'@dp.expect_or_{needs.bad_rows.value}("known", "id IS NOT NULL")'
    reasons = (
        why_table,
        why_trigger,
        why_mode,
        why_watermark,
        why_limit,
        _why_rule(needs),
        _why_guarantee(needs),
    )
    workload = "streaming" if streams else "batch"
    return Choice(workload, table, declaration, trigger, mode, watermark, limit, rule, tuple(filter(None, reasons)))  # fmt: skip


def _table(needs: Requirements) -> tuple[str, str, str]:
    if needs.source is Source.CHANGE_EVENTS:
        why = "Change events say what became of a row: they are merged by key and sequence."
        return STREAMING, "dp.create_streaming_table(...), dp.create_auto_cdc_flow(...)", why
    if needs.source is Source.FINITE:
        why = "The data is finite and comes as a whole: each update computes the result from all of it."
        return WHOLE, "@dp.materialized_view, with dp.read or spark.read", why
    if needs.source is Source.CHANGING_TABLE:
        why = "Rows of the source are changed: a stream follows only what is appended."
        return WHOLE, "@dp.materialized_view, with dp.read or spark.read", why
    if needs.processing is Processing.WHOLE:
        why = "The result depends on all rows: each update computes it again."
        return WHOLE, "@dp.materialized_view, with dp.read or spark.read", why
    either = needs.source is Source.APPENDED_TABLE and needs.processing is Processing.AGGREGATE
    if either and needs.latency >= _HOUR:
        why = f"Both would do over an appended table; at {_text(needs.latency)} recomputing it is simple and keeps no state."
        return WHOLE, "@dp.materialized_view, with dp.read or spark.read", why
    why = "Rows keep coming and each is read once: an update reads only what is new."
    return STREAMING, "@dp.table, with dp.read_stream or spark.readStream", why


def _trigger(needs: Requirements, *, streams: bool) -> tuple[str, str]:
    # A view of a continuous pipeline looks each minute, and in rounds as often as these.
    wanted = needs.latency if streams else max(needs.latency, _SECOND)
    if needs.source is Source.FINITE or wanted >= _HOUR:
        schedule = "@daily" if wanted >= _DAY else "@hourly"
        return (
            f'trigger: available_now\nairflow: {{schedule: "{schedule}"}}',
            f"A row may wait {_text(wanted)}: an update reads what is there and ends, and Spark runs only for that.",
        )
    if wanted < _SECOND or (streams and wanted <= _AT_ONCE and needs.budget is Budget.NORMAL):
        return _continuous(wanted)
    minutes = max((each for each in _EVEN if each * _MINUTE <= wanted), default=0)
    if minutes >= 1 and (needs.budget is Budget.LOW or wanted > 5 * _MINUTE):
        return (
            f'trigger: available_now\nairflow: {{schedule: "*/{minutes} * * * *"}}',
            f"An update every {minutes} minute{'s' if minutes > 1 else ''} is soon enough, and Spark does not run between them.",
        )
    interval = _text(timedelta(seconds=int(wanted.total_seconds())))
    return (
        f"trigger: {{processing_time: {interval}, run_for: 30 minutes}}",
        f"A row may wait {interval}: starting Spark takes longer, so it stays up and looks that often.",
    )


def _continuous(wanted: timedelta) -> tuple[str, str]:
    why = "Every stream keeps running and looks by itself, whatever the others do, until the pipeline is stopped."
    if wanted < _SECOND:
        why = (
            "Less than a second is Spark's real-time mode, from topic to topic and into no table "
            "(pipelines.trigger: RealTime of a flow); tables are looked after each second, by streams that keep running."
        )
    if wanted >= STREAM_INTERVAL:
        return "trigger: continuous", why
    interval = _text(timedelta(seconds=max(1, int(wanted.total_seconds()))))
    return f"trigger: continuous\nconfiguration: {{{TRIGGER_INTERVAL}: {interval}}}", why


def _output_mode(needs: Requirements) -> tuple[str, str]:
    if needs.source is Source.CHANGE_EVENTS:
        return "merge by key", "AUTO CDC writes the newest state of each key."
    if needs.processing is Processing.AGGREGATE:
        return (
            "append",
            "With a watermark a window is written once, when it can't change any more; Headwater takes the mode from the query.",
        )
    return "append", "Each row is written once and never changed: whoever reads the table can stream from it."


def _watermark(needs: Requirements) -> tuple[str, str]:
    if needs.processing is Processing.ROWS or needs.source is Source.CHANGE_EVENTS:
        return "", "No watermark: the query keeps no state."
    delay = _text(max(needs.late_data, _SECOND))
    text = f'.withWatermark("event_time", "{delay}")'
    rows = needs.volume * ((needs.late_data + _HOUR) / _DAY)
    size = rows * _BYTES_OF_STATE
    why = f"State is kept until no row of its time may come: {delay}, about {rows:,.0f} rows or {size / 1e6:,.0f} MB."
    if size > needs.memory:
        why += " That is more than the memory given: wait less time, or count on RocksDB, which spills to disk (it is the default)."
    return text, why


def _limit(needs: Requirements) -> tuple[str, str]:
    each = max(1, round(needs.volume * (min(needs.latency, _DAY) / _DAY)))
    if needs.source is Source.TOPIC:
        value = min(_ROWS_OF_A_BATCH, max(10_000, 4 * each))
        return (
            f'.option("maxOffsetsPerTrigger", {value})',
            f"About {each:,} rows come between two looks; four times as many bound a batch after a stop.",
        )
    if needs.source is Source.CHANGE_EVENTS:
        return "", ""
    return '.option("maxFilesPerTrigger", 1000)', "It bounds the first load, and a batch after a stop."


def _why_rule(needs: Requirements) -> str:
    return {
        BadRows.QUARANTINE: "Rows that break a rule are kept in the quarantine, and can be replayed.",
        BadRows.DROP: "Rows that break a rule are lost; only their number is kept.",
        BadRows.FAIL: "A row that breaks a rule stops its flow: nothing of its batch is written until somebody acts.",
    }[needs.bad_rows]


def _why_guarantee(needs: Requirements) -> str:
    if needs.guarantee is Guarantee.EXACTLY_ONCE:
        return "A table takes each row exactly once, also after a crash; that is no setting."
    return "At least once is what a sink (dp.create_sink) of Kafka gives; a table gives more at no cost here."


def _text(length: timedelta) -> str:
    """A length of time as settings take it."""
    seconds = length.total_seconds()
    for unit, name in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= unit and seconds % unit == 0:
            count = int(seconds // unit)
            return f"{count} {name}{'s' if count > 1 else ''}"
    return (
        f"{max(1, math.ceil(seconds))} seconds"
        if seconds >= 1
        else f"{max(1, round(seconds * 1000))} milliseconds"
    )
