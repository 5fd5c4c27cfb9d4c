"""``SCHEDULE`` of a statement: a cron text for the pipeline's DAG. Decision 0159."""

from __future__ import annotations

from headwater.definitions.cron_text import every, from_quartz, is_utc
from headwater.sql_sources.conditions import SqlNotUnderstood
from headwater.sql_sources.parser import StatementParser

_IN_SPEC = (
    'Take it out, and write the times into pipeline.yml:\n      airflow:\n        schedule: "0 * * * *"'
)
_UNITS = ("HOUR", "HOURS", "DAY", "DAYS", "WEEK", "WEEKS", "MINUTE", "MINUTES")


def read_schedule(parser: StatementParser) -> str:
    """Read what stands behind SCHEDULE; the cron text.

    Raises:
        SqlNotUnderstood: another form.
        UnsupportedArgument: times that five fields can't say.
    """
    parser.words("REFRESH")
    token = parser.current
    if parser.words("EVERY"):
        count, unit = parser.scalar("A number"), parser.current.text.upper() if parser.current else ""
        if unit not in _UNITS:
            parser.expected("A unit", *_UNITS)
        parser.step()
        cron = every(count, unit.removesuffix("S"))
        if cron is None:
            parser.unsupported(
                f"SCHEDULE EVERY {count} {unit}", token, f"Cron has no such interval. {_IN_SPEC}"
            )
        return str(cron)
    if not parser.words("CRON"):
        parser.expected("The times", "EVERY", "CRON")
    token = parser.current
    text = parser.text("A cron text")
    zone = parser.text("A time zone") if parser.words("AT", "TIME", "ZONE") else "UTC"
    if not is_utc(zone):
        parser.unsupported(
            f"SCHEDULE in the time zone {zone}", token, f"Airflow reads a cron text in UTC. {_IN_SPEC}"
        )
    fields = text.split()
    if len(fields) not in (6, 7):
        raise SqlNotUnderstood(
            f"The cron text {text!r} has {len(fields)} fields.",
            where=parser.place(token),
            remedy="Write six: second, minute, hour, day of the month, month, day of the week: '0 0 * * * ?'.",
        )
    cron = from_quartz(fields)
    if cron is None:
        parser.unsupported(
            f"SCHEDULE CRON {text!r}", token, f"Airflow's cron has no seconds, years, L, W or #. {_IN_SPEC}"
        )
    return str(cron)
