"""The files of flows as rows, asked for by a table, a flow, or the folder of a checkpoint."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.headwater.metrics.test_file_history import log, write

from headwater.checkpoints.layout import flow_checkpoint
from headwater.errors import UnknownDataset
from headwater.graph.manifest import FlowEntry, Manifest
from headwater.metrics.file_states import COLUMNS, file_states

MANIFEST = Manifest(
    headwater_version="0", pipeline_id="p", pipeline_name="p", schema_name="shop", catalog="main", source_hash="", datasets=(),
    flows=(FlowEntry(name="web", target="orders", streaming=True), FlowEntry(name="app", target="orders", streaming=True),
           FlowEntry(name="other", target="more.t", streaming=True)),
)  # fmt: skip


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    """Two flows of one table that have read files, one of them not to its end."""
    for flow in ("web", "app"):
        folder = flow_checkpoint(tmp_path, "orders", flow).epoch_folder(0)
        write(folder / "sources/0/0", log((str(tmp_path / f"{flow}.json"), 0)))
        write(folder / "offsets/0", 'v1\n{}\n{"logOffset":0}')
        write(tmp_path / f"{flow}.json", "12345")
        os.utime(tmp_path / f"{flow}.json", (5, 5))
    write(flow_checkpoint(tmp_path, "orders", "web").epoch_folder(0) / "commits/0", "v1\n{}", modified=1000)
    return tmp_path


@pytest.mark.parametrize(
    ("asked", "flows"),
    [
        ("orders", ["web", "app"]), ("shop.orders", ["web", "app"]), ("MAIN.shop.Orders", ["web", "app"]), ("web", ["web"]),
        ("{}/checkpoints/orders", ["web", "app"]), ("file:{}/checkpoints/orders/app", ["app"]), ("{}/checkpoints/orders/app/", ["app"]),
        ("more.t", []),
    ],
)  # fmt: skip
def test_who_is_meant(storage: Path, asked: str, flows: list[str]):
    """Names in any letter case, with and without the parts in front; folders at any height."""
    assert [row[10] for row in file_states(storage, MANIFEST, asked.format(storage))] == flows


def test_what_is_known(storage: Path):
    """The columns of Auto Loader's function; what nobody knows is NULL."""
    done, waits = file_states(storage, MANIFEST, "orders")
    changed = datetime.fromtimestamp(5, UTC)
    committed = datetime.fromtimestamp(1000, UTC)
    assert len(done) == COLUMNS.count(",") + 1
    assert done == (
        str(storage / "web.json"),
        5,
        changed,
        None,
        None,
        committed,
        None,
        None,
        None,
        "0",
        "web",
        "INGESTED",
        0,
    )
    assert (waits[5], waits[11], waits[12]) == (None, "IN_FLIGHT", None)
    (storage / "web.json").write_text("written again")
    (storage / "app.json").unlink()
    assert [row[1] for row in file_states(storage, MANIFEST, "orders")] == [None, None]


@pytest.mark.parametrize("asked", ["nothing", "/", "/elsewhere", "orders/web", ""])
def test_nobody_is_meant(storage: Path, asked: str):
    """It is refused with the names of the flows; an upper folder of all pipelines is no answer either."""
    with pytest.raises(UnknownDataset) as caught:
        file_states(storage, MANIFEST, asked)
    assert "web, app, other" in caught.value.remedy
