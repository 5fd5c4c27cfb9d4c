"""Results of a pipeline's expectations over time, from the event log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headwater.event_log.reader import events
from headwater.storage.place import Place


@dataclass(frozen=True)
class RulePoint:
    """The counts of an expectation in one update, over all its batches. ``at``: when the first of them was recorded."""

    update_id: str
    at: datetime
    passed: int
    failed: int

    @property
    def rate(self) -> float | None:
        """The share of rows that passed, 0 to 1; None where there were none."""
        seen = self.passed + self.failed
        return self.passed / seen if seen else None


@dataclass(frozen=True)
class RuleHistory:
    """An expectation on a dataset, update by update, oldest first."""

    dataset: str
    rule: str
    points: tuple[RulePoint, ...]

    @property
    def passed(self) -> int:
        """Rows that passed, over all points."""
        return sum(point.passed for point in self.points)

    @property
    def failed(self) -> int:
        """Rows that failed."""
        return sum(point.failed for point in self.points)

    @property
    def rate(self) -> float | None:
        """The share of rows that passed, over all points."""
        seen = self.passed + self.failed
        return self.passed / seen if seen else None

    def as_dict(self) -> dict[str, Any]:
        """The history as JSON values."""
        return {
            "dataset": self.dataset,
            "rule": self.rule,
            "passed": self.passed,
            "failed": self.failed,
            "rate": self.rate,
            "updates": [
                {
                    "update_id": p.update_id,
                    "at": p.at.isoformat(),
                    "passed": p.passed,
                    "failed": p.failed,
                    "rate": p.rate,
                }
                for p in self.points
            ],
        }


@dataclass(frozen=True)
class DatasetQuality:
    """Rows of a dataset that did not get into its table, over the same updates."""

    dataset: str
    dropped: int
    quarantined: int
    updates: int


def rule_histories(
    state_folder: Place,
    *,
    updates: int | None = None,
    dataset: str | None = None,
    since: datetime | None = None,
) -> tuple[list[RuleHistory], list[DatasetQuality]]:
    """Each expectation's counts by update, and each dataset's dropped and quarantined rows.

    Args:
        updates: only so many of the newest updates in which an expectation was checked, for each of them.
        dataset: only the expectations on this one.
        since: only what was recorded since then.

    """
    records = events(state_folder, event_type="flow_progress", since=since, containing='"data_quality"')
    return fold_quality(records, updates=updates, dataset=dataset)


def fold_quality(
    records: Iterable[Mapping[str, Any]], *, updates: int | None = None, dataset: str | None = None
) -> tuple[list[RuleHistory], list[DatasetQuality]]:
    """The same from ``flow_progress`` records, oldest first. A record that is there twice counts once."""
    rules: dict[tuple[str, str], dict[str, RulePoint]] = {}
    losses: dict[str, list[tuple[str, int, int]]] = {}
    seen: set[str] = set()
    for record in records:
        quality = record["details"].get("flow_progress", {}).get("data_quality")
        if not isinstance(quality, Mapping) or record["id"] in seen:
            continue
        seen.add(record["id"])
        update, target = record["origin"]["update_id"], record["origin"]["dataset_name"]
        lost = (int(quality.get(f"{how}_records") or 0) for how in ("dropped", "quarantined"))
        losses.setdefault(target or "", []).append((update, *lost))
        for rule in quality.get("expectations") or ():
            points = rules.setdefault((rule.get("dataset") or target or "", rule["name"]), {})
            before = points.get(update) or RulePoint(update, record["timestamp"], 0, 0)
            points[update] = RulePoint(
                update,
                before.at,
                before.passed + int(rule.get("passed_records") or 0),
                before.failed + int(rule.get("failed_records") or 0),
            )
    histories = [
        RuleHistory(name, rule, tuple(points.values())[-updates:] if updates else tuple(points.values()))
        for (name, rule), points in rules.items()
        if dataset in (None, name)
    ]
    shown = {history.dataset for history in histories}
    return histories, [_quality(name, rows, updates) for name, rows in losses.items() if name in shown]


def _quality(dataset: str, rows: list[tuple[str, int, int]], updates: int | None) -> DatasetQuality:
    newest = list(dict.fromkeys(update for update, _, _ in rows))
    chosen = set(newest[-updates:] if updates else newest)
    recent = [row for row in rows if row[0] in chosen]
    return DatasetQuality(dataset, sum(r[1] for r in recent), sum(r[2] for r in recent), len(chosen))
