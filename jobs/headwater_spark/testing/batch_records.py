"""The event log's records of a test's updates, by the batch that the test gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headwater_spark.rules.expectations import RuleCounts


@dataclass(frozen=True)
class BatchRecord:
    """The result of one given batch in one dataset. ``version``: of the table afterwards."""

    dataset: str
    number: int
    version: int
    input_rows: int
    output_rows: int
    dropped: int
    quarantined: int
    expectations: tuple[RuleCounts, ...]


def records_of(
    dataset: str, log: Sequence[dict[str, Any]], number: int, version: int, *, one_by_one: bool, last: int
) -> list[BatchRecord]:
    """The records of one update: one for the batch ``number``, or with ``one_by_one`` one for each up to ``last``.

    A batch without rows that Spark adds at the end, to close windows, counts with the last one.
    """
    if not one_by_one:
        return [_record(dataset, number, version, log)]
    by_number: dict[int, list[dict[str, Any]]] = {}
    for event in log:
        # A flow that is not a stream has no batches: it ran once over all rows.
        batch_id = event["origin"].get("batch_id")
        by_number.setdefault(last if batch_id is None else min(int(batch_id), last), []).append(event)
    records, before = [], 0
    for index in range(last + 1):
        mine = by_number.get(index, [])
        versions = [int(v) for event in mine if (v := _body(event).get("version")) is not None]
        before = version if index == last else max(versions, default=before)
        records.append(_record(dataset, index, before, mine))
    return records


def of_rows(event: dict[str, Any]) -> bool:
    """Whether a record has row counts: a stream's batch has, and both records of a view."""
    return event["level"] == "METRICS" or "data_quality" in _body(event)


def _record(dataset: str, number: int, version: int, log: Sequence[dict[str, Any]]) -> BatchRecord:
    def total(part: str, name: str) -> int:
        return sum(int(_body(event).get(part, {}).get(name) or 0) for event in log)

    return BatchRecord(
        dataset,
        number,
        version,
        total("metrics", "num_input_rows"),
        total("metrics", "num_output_rows"),
        total("data_quality", "dropped_records"),
        total("data_quality", "quarantined_records"),
        add_counts(
            RuleCounts(rule["name"], int(rule["passed_records"]), int(rule["failed_records"]))
            for event in log
            for rule in _body(event).get("data_quality", {}).get("expectations", ())
        ),
    )


def add_counts(counts: Any) -> tuple[RuleCounts, ...]:
    """The counts of several batches, summed by rule."""
    sums: dict[str, tuple[int, int]] = {}
    for rule in counts:
        passed, failed = sums.get(rule.name, (0, 0))
        sums[rule.name] = (passed + rule.passed, failed + rule.failed)
    return tuple(RuleCounts(name, *both) for name, both in sums.items())


def _body(event: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = event["details"]["flow_progress"]
    return body
