"""Which snapshot a pipeline's columns are learnt from."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, StructField, StructType
from tests.unit.headwater_spark.written_table import commit

from headwater.checkpoints.conditions import FlowStateDamaged
from headwater.definitions.change_flow import ChangeFlow
from headwater.definitions.snapshot_flow import SnapshotFlow
from headwater_spark.resolution import snapshot_calls
from headwater_spark.resolution.snapshot_calls import first_snapshot, snapshots_file

STORED = StructType([StructField("id", IntegerType()), StructField("__START_AT", IntegerType())])


def asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The columns of a flow whose function must not be called."""

    def called(*_: object) -> None:
        pytest.fail("it was asked for a snapshot after a version that nobody knows")

    monkeypatch.setattr(snapshot_calls, "requested_snapshot", called)
    monkeypatch.setattr(snapshot_calls, "_nothing", lambda kind: kind)
    session = SimpleNamespace(
        read=SimpleNamespace(load=lambda *_, **__: SimpleNamespace(schema=STORED)),
        createDataFrame=lambda _, schema: schema,
    )
    calls: Any = SimpleNamespace(state_folder=folder, session=session, table_path=lambda _: folder / "stock")
    changes = ChangeFlow(source="", keys=("id",), sequence_by=None)
    flow: Any = SimpleNamespace(
        name="stock",
        target="stock",
        location=None,
        snapshots=SnapshotFlow(changes, following=lambda _: None),
    )
    file = snapshots_file(calls, flow, "").path
    assert isinstance(file, Path)
    file.parent.mkdir(parents=True)
    file.write_text('{"numb')
    dataset: Any = SimpleNamespace(name="stock", schema=None, location=None)
    return first_snapshot(calls, flow, dataset)


def test_where_the_record_of_versions_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The table's columns do, and the start of this one flow deals with the record: the pipeline's other tables are not refused for it."""
    commit(tmp_path / "stock")
    frame, changes = asked(tmp_path, monkeypatch)
    assert (frame.names, changes.sequence_by) == (["id"], IntegerType())


def test_where_there_is_no_table_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing says what the columns are, and the error names the file."""
    with pytest.raises(FlowStateDamaged, match="can't be read"):
        asked(tmp_path, monkeypatch)
