"""Versions of snapshots, as they are remembered between updates."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from tests.unit.headwater_spark.written_table import commit

from headwater.checkpoints.flow_identity import FlowIdentity
from headwater.checkpoints.snapshot_versions import (
    VERSION_KEY,
    SnapshotPosition,
    SnapshotVersions,
    decoded,
    encoded,
)


@pytest.mark.parametrize(
    "version",
    [3, 2.5, "2026-01", date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5, 6, UTC), Decimal("1.50"), None],
)
def test_a_version_comes_back_as_it_was(version: object):
    """Through JSON a version keeps its type and its value: the user's function is given what it returned."""
    back = decoded(json.loads(json.dumps(encoded(version))))
    assert (back, type(back)) == (version, type(version))


@pytest.mark.parametrize("version", [True, [1], b"1"])
def test_what_is_no_version(version: object):
    """A boolean or a list has no order worth the name."""
    with pytest.raises(TypeError, match="not a type for versions"):
        encoded(version)


def test_the_position_in_the_file(tmp_path: Path):
    """What is intended is kept apart from what is done, and another epoch does not see it."""
    versions = SnapshotVersions(tmp_path / "snapshots.json", "p.f@0")
    assert versions.read() is None
    begun = versions.intend(SnapshotPosition(), "a")
    assert versions.read() == begun == SnapshotPosition(-1, None, (0, "a"))
    assert versions.done(begun) == versions.read() == SnapshotPosition(0, "a")
    assert SnapshotVersions(versions.path, "p.f@1").read() is None
    assert SnapshotVersions(versions.path, "").read() == SnapshotPosition(0, "a")


def test_the_position_from_the_table(tmp_path: Path):
    """Where the file is lost, the newest commit of the flow's epoch tells the position."""
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    commits = [(0, 0, "a"), (0, 1, "b"), (1, 0, "c")]
    for number, (epoch, batch, version) in enumerate(commits):
        metadata = {
            "pipeline": "p",
            "flow": "f",
            "epoch": epoch,
            "batch": batch,
            VERSION_KEY: encoded(version),
        }
        info = {"commitInfo": {"userMetadata": json.dumps(metadata)}}
        (log / f"{number:020d}.json").write_text(json.dumps(info, separators=(",", ":")) + "\n")
    versions = SnapshotVersions(tmp_path / "snapshots.json", "p.f@0")
    assert versions.in_table(tmp_path / "t", FlowIdentity("p", "f"), 0) == SnapshotPosition(1, "b")
    assert versions.in_table(tmp_path / "t", FlowIdentity("p", "other"), 0) is None


def test_the_newest_snapshot_by_its_number(tmp_path: Path):
    """Versions of texts and numbers have orders of their own: 10 is not before 9."""
    for number, version in enumerate((9, 10, 100)):
        metadata = {"pipeline": "p", "flow": "f", "epoch": 0, "batch": number, VERSION_KEY: encoded(version)}
        commit(tmp_path / "t", metadata=metadata)
    commit(
        tmp_path / "t",
        metadata={"pipeline": "p", "flow": "f", "epoch": 1, "batch": 7, VERSION_KEY: encoded(999)},
    )
    versions = SnapshotVersions(tmp_path / "versions.json", "p.f@0")
    position = versions.in_table(tmp_path / "t", FlowIdentity("p", "f"), 0)
    assert position is not None
    assert (position.number, position.version) == (2, 100)


def test_a_time_is_stored_in_utc():
    """Also one without a zone, which is local time: whoever compares it later may be elsewhere."""
    stored = encoded(datetime(2026, 1, 1, 12))  # noqa: DTZ001 - as users give it
    assert stored is not None
    assert stored["value"].endswith("+00:00")
    assert decoded(stored) == datetime(2026, 1, 1, 12).astimezone(UTC)
