"""Which snapshot a pipeline's columns are learnt from."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.written_table import commit

from headwater.checkpoints.snapshot_versions import VERSION_KEY, encoded
from headwater.definitions.change_flow import ChangeFlow
from headwater.definitions.snapshot_flow import SnapshotFlow
from headwater_spark.resolution import snapshot_calls
from headwater_spark.resolution.snapshot_calls import first_snapshot, snapshots_file


@pytest.mark.parametrize(("versions", "latest"), [((), None), ((None,), None), ((7, 8), 8), ((7, None), 7)])
def test_where_the_record_of_versions_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, versions: tuple[int | None, ...], latest: int | None
):
    """The flow's function is asked for what follows the table's newest snapshot: the other tables of the pipeline are not refused for it."""
    asked: list[object] = []

    def following(_: object, __: object, version: object) -> Any:
        asked.append(version)
        return SimpleNamespace(frame="rows", kind="bigint")

    monkeypatch.setattr(snapshot_calls, "requested_snapshot", following)
    monkeypatch.setattr(snapshot_calls, "_nothing", lambda kind: kind)
    for version in versions:
        commit(tmp_path / "stock", metadata={} if version is None else {VERSION_KEY: encoded(version)})
    calls: Any = SimpleNamespace(state_folder=tmp_path, table_path=lambda _: tmp_path / "stock")
    changes = ChangeFlow(source="", keys=("id",), sequence_by=None)
    flow: Any = SimpleNamespace(target="stock", snapshots=SnapshotFlow(changes, following=lambda _: None))
    file = snapshots_file(calls, flow, "").path
    assert isinstance(file, Path)
    file.parent.mkdir(parents=True)
    file.write_text('{"numb')
    assert first_snapshot(calls, flow, SimpleNamespace())[0] == "rows"  # type: ignore[arg-type,comparison-overlap]
    assert asked == [latest]
