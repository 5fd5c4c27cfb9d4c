"""The section ``airflow`` of ``pipeline.yml``.

Lengths are those that Airflow's database takes: a longer text would fail there, and with it every DAG of the file.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from headwater.definitions.spec_model import Duration, Strict
from headwater.runtime.secret_values import names_a_secret
from headwater.suggestions import nearest

# Airflow takes 250 characters for a DAG's id, and its other DAGs have a word behind it.
DAG_ID_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_CLASS = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$"
_Word = Annotated[str, Field(min_length=1, max_length=256)]
_Tag = Annotated[str, Field(min_length=1, max_length=100)]
_NAMES = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat"
_FIELD = rf"(?:[0-9*?,/#LW-]|(?<![a-z])(?:{_NAMES})(?![a-z]))+"
# The form alone: what reads the fields is too slow to be imported by every command.
_CRON = re.compile(rf"\s*{_FIELD}(?:\s+{_FIELD}){{4,5}}\s*", re.IGNORECASE)
_PRESETS = (
    "@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@quarterly", "@yearly", "@annually", "@once", "@continuous",
)  # fmt: skip


def _schedule(text: str) -> str:
    if text in (*_PRESETS, ON_DATA) or _CRON.fullmatch(text):
        return text
    near = nearest(text, _PRESETS)
    meant = f"; the nearest is {near}" if near else f", or one of {', '.join(_PRESETS)}"
    raise ValueError(f"a schedule is a cron text of five fields, like '*/5 * * * *'{meant}")


ON_DATA = "on_data"
# Airflow's word for a run that begins when the last one has ended.
CONTINUOUS = "@continuous"
_Schedule = Annotated[_Word, AfterValidator(_schedule)]
_LONGEST = timedelta(days=366)
DagKind = Literal["update", "checks", "maintenance", "backfill", "repair"]


class EventFreshnessSpec(Strict):
    """How old the newest event of a table may be, by the column with its time."""

    column: _Word
    minutes: float = Field(ge=0)


class AlertSpec(Strict):
    """Limits that the check DAG holds the pipeline to; an absent one is not checked.

    But for ``batch_seconds``: with the trigger ``processing_time`` its interval is the limit, unless it is null.
    """

    lag_seconds: float | None = Field(default=None, ge=0)
    lag_records: int | None = Field(default=None, ge=0)
    freshness_minutes: float | None = Field(default=None, ge=0)
    event_freshness: dict[str, EventFreshnessSpec] = Field(default_factory=dict)
    failed_rules_percent: float | None = Field(default=None, ge=0, le=100)
    checkpoint_health: bool = True
    batch_seconds: float | None = Field(default=None, ge=0)
    retention_percent: float | None = Field(default=None, ge=0, le=100)
    advice: bool = False


class NotifierSpec(Strict):
    """One of Airflow's notifiers. ``when`` it is called; ``arguments``: of its class, plain values without secrets."""

    notifier: str = Field(pattern=_CLASS, max_length=256)
    when: tuple[Literal["alert", "failure", "success"], ...] = Field(
        default=("alert", "failure"), min_length=1
    )
    arguments: dict[str, str | int | float | bool | list[str] | None] = Field(default_factory=dict)

    @field_validator("arguments")
    @classmethod
    def _without_secrets(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        for name in arguments:
            if not name.isidentifier():
                raise ValueError(f"{name!a} is not the name of an argument")
            if names_a_secret(name):
                raise ValueError(
                    f"`{name}` is named like a secret; put it into an Airflow connection, and name that"
                )
        return arguments


class BackfillSpec(Strict):
    """The backfill DAG: its intervals (cron), and what its form is filled in with."""

    interval: _Schedule | None = None
    tables: tuple[str, ...] = ()
    column: str | None = None
    scheduled: bool = False

    @model_validator(mode="after")
    def _has_intervals(self) -> BackfillSpec:
        if self.scheduled and self.interval is None:
            raise ValueError("`scheduled` needs an `interval`")
        return self


class OnDataSpec(Strict):
    """When data that has arrived begins a run: after ``quiet``, from so many files, messages or commits on, after ``wait`` at the latest."""

    quiet: Duration = Field(default=timedelta(0), ge=timedelta(0), le=timedelta(days=7))
    files: int = Field(default=1, ge=1, le=10**9)
    records: int = Field(default=1, ge=1, le=10**15)
    versions: int = Field(default=1, ge=1, le=10**9)
    wait: Duration | None = Field(default=None, ge=timedelta(0), le=_LONGEST)

    @model_validator(mode="after")
    def _waits_longer(self) -> OnDataSpec:
        if self.wait is not None and self.wait < self.quiet:
            raise ValueError("`wait` must not be less than `quiet`")
        return self


class AirflowSpec(Strict):
    """How Airflow runs the pipeline."""

    dags: tuple[DagKind, ...] = ("update", "checks", "maintenance", "backfill", "repair")
    dag_id: str | None = Field(default=None, pattern=f"^{DAG_ID_PATTERN.pattern}$")
    schedule: _Schedule | None = None
    on_data: OnDataSpec = OnDataSpec()
    tasks: Literal["watched", "per_table"] = "watched"
    retries: int = Field(default=2, ge=0, le=20)
    # Airflow's scheduler adds it to a time, and ends if that is beyond the last year that there is.
    retry_delay: Duration = Field(default=timedelta(seconds=30), le=_LONGEST)
    timeout: Duration | None = Field(default=None, le=_LONGEST)
    pool: _Word | None = None
    queue: _Word | None = None
    priority_weight: int = Field(default=1, ge=-(2**31), lt=2**31)
    check_schedule: _Schedule | None = "*/5 * * * *"
    maintenance_schedule: _Schedule | None = "30 3 * * *"
    backfill: BackfillSpec = BackfillSpec()
    connection: str = "spark_default"
    store_connection: str | None = Field(default=None, pattern=f"^{DAG_ID_PATTERN.pattern}$")
    spark_ui: bool | None = None
    tags: tuple[_Tag, ...] = ()
    owner: _Word | None = None
    notifiers: tuple[NotifierSpec, ...] = ()
    alerts: AlertSpec = AlertSpec()

    @model_validator(mode="after")
    def _data_is_the_schedule(self) -> AirflowSpec:
        if "on_data" in self.model_fields_set and self.schedule != ON_DATA:
            raise ValueError(f"`on_data` has an effect only with `schedule: {ON_DATA}`")
        return self
