"""What is known of a flow before it starts: which batches its table has, and how it is spoken of."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.headwater_spark.written_table import commit

from headwater.checkpoints.flow_identity import FlowIdentity
from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.preflight.flow_start import FlowStart, StreamSource


def start(root: Path, *, recorded: str | None = None, own: str | None = None, **more: Any) -> FlowStart:
    """A flow in epoch 2 whose state has recorded a query, and whose checkpoint has one of its own."""
    checkpoint = FlowCheckpoint(root / "checkpoints" / "orders" / "f")
    one = FlowStart("p", "f", "orders", checkpoint, FlowState(epoch=2, query_id=recorded), root / "t", "id")
    one.folder.mkdir(parents=True)
    if own is not None:
        (one.folder / "metadata").write_text(json.dumps({"id": own}))
    return replace(one, known_identity=FlowIdentity("p", "f"), **more)


@pytest.mark.parametrize(
    ("transactions", "written"),
    [
        ({}, None),
        ({"recorded": 3}, 3),
        ({"own": 4}, 4),
        ({"p.f@2": 5}, 5),
        ({"recorded": 3, "own": 4, "p.f@2": 0}, 4),
        ({"p.f@1": 9, "p.g@2": 9, "other": 9}, None),
        ({"recorded": 0}, 0),
    ],
)
def test_the_last_batch_that_a_table_has(tmp_path: Path, transactions: dict[str, int], written: int | None):
    """Under each id of the live epoch: that of its query, as recorded or as its checkpoint has it, and its own."""
    commit(tmp_path / "t", transactions=transactions)
    assert start(tmp_path, recorded="recorded", own="own").written == written


@pytest.mark.parametrize("lacks", [{"table": None}, {"sink_id": None}, {"table": Path("gone")}])
def test_a_table_that_says_nothing(tmp_path: Path, lacks: dict[str, Any]):
    """Without a table, or one that is not there, no batch is known to be written."""
    commit(tmp_path / "t", transactions={"own": 4})
    one = start(tmp_path, own="own", **lacks)
    assert one.written is None
    assert one.repeatable is (one.table is not None)


def test_a_checkpoint_without_a_query(tmp_path: Path):
    """Damaged, it hides its own id, and no other."""
    commit(tmp_path / "t", transactions={"recorded": 3})
    one = start(tmp_path, recorded="recorded")
    (one.folder / "metadata").write_text("{")
    assert one.written == 3


def test_batches_in_order(tmp_path: Path):
    """Those that are planned, and those that are done."""
    one = start(tmp_path)
    for log, batches in (("offsets", (10, 2, 9)), ("commits", (9, 2))):
        (one.folder / log).mkdir()
        for batch in batches:
            (one.folder / log / str(batch)).write_text("")
        (one.folder / log / ".3.crc").write_text("")
    assert (one.planned, one.committed) == ([2, 9, 10], [2, 9])


def test_what_a_remedy_begins_with(tmp_path: Path):
    """A copy is restored where there is one."""
    with_copy, without = (
        start(tmp_path, has_copy=lambda: True),
        replace(start(tmp_path / "2"), has_copy=lambda: False),
    )
    assert with_copy.restoring("begin anew").startswith(
        "Restore a snapshot: headwater repair PIPELINE_DIR f --action restore; or begin"
    )
    assert without.restoring("begin anew") == "Begin anew"


@pytest.mark.parametrize(
    ("value", "on"), [("true", True), ("TRUE", True), ("false", False), ("1", False), (None, False)]
)
def test_an_option_that_is_on(value: str | None, on: bool):
    """In whatever case its name and value are written."""
    options = {} if value is None else {"ReadChangeFeed": value}
    assert StreamSource(None, "t", options=options).on("readChangeFeed") is on  # type: ignore[arg-type]
