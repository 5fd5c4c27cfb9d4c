"""A file source's list of files is its position: an entry that is missing, or another batch's, is noticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.headwater.preflight.test_kafka_checks import Broker

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
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


def test_what_a_broker_says_now_counts():
    """Topics that it does not name now keep their ids of before; of the others the new ids are recorded."""
    source = StreamSource(
        SourceKind.KAFKA, "t", options={"subscribe": "a,b"}, topics=Broker(known={"a": "new"})
    )
    seen = {"topics": {"a": "old", "b": "old"}}
    assert source_identity(source, seen)["topics"] == {"a": "new", "b": "old"}
