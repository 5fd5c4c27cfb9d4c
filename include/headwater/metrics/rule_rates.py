"""How many rows fail the expectations of each table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from headwater.event_log.reader import events
from headwater.storage.place import Place

_RECORDS = 2000


@dataclass(frozen=True)
class RuleRate:
    """An expectation in the newest update that checked rows against it."""

    dataset: str
    rule: str
    update_id: str
    passed: int
    failed: int

    @property
    def failed_percent(self) -> float:
        """Failed rows in percent of those that were looked at."""
        total = self.passed + self.failed
        return 100 * self.failed / total if total else 0.0

    def as_dict(self) -> dict[str, Any]:
        """The rate as JSON values."""
        return {**asdict(self), "failed_percent": self.failed_percent}


def rule_rates(state_folder: Place) -> list[RuleRate]:
    """The failure rate of each expectation of each dataset, over all batches of the newest update in which it saw rows."""
    rates: dict[tuple[str, str], RuleRate] = {}
    seen: set[str] = set()
    # Oldest first: a record of a newer update takes the place of those before.
    # Updates without news have records, too: enough of them, and the rows that failed would seem to be over.
    for record in events(
        state_folder, event_type="flow_progress", containing='"passed_records"', limit=_RECORDS
    ):
        origin, body = record["origin"], record["details"].get("flow_progress") or {}
        if record["id"] in seen:
            continue
        seen.add(record["id"])
        for rule in (body.get("data_quality") or {}).get("expectations") or ():
            passed, failed = int(rule.get("passed_records") or 0), int(rule.get("failed_records") or 0)
            if not passed + failed:
                continue
            key = (str(rule.get("dataset") or origin["dataset_name"] or ""), str(rule.get("name")))
            before = rates.get(key)
            if before is not None and before.update_id == origin["update_id"]:
                passed, failed = passed + before.passed, failed + before.failed
            rates[key] = RuleRate(*key, origin["update_id"], passed, failed)
    return list(rates.values())
