"""How late the rows of a table came, and the watermark that waits for most of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from headwater.errors import UsageError
from headwater.event_log.reader import events
from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place

_SHARES = (0.5, 0.9, 0.95, 0.99, 0.999)
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
# Delays that people can remember, in seconds.
_STEPS = [_MINUTE * n for n in (1, 2, 5, 10, 15, 30)] + [_HOUR * n for n in (1, 2, 4, 8, 12, 24)]


@dataclass(frozen=True)
class Lateness:
    """How long after their event rows arrived, in seconds.

    ``rows``: those with both times; ``ahead``: those that arrived before their event (a clock is wrong), counted as not
    late. ``by_share``: within which time so many of the rows came, by share (0.5 to 0.999); approximate in large tables.
    """

    rows: int
    ahead: int
    longest: float
    by_share: dict[float, float]

    def advice(self, share: float = 0.99) -> str:
        """The watermark's delay that waits for ``share`` of the rows, as Spark reads it: ``"15 minutes"``."""
        return delay_text(self.by_share[share])

    def as_dict(self) -> dict[str, Any]:
        """The measures as JSON values, with the delay for each share."""
        delays = {str(share): delay_text(seconds) for share, seconds in self.by_share.items()}
        return {**asdict(self), "delays": delays}


def delay_text(seconds: float) -> str:
    """The first delay of a round number of minutes, hours or days that is no shorter."""
    step = next((step for step in _STEPS if step >= seconds), None)
    if step is None:
        days = -int(-seconds // _DAY)
        return f"{days} days"
    number, unit = (step // _HOUR, "hour") if step >= _HOUR else (step // _MINUTE, "minute")
    return f"{number} {unit}{'s' if number > 1 else ''}"


def kind_of_delay(text: str) -> str:
    """The class of a delay, by the published guidelines: ``short`` (to 5 minutes), ``medium`` (to an hour), ``long``."""
    number, unit = text.split()
    seconds = int(number) * {"minute": _MINUTE, "hour": _HOUR, "days": _DAY}.get(unit.rstrip("s"), _DAY)
    return "short" if seconds <= 5 * _MINUTE else "medium" if seconds <= _HOUR else "long"


def table_lateness(table: Place, event_time: str, arrival: str) -> Lateness:
    """Measure a Delta table by two of its columns, read without Spark.

    Raises:
        UsageError: the table or a column is not there, holds no times, or no row has both.
    """
    import pyarrow as pa
    from deltalake import QueryBuilder
    from deltalake.exceptions import TableNotFoundError

    try:
        source = delta_table(table)
    except TableNotFoundError:
        raise UsageError(f"There is no table at {table}.", remedy="Run the pipeline first.") from None
    for name in (event_time, arrival):
        _check_column(source, name)
    seconds = f"date_part('epoch', {_quoted(arrival)}) - date_part('epoch', {_quoted(event_time)})"
    shares = ", ".join(f"approx_percentile_cont(greatest(s, 0.0), {share})" for share in _SHARES)
    # The names are the table's own, and quoted.
    times = f"SELECT CAST({seconds} AS DOUBLE) AS s FROM t"  # noqa: S608
    query = f"SELECT count(s), count(CASE WHEN s < 0 THEN 1 END), max(s), {shares} FROM ({times})"  # noqa: S608
    answer = pa.table(QueryBuilder().register("t", source).execute(query).read_all())
    rows, ahead, longest, *delays = (column[0].as_py() for column in answer.columns)
    if not rows:
        raise UsageError(f"No row of {table.name!r} has both {event_time} and {arrival}.")
    return Lateness(rows, ahead, max(0.0, longest), dict(zip(_SHARES, delays, strict=True)))


def late_rows(state_folder: Place) -> dict[str, int]:
    """By flow, how many rows its watermark has left out so far, from the event log; flows that left out none are missing.

    As Spark counts them: of an aggregation after its first, partial step, so not more than rows were late.
    """
    counts: dict[str, int] = {}
    for record in events(state_folder, event_type="flow_progress", level="METRICS", containing='"late_rows"'):
        rows = record["details"].get("flow_progress", {}).get("metrics", {}).get("late_rows") or 0
        if rows:
            flow = record["origin"]["flow_name"]
            counts[flow] = counts.get(flow, 0) + int(rows)
    return counts


def _check_column(source: Any, name: str) -> None:
    fields = {field.name: str(field.type) for field in source.schema().fields}
    if name not in fields:
        raise UsageError(f"The table has no column {name!r}.", remedy=f"It has: {', '.join(fields)}.")
    if "timestamp" not in fields[name]:
        raise UsageError(
            f"The column {name!r} holds no times.", remedy="Cast it in the query: F.to_timestamp(...)."
        )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
