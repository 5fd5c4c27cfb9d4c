"""A flow of which nothing can be seen hides no other one's findings."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.doctor import flow_case
from headwater.doctor.flow_cases import flow_cases


def test_a_table_that_may_not_be_read(done, monkeypatch: pytest.MonkeyPatch):
    """It is a finding of its flow, and the others are looked at."""
    start = flow_case.flow_start

    def denied(project: Any, manifest: Any, flow: Any, **more: Any) -> Any:
        if flow.name == "bronze":
            raise PermissionError(13, "Permission denied", str(done.table("bronze")))
        return start(project, manifest, flow, **more)

    monkeypatch.setattr(flow_case, "flow_start", denied)
    cases = {case.flow.name: case for case in flow_cases(done.project)}
    (damage,) = cases["bronze"].damages
    assert (damage.condition, damage.blocks, damage.repairs) == ("STORAGE_NOT_READABLE", True, ())
    assert "STORAGE_NOT_READABLE" not in {damage.condition for damage in cases["silver"].damages}
