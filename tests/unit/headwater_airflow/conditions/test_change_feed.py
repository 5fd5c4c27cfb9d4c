"""When enough has changed in a table for a task that waits for its changes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.change_feed.change_range import ChangeCounts, ChangeRange
from headwater.errors import ChangeFeedBroken
from headwater_airflow.conditions import change_feed as module
from headwater_airflow.conditions.change_feed import ChangeFeedCondition


def looked(
    monkeypatch: pytest.MonkeyPatch, rows: int | None, head: int | None = 7, **asked: Any
) -> tuple[bool, str, list[int]]:
    """Whether it is met, what is said, and after which version changes were looked for; ``rows``: inserted since, None: no change."""
    after: list[int] = []

    def ranged(name: str, _: Path, position: Any, *, columns: Any) -> ChangeRange | None:
        after.append(position.version)
        counts = ChangeCounts(insert=rows, update=0, delete=0)
        return None if rows is None else ChangeRange(name, "id", position.version + 1, 7, counts=counts)

    monkeypatch.setattr(module, "warehouse_table", Path)
    monkeypatch.setattr(
        module, "table_head", lambda _: None if head is None else SimpleNamespace(table_id="id", version=head)
    )
    monkeypatch.setattr(module, "range_after", ranged)
    sighting = ChangeFeedCondition("shop.orders", **{"after_version": 3, **asked}).look()
    return sighting.met, sighting.summary, after


@pytest.mark.parametrize(
    ("rows", "asked", "met"),
    [
        (1, {}, True), (None, {}, False), (4, {"min_rows": 5}, False), (5, {"min_rows": 5}, True),
        (5, {"types": ("delete",)}, False), (5, {"types": ("insert",)}, True), (5, {"table_id": "id"}, True),
    ],
)  # fmt: skip
def test_enough_has_changed(
    monkeypatch: pytest.MonkeyPatch, rows: int | None, asked: dict[str, Any], met: bool
):
    """One row is, unless more are asked for; rows of the kinds that are asked for count."""
    found, said, after = looked(monkeypatch, rows, **asked)
    assert (found, after) == (met, [3])
    assert said.startswith(
        "shop.orders has changed" if met else f"{rows if rows == 4 else 0} rows of shop.orders"
    )


def test_tables_that_are_not_what_they_were(monkeypatch: pytest.MonkeyPatch):
    """One that is not there yet may come; one that was brought back is looked at from its newest version; another one never fits."""
    assert looked(monkeypatch, 1, None)[:2] == (False, "There is no table shop.orders yet.")
    assert looked(monkeypatch, 1, 2)[2] == [2]
    with pytest.raises(ChangeFeedBroken, match="recreated"):
        looked(monkeypatch, 1, table_id="other")
