"""``SCHEDULE`` of a statement: a cron text for the pipeline's DAG.

``EVERY n HOURS`` and Quartz's cron, which counts seconds and names Sunday 1, become the five fields of Airflow. Decision 0159.
"""

from __future__ import annotations

import re

from headwater.sql_sources.conditions import SqlNotUnderstood
from headwater.sql_sources.parser import StatementParser

_IN_SPEC = (
    'Take it out, and write the times into pipeline.yml:\n      airflow:\n        schedule: "0 * * * *"'
)
_UNITS = ("HOUR", "HOURS", "DAY", "DAYS", "WEEK", "WEEKS", "MINUTE", "MINUTES")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_WORDS = "|".join(
    (*_DAYS, "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
)
# Numbers, names, ranges, steps and lists of them; not Quartz's L, W and #.
_ONE = rf"(?:\*|\?|(?:\d+|{_WORDS})(?:-(?:\d+|{_WORDS}))?)(?:/\d+)?"
_PLAIN = re.compile(rf"{_ONE}(?:,{_ONE})*")
# A day of the week; what stands behind a slash is a step.
_NUMBER = re.compile(r"(?<![/\w])[1-7](?!\w)")


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
    if zone.upper() not in ("UTC", "ETC/UTC", "GMT", "Z"):
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


def every(count: str, unit: str) -> str | None:
    """The cron text for a number of minutes, hours, days or weeks; None where none says it without a gap."""
    if not count.isdigit() or int(count) < 1:
        return None
    number = int(count)
    if unit == "MINUTE":
        return f"*/{number} * * * *" if 60 % number == 0 and number < 60 else None
    if unit == "HOUR":
        if number == 24:
            return "0 0 * * *"
        return (f"0 */{number} * * *" if number > 1 else "0 * * * *") if 24 % number == 0 else None
    if number == 1:
        return "0 0 * * *" if unit == "DAY" else "0 0 * * 0"
    return "0 0 * * 0" if unit == "DAY" and number == 7 else None


def from_quartz(fields: list[str]) -> str | None:
    """Airflow's cron text for the fields of Quartz's; None where it has none."""
    seconds, minute, hour, day, month, weekday, *year = (field.upper() for field in fields)
    if seconds != "0" or any(one not in ("*", "?") for one in year):
        return None
    if day not in ("*", "?") and weekday not in ("*", "?"):
        return None  # Quartz wants one of the two open; cron would take either
    named = _NUMBER.sub(lambda match: _DAYS[int(match[0]) - 1], weekday)
    parts = [minute, hour, day, month, named]
    if not all(_PLAIN.fullmatch(part) for part in parts):
        return None
    return " ".join("*" if part == "?" else part for part in parts)
