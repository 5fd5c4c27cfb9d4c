"""Which settings make another view of the same query."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headwater_spark.views.deciding_settings import TIME_ZONE, deciding_settings


class Session:
    """A session with these settings, which notes those that it is asked for."""

    def __init__(self, settings: dict[str, str]) -> None:
        known = SimpleNamespace(toString=lambda: f"[{', '.join(settings)}]")
        state = SimpleNamespace(
            conf=lambda: SimpleNamespace(settings=lambda: SimpleNamespace(keySet=lambda: known))
        )
        self._jsparkSession = SimpleNamespace(sessionState=lambda: state)
        self.asked: list[str] = []
        self.conf = SimpleNamespace(get=lambda key: self.asked.append(key) or settings[key])


def noted(settings: dict[str, str], **own: Any) -> dict[str, str]:
    noted = deciding_settings(Session({TIME_ZONE: "UTC", **settings}), own)
    assert noted.pop("spark")
    assert noted.pop(TIME_ZONE)
    return noted


def test_settings_that_no_plan_says():
    """What Spark reads while a query runs (how it writes JSON, which Python types it takes) counts, as the session or the flow has it."""
    keys = (
        "spark.sql.jsonGenerator.ignoreNullFields",
        "spark.sql.execution.pythonUDF.arrow.enabled",
        "spark.sql.legacy.timeParserPolicy",
    )
    for key in keys:
        assert noted({key: "false"}) == noted({}, **{key: "false"}) == {key: "false"}
    assert noted({}) == {}


def test_settings_of_the_run():
    """How a query is run and how files are laid out makes no other rows."""
    keys = (
        "spark.sql.shuffle.partitions",
        "spark.sql.files.maxRecordsPerFile",
        "spark.sql.adaptive.enabled",
        "x",
    )
    assert noted(dict.fromkeys(keys, "1")) == {}


def test_settings_that_nobody_made():
    """They are not asked for, one by one: which are set is known at once, and what Spark has by itself goes with its version."""
    session = Session({"spark.sql.ansi.enabled": "false", "x": "1", TIME_ZONE: "UTC"})
    assert deciding_settings(session, {}).keys() == {"spark", "spark.sql.ansi.enabled", TIME_ZONE}
    assert session.asked == ["spark.sql.ansi.enabled", TIME_ZONE]
