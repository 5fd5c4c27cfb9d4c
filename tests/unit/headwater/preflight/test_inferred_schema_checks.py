"""Columns that were inferred from files are looked at by who asks whether all is well."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.checkpoints.conditions import StorageNotReadable
from headwater.checkpoints.inferred_schemas import locations_of, schema_file, schema_location
from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.doctor.start_facts import queries_of
from headwater.preflight.checks import CHECKS, CHECKS_OF_ONCE_FLOWS, CHECKS_OF_VIEWS, examine
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.inferred_schema_checks import inferred_schema_is_damaged

WHOLE = json.dumps({"version": 0, "schema": {"type": "struct", "fields": [{"name": "id", "type": "long"}]}})


@pytest.fixture
def start(tmp_path: Path) -> FlowStart:
    """A deep look at a flow that reads one folder by itself and one through a view."""
    for query, version in (("bronze", 0), ("bronze", 1), ("raw", 0)):
        write(tmp_path, query, version, WHOLE)
    checkpoint = FlowCheckpoint(tmp_path / "checkpoints" / "bronze" / "bronze")
    flow = FlowStart("p", "bronze", "bronze", checkpoint, FlowState(), None, None)
    return replace(flow, deep=True, schemas=lambda: locations_of(tmp_path, ("bronze", "raw", "none")))


def write(state: Path, query: str, version: int, text: str) -> Path:
    file = schema_file(schema_location(state, query, "landing-1"), version)
    assert isinstance(file, Path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize("query", ["bronze", "raw"])
@pytest.mark.parametrize("text", ["", WHOLE[:-9], "{}", '{"schema": []}', '{"schema": {"fields": [{}]}}'])
def test_damaged(tmp_path: Path, start: FlowStart, query: str, text: str):
    """The file in force is named, of a view that the flow reads, too; a start, which reads it anyway, does not look twice."""
    assert examine(start, (inferred_schema_is_damaged,)) == []
    file = write(tmp_path, query, 1, text)
    (damage,) = examine(start, (inferred_schema_is_damaged,))
    assert (damage.condition, damage.error.where) == ("CHECKPOINT_UNREADABLE", str(file))
    assert "Restore it from a backup, or remove it" in damage.error.remedy
    assert damage.blocks
    assert examine(replace(start, deep=False), (inferred_schema_is_damaged,)) == []


def test_no_right(monkeypatch: pytest.MonkeyPatch, start: FlowStart):
    """A file that may not be read is no damage."""

    def denied(self: Path, *_: Any, **__: Any) -> str:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_text", denied)
    (damage,) = examine(start, (inferred_schema_is_damaged,))
    assert isinstance(damage.error, StorageNotReadable)


def test_all_kinds_of_flows_are_looked_at():
    """Streams, flows that run once, and materialized views read files."""
    assert all(
        inferred_schema_is_damaged in checks for checks in (CHECKS, CHECKS_OF_ONCE_FLOWS, CHECKS_OF_VIEWS)
    )


def test_whose_reads_they_are():
    """A flow's own query, and those of the views that it reads, however deep; not those of tables."""
    flows = [
        SimpleNamespace(name=name, target=name, inputs=inputs)
        for name, inputs in (
            ("silver", ("clean", "bronze")),
            ("clean", ("raw",)),
            ("raw", ()),
            ("bronze", ()),
        )
    ]
    manifest: Any = SimpleNamespace(
        outputs=[SimpleNamespace(name=name) for name in ("silver", "bronze")],
        flows_into=lambda name: [flow for flow in flows if flow.target == name],
    )
    assert queries_of(manifest, flows[0]) == ["silver", "clean", "raw"]  # type: ignore[arg-type]
