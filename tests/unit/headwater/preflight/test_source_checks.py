"""A file source's list of files is its position: an entry that is missing, or another batch's, is noticed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.headwater.preflight.test_kafka_checks import Broker

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.checkpoints.newest_files import newest_files
from headwater.definitions.source import SourceKind
from headwater.preflight.flow_start import FlowStart, StreamSource
from headwater.preflight.source_checks import file_log_was_lost, source_identity


def start(folder: Path, last: int) -> FlowStart:
    """A flow that stands at an entry of its file log, whose entries up to it are there."""
    checkpoint = FlowCheckpoint(folder)
    epoch = checkpoint.epoch_folder(0)
    for name in ("offsets", "commits", "sources/0"):
        (epoch / name).mkdir(parents=True)
    (epoch / "offsets" / "0").write_text("\n".join(["v1", "{}", json.dumps({"logOffset": last})]))
    (epoch / "commits" / "0").write_text("v1\n{}")
    for number in range(last + 1):
        enter(epoch / "sources" / "0" / str(number), number)
    source = StreamSource(SourceKind.FILES, "f")
    return FlowStart("p", "f", "d", checkpoint, FlowState(), None, None, sources=(source,))


def enter(file: Path, *batches: int) -> None:
    """An entry that names a file for each of these batches."""
    entries = [{"path": f"file:///in/{batch}", "timestamp": 1, "batchId": batch} for batch in batches]
    file.write_text("\n".join(["v1", *map(json.dumps, entries)]))


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_an_entry_that_is_missing(tmp_path: Path, gone: int):
    """The first, one between, and the last one: its files would be read again."""
    one = start(tmp_path, 2)
    assert not list(file_log_was_lost(one))
    (one.folder / "sources" / "0" / str(gone)).unlink()
    (damage,) = file_log_was_lost(one)
    assert damage.evidence == (f"entries that are missing: [{gone}]", "position: entry 2")


@pytest.mark.parametrize(
    ("batches", "fault"), [((2,), "names files of batch 2"), ((1, 0), "names files of batch 0"), ((), "names no file")]
)  # fmt: skip
def test_an_entry_that_is_another_ones(tmp_path: Path, batches: tuple[int, ...], fault: str):
    """A copy of an entry under another number lists files twice, and others not at all."""
    one = start(tmp_path, 2)
    enter(one.folder / "sources" / "0" / "1", *batches)
    (damage,) = file_log_was_lost(one)
    assert damage.evidence[0] == f"entry 1 {fault}"


@pytest.mark.parametrize(
    ("recorded", "found"), [([1, "/in/1"], False), ([1, "/other/1"], True), ([7, "/other/7"], False), (None, False)]
)  # fmt: skip
def test_an_entry_of_another_flow(tmp_path: Path, recorded: list[Any] | None, found: bool):
    """A log that was copied from another flow has the same numbers: it lacks the file that the last run has recorded of that entry."""
    one = start(tmp_path, 2)
    one = replace(one, state=FlowState(newest_files={"0": recorded} if recorded else {}))
    faults = [damage.evidence[0] for damage in file_log_was_lost(one)]
    assert faults == (["entry 1 names other files than after the last run"] if found else [])


@pytest.mark.parametrize(
    ("position", "before", "newest"),
    [
        (2, {}, {"0": [2, "/in/2"]}),
        (2, {"0": [1, "/in/1"]}, {"0": [2, "/in/2"]}),
        (2, {"0": [2, "/in/of-before"]}, {"0": [2, "/in/of-before"]}),
        (3, {"0": [2, "/in/2"]}, {}),
    ],
    ids=["first", "grown", "the same", "compacted"],
)
def test_what_is_recorded_of_a_log(
    tmp_path: Path, position: int, before: dict[str, Any], newest: dict[str, Any]
):
    """The newest entry that is done, and a file of it; an entry that is known is not read again."""
    folder = start(tmp_path, 2).folder
    (folder / "offsets" / "0").write_text("\n".join(["v1", "{}", json.dumps({"logOffset": position})]))
    assert newest_files(folder, before) == newest


def test_a_table_has_no_file_log(tmp_path: Path):
    """Nothing is recorded of sources that are no files, nor before the first batch."""
    folder = start(tmp_path, 2).folder
    assert newest_files(tmp_path / "none", {}) == {}
    (folder / "offsets" / "0").write_text("\n".join(["v1", "{}", json.dumps({"reservoirVersion": 3}), "-"]))
    assert newest_files(folder, {}) == {}


def test_what_a_broker_says_now_counts():
    """Topics that it does not name now keep their ids of before; of the others the new ids are recorded."""
    source = StreamSource(
        SourceKind.KAFKA, "t", options={"subscribe": "a,b"}, topics=Broker(known={"a": "new"})
    )
    seen = {"topics": {"a": "old", "b": "old"}}
    assert source_identity(source, seen)["topics"] == {"a": "new", "b": "old"}
