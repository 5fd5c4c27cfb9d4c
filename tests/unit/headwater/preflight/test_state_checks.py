"""The files of a state: what the next batch is built on has to be there, in every partition, for both kinds of stores."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.state_checks import (
    StateStore,
    newest_whole_batch,
    plan_was_changed,
    state_was_lost,
)

# After batch 3 the state is at version 4: made of one file, or of one and the changes upon it.
HEAP = ("1.delta", "2.delta", "2.snapshot", "3.delta", "4.delta")
ROCKSDB = ("1.zip", "2.changelog", "3.zip", "4.changelog")
UNIQUE = ("1_a.changelog", "2_b.changelog", "3_c.zip", "4_d.changelog")


def start(folder: Path, names: Iterable[str]) -> FlowStart:
    """A flow with four batches behind it, and a state of two partitions."""
    checkpoint = FlowCheckpoint(folder)
    epoch = checkpoint.epoch_folder(0)
    for name in ("offsets", "commits", "state/0/0", "state/0/1"):
        (epoch / name).mkdir(parents=True)
    for batch in range(4):
        (epoch / "offsets" / str(batch)).touch()
        (epoch / "commits" / str(batch)).touch()
    for name in names:
        for partition in "01":
            put(epoch / "state/0" / partition, name)
    state = FlowState(state_settings={"spark.sql.shuffle.partitions": "2"}, state_stores=("0/0", "0/1"))
    return FlowStart("p", "f", "d", checkpoint, state, None, None)


def put(folder: Path, name: str) -> None:
    """A file of a store; a packed one names a table that lies beside."""
    if not name.endswith(".zip"):
        (folder / name).touch()
        return
    table = f"{name}-0001.sst"
    with zipfile.ZipFile(folder / name, "w") as packed:
        packed.writestr("metadata", f'v1\n{{"sstFiles":[{{"dfsSstFileName":"{table}"}}]}}')
    (folder / "SSTs").mkdir(exist_ok=True)
    (folder / "SSTs" / table).touch()


@pytest.mark.parametrize(
    ("names", "gone", "newest"),
    [
        (HEAP, "4.delta", 2),
        (HEAP, "3.delta", 1),
        (HEAP, "1.delta", None),
        (HEAP, "2.snapshot", None),
        (ROCKSDB, "4.changelog", 2),
        (ROCKSDB, "3.zip", 1),
        (ROCKSDB, "1.zip", None),
        (UNIQUE, "4_d.changelog", 2),
        (UNIQUE, "3_c.zip", 1),
        (ROCKSDB, "SSTs/3.zip-0001.sst", 1),
        (ROCKSDB, "SSTs/1.zip-0001.sst", None),
    ],
)
def test_one_file_is_gone(tmp_path: Path, names: tuple[str, ...], gone: str, newest: int | None):
    """A missing file that the next batch needs is reported with the batch to go back to; other files are not."""
    flow = start(tmp_path, names)
    assert list(state_was_lost(flow)) == []
    assert newest_whole_batch(flow) == 3
    (flow.folder / "state/0/1" / gone).unlink()
    damages = list(state_was_lost(flow))
    assert [damage.condition for damage in damages] == ["STATE_LOST"] * (newest is not None)
    if damages:
        assert newest_whole_batch(flow) == newest
        assert "state/0/1" in damages[0].error.what
        assert f"newest batch with a whole state: {newest}" in damages[0].evidence
        assert "--action restore" in damages[0].error.remedy


def test_a_partition_is_gone(tmp_path: Path):
    """Also where the others are whole."""
    flow = start(tmp_path, HEAP)
    shutil.rmtree(flow.folder / "state/0/1")
    (damage,) = state_was_lost(flow)
    assert damage.condition == "STATE_LOST"
    assert newest_whole_batch(flow) is None


def test_without_state_nothing_is_missed(tmp_path: Path):
    """A flow that keeps none has no such folder."""
    flow = start(tmp_path, ())
    plain = FlowStart("p", "f", "d", flow.checkpoint, FlowState(), None, None)
    assert list(state_was_lost(plain)) == []


def test_the_files_that_a_version_is_made_of(tmp_path: Path):
    """The whole one that it starts from, and every change up to it, in order."""
    store = StateStore(tmp_path, {2: "2.snapshot"}, {number: f"{number}.delta" for number in range(1, 6)})
    assert [file.name for file in store.needed(4)] == ["2.snapshot", "3.delta", "4.delta"]
    assert [file.name for file in store.needed(2)] == ["2.snapshot"]
    assert [file.name for file in store.needed(1)] == ["1.delta"]
    assert store.needed(6) == []


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        (("a", "b"), ("a", "b"), False),
        (("a", "b"), ("b", "a"), True),
        (("a", "b"), ("a",), True),
        (("a",), (), True),
        (("a",), None, False),
        ((), ("a",), False),
    ],
)
def test_a_query_with_other_state(
    tmp_path: Path, before: tuple[str, ...], now: tuple[str, ...] | None, changed: bool
):
    """Operators lie in the state by their order: another order is another state; what is not known now or was not is no change."""
    flow = start(tmp_path, HEAP)
    flow = replace(flow, state=replace(flow.state, plan=before), plan=now)
    assert bool([*plan_was_changed(flow)]) is changed
