"""Damaged records beside a table of changes are found before Spark starts, and made good from the table's log where it has what they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.headwater.preflight.started import started
from tests.unit.headwater_spark.written_table import commit

from headwater.checkpoints.change_record import change_record_file
from headwater.checkpoints.flow_role import FlowRole
from headwater.checkpoints.layout import change_memory
from headwater.checkpoints.snapshot_versions import VERSION_KEY, SnapshotPosition, SnapshotVersions, encoded
from headwater.preflight.checks import CHECKS, CHECKS_OF_ONCE_FLOWS, Check, examine, mended
from headwater.preflight.flow_start import FlowStart


def start_of(tmp_path: Path, role: FlowRole, *versions: int | None) -> FlowStart:
    """A start over a table with a commit for each snapshot; None is one whose commit does not say which it was."""
    table = tmp_path / "table"
    commit(table)
    for number, version in enumerate(versions):
        known = {} if version is None else {VERSION_KEY: encoded(version)}
        about = {"pipeline": "p", "flow": "orders", "epoch": 0, "batch": number, **known}
        commit(table, transactions={"p.orders@0": number}, metadata=about)
    return started(tmp_path, query=None, table=table, role=role, state={"query_id": None, "sink_id": None})


def damage(start: FlowStart, name: str) -> Path:
    """Cut a record off."""
    memory = change_memory(start.checkpoint.folder.parents[2], start.dataset)
    file = memory / name
    assert isinstance(file, Path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('{"numb')
    return file


def found(start: FlowStart, checks: tuple[Check, ...]) -> list[tuple[str, bool]]:
    return [(one.condition, one.mends_itself) for one in examine(start, checks)]


@pytest.mark.parametrize(
    ("role", "checks"), [(FlowRole.CHANGES, CHECKS), (FlowRole.SNAPSHOTS, CHECKS_OF_ONCE_FLOWS)]
)
def test_how_rows_were_made(tmp_path: Path, role: FlowRole, checks: tuple[Check, ...]):
    """A damaged record of keys and columns is named, with what can be done without a backup; nothing changes it."""
    start = start_of(tmp_path, role)
    assert ("FLOW_STATE_DAMAGED", False) not in found(start, checks)
    file = damage(start, change_record_file(tmp_path).name)
    assert ("FLOW_STATE_DAMAGED", False) in found(start, checks)
    (one,) = [one for one in examine(start, checks) if one.condition == "FLOW_STATE_DAMAGED"]
    assert "move it away" in str(one.error.remedy)
    assert file.read_text() == '{"numb'


@pytest.mark.parametrize(
    ("versions", "position"), [((7, 8), SnapshotPosition(1, 8)), ((), SnapshotPosition())]
)
def test_versions_of_snapshots(tmp_path: Path, versions: tuple[int, ...], position: SnapshotPosition):
    """The next start writes down what the table's log says: its last snapshot, or that there was none."""
    start = start_of(tmp_path, FlowRole.SNAPSHOTS, *versions)
    file = damage(start, "snapshots.json")
    assert found(start, CHECKS_OF_ONCE_FLOWS) == [("FLOW_STATE_DAMAGED", True)]
    assert len(mended(examine(start, CHECKS_OF_ONCE_FLOWS))) == 1
    assert SnapshotVersions(file, start.application).read() == position
    assert found(start, CHECKS_OF_ONCE_FLOWS) == []


def test_versions_that_the_log_does_not_have(tmp_path: Path):
    """Where the table has snapshots and its log does not say which, the start is refused and the file stays."""
    start = start_of(tmp_path, FlowRole.SNAPSHOTS, None)
    file = damage(start, "snapshots.json")
    assert found(start, CHECKS_OF_ONCE_FLOWS) == [("FLOW_STATE_DAMAGED", False)]
    assert file.read_text() == '{"numb'
