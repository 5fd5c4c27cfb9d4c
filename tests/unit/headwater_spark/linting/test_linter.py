"""Which flows the rules are asked about."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.graph.manifest import FlowEntry
from headwater_spark.linting import linter


def test_implicit_views_that_nothing_reads_are_passed_over(monkeypatch: pytest.MonkeyPatch):
    """A history declares views that are no part of the manifest until something reads them: no rule may ask for them there."""
    asked: list[str] = []

    def rule(case: Any) -> list[Any]:
        asked.append(case.flow.name)
        return []

    monkeypatch.setattr(linter, "_RULES", (rule,))
    for name in (
        "idle_settings_of_the_pipeline",
        "misspelled_settings_of_the_pipeline",
        "settings_of_lakeflow",
        "idle_clauses",
        "unreadable_tables",
    ):
        monkeypatch.setattr(linter, name, lambda _: ())
    flows = [SimpleNamespace(name=name, target=name) for name in ("history", "history_current", "unresolved")]
    pipeline: Any = SimpleNamespace(
        registry=SimpleNamespace(flows=lambda: flows, datasets=lambda: ()),
        manifest=SimpleNamespace(
            flows=(FlowEntry(name="history", target="history", streaming=True),), tables=()
        ),
        evaluation=SimpleNamespace(frames={"history": None, "history_current": None}, reads_of={}),
        dataset=lambda name: name,
    )
    assert list(linter._findings(pipeline, {})) == []
    assert asked == ["history"]
