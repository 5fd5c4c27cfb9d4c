"""The prepared pipeline under repair: each remedy is refused before, planned, carried out, and compared with the batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.prepared_pipeline import FLOWS, Prepared


@pytest.fixture
def treated(done: Prepared, monkeypatch: pytest.MonkeyPatch) -> Iterator[Prepared]:
    """The pipeline; where a repair becomes an update, that one runs in this process."""

    def update(arguments: Any) -> None:
        code, answer = done.case.run(f"--full-refresh={','.join(arguments.full_refresh)}")
        assert (code, answer["state"]) == (0, "COMPLETED")

    monkeypatch.setattr("headwater.commands.repair.become_job", update)
    return done


def repair(
    done: Prepared, flow: str, *arguments: str, condition: str, doubled: str = "no rows"
) -> dict[str, Any]:
    """Refused before; the plan alone changes nothing; carried out, it leaves a copy and a record."""
    assert done.conditions(flow)[:1] == [(condition, False)]
    code, answer, _ = done.call("checkpoints", "diagnose", flow)
    assert (code, answer["findings"][0]["condition"]) == (3, condition)
    before = sorted(str(path) for path in done.case.storage.rglob("*"))
    code, answer, errors = done.call("repair", flow, *arguments)
    assert (code, answer["state"]) == (0, "PLANNED"), errors
    assert answer["plan"]["doubled"].startswith(doubled), answer
    assert [path for path in before if not path.endswith("update.lease")] == [
        str(path) for path in sorted(done.case.storage.rglob("*")) if path.name != "update.lease"
    ] or before == sorted(str(path) for path in done.case.storage.rglob("*"))
    code, answer, errors = done.call("repair", flow, *arguments, "--yes")
    assert (code, answer["state"]) == (0, "COMPLETED"), errors
    records = done.case.events(flow=flow, event_type="user_action")
    assert records[-1]["details"]["user_action"]["action"] == "REPAIR"
    repaired: dict[str, Any] = answer["repair"]
    return repaired


def update_and_compare(done: Prepared, mended: Mapping[str, str] | None = None) -> None:
    """The next update takes in four more rows, and all tables equal the batch.

    ``mended``: by flow the condition that the start has made good, as the event log says it; None where that is not asked.
    """
    done.land()
    report = done.case.update()
    assert (report.state, report.error) == ("COMPLETED", None)
    done.tables_equal_the_batch()
    assert [done.conditions(flow) for flow in FLOWS] == [[], [], []]
    if mended is not None:
        records = done.case.events(update_id=report.result.update_id, event_type="operation_progress")
        operations = [(e["origin"]["flow_name"], e["details"]["operation_progress"]) for e in records]
        found = {flow: body["condition"] for flow, body in operations if body["type"] == "CHECKPOINT_MENDED"}
        assert found == mended
