"""What somebody needs of a table, and the questions that ask for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Source(StrEnum):
    """Where the rows come from."""

    TOPIC = "topic"
    FILES = "files"
    APPENDED_TABLE = "appended-table"
    CHANGING_TABLE = "changing-table"
    CHANGE_EVENTS = "change-events"
    FINITE = "finite"


class Processing(StrEnum):
    """What is done with them."""

    ROWS = "rows"
    AGGREGATE = "aggregate"
    DEDUPLICATE = "deduplicate"
    JOIN_STREAMS = "join-streams"
    WHOLE = "whole"


class Guarantee(StrEnum):
    """How often a row may arrive at its target."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


class BadRows(StrEnum):
    """What becomes of a row that breaks a rule."""

    QUARANTINE = "quarantine"
    DROP = "drop"
    FAIL = "fail"


class Budget(StrEnum):
    """Whether Spark may run all the time."""

    LOW = "low"
    NORMAL = "normal"


@dataclass(frozen=True)
class Requirements:
    """The answers. ``latency``: from arrival to the table. ``volume``: rows a day. ``late_data``: how late a row may come after
    its event. ``memory``: bytes that state may take.
    """

    source: Source = Source.FILES
    processing: Processing = Processing.ROWS
    latency: timedelta = timedelta(minutes=5)
    volume: int = 1_000_000
    late_data: timedelta = timedelta(minutes=10)
    memory: int = 1_000_000_000
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    bad_rows: BadRows = BadRows.QUARANTINE
    budget: Budget = Budget.NORMAL


@dataclass(frozen=True)
class Question:
    """A question, the option that answers it, its possible answers (or their form), and the setting that it leads to."""

    option: str
    text: str
    answers: str
    setting: str


QUESTIONS = (
    Question("source", "Where do the rows come from?", " ".join(Source), "`readStream` or `read`, and its options"),
    Question("processing", "What is done with them?", " ".join(Processing), "the kind of table, the output mode"),
    Question("latency", "How soon must a row be in the table?", "a duration: 1 second, 5 minutes, 1 day", "`trigger`, `airflow.schedule`"),
    Question("volume", "How many rows come in a day?", "a number", "`maxFilesPerTrigger`, `maxOffsetsPerTrigger`"),
    Question("late-data", "How late may a row come after its event?", "a duration", "`withWatermark`"),
    Question("memory", "How much memory may state take?", "a size: 512MB, 4GB", "`withWatermark`, `spark.driver.memory`, `spark.executor.memory`"),
    Question("guarantee", "How often may a row arrive?", " ".join(Guarantee), "a table (exactly once), or a sink"),
    Question("bad-rows", "What becomes of a row that breaks a rule?", " ".join(BadRows), "`@dp.expect_or_...`"),
    Question("budget", "May Spark run all the time?", " ".join(Budget), "`trigger`"),
)  # fmt: skip
