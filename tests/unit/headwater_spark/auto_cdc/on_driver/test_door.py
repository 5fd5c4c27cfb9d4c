"""The fast path's entry: what is decided before anything is computed, once what is computed, and what is handed to MERGE."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater_spark.auto_cdc.on_driver import door
from headwater_spark.auto_cdc.on_driver.door import try_on_driver
from headwater_spark.auto_cdc.on_driver.verdict import BY_COLUMN, Decided, Declined, Done, engine

DECIDED: Any = Decided("changes", "transaction")  # type: ignore[arg-type]
# Stands for rows that were looked up: a text would be a reason.
ROWS = 7
NO_FILE = "the table has no file yet"


class Way:
    """A batch on its way: what it is like, and what is called."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *,
        matches: Any = ROWS,
        obstacle: Any = None,
        rewritten: Any = None,
        **batch: Any,
    ) -> None:
        self.calls: list[str] = []
        self.rows = SimpleNamespace(matches=matches)
        given = {"local": "events", "not_local": "", "truncate": None, "by_column": False, **batch}
        self.columns = SimpleNamespace(
            truncate=given["truncate"], by_column=given["by_column"], target_schema="schema"
        )
        self.batch: Any = SimpleNamespace(
            columns=self.columns, local=given["local"], not_local=given["not_local"]
        )
        self.target: Any = SimpleNamespace(rows_about=lambda batch: self.call("look up", self.rows))
        monkeypatch.setattr(door, "reason_against", lambda *args: self.call("check", obstacle))
        monkeypatch.setattr(door, "rewrite", lambda *args: self.call(f"rewrite {args[2]}", rewritten))

    def call(self, name: str, answer: Any) -> Any:
        self.calls.append(name)
        return answer

    def go(self) -> Done | Declined:
        return try_on_driver(
            self.batch, self.target, ["key"], lambda matches: self.call(f"decide {matches}", DECIDED)
        )


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        ({"local": None, "not_local": "more than 5 events", "truncate": "t", "by_column": True}, "more than 5 events"),
        ({"truncate": "an expression", "by_column": True}, "the flow has truncates"),
        ({"by_column": True}, BY_COLUMN),
    ],
)  # fmt: skip
def test_batches_that_are_not_tried(monkeypatch: pytest.MonkeyPatch, batch: dict[str, Any], reason: str):
    """Nothing is looked up for a batch whose flow or size rules it out."""
    way = Way(monkeypatch, **batch)
    assert way.go() == Declined(reason)
    assert way.calls == []


def test_what_is_known_is_handed_on(monkeypatch: pytest.MonkeyPatch):
    """Whoever merges gets the rows that were looked up, and what was decided: neither is computed twice."""
    way = Way(monkeypatch, matches=NO_FILE)
    assert way.go() == Declined(NO_FILE, way.rows)  # type: ignore[arg-type]
    assert way.calls == ["look up"]
    way = Way(monkeypatch, obstacle="the table has rowTracking")
    assert way.go() == Declined("the table has rowTracking", way.rows)  # type: ignore[arg-type]
    assert way.calls == ["look up", "check"]
    way = Way(monkeypatch, rewritten="another commit was in the way")
    assert way.go() == Declined("another commit was in the way", way.rows, DECIDED)  # type: ignore[arg-type]
    assert way.calls == ["look up", "check", "decide 7", "rewrite changes"]
    way = Way(monkeypatch)
    assert way.go() == Done()
    assert way.calls == ["look up", "check", "decide 7", "rewrite changes"]


def test_the_engine_of_a_commit():
    """A commit says which engine wrote it, and a MERGE why."""
    assert engine(None) == {"engine": "driver_rewrite"}
    assert engine(Declined("r")) == {"engine": "merge", "engine_reason": "r"}
