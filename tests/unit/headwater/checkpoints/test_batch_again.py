"""A copy of a checkpoint that runs one batch again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.checkpoints.batch_again import changed_files, lay_out_batch
from headwater.checkpoints.offsets import query_id
from headwater.errors import CheckpointUnreadable


@pytest.fixture
def epoch(tmp_path: Path) -> Path:
    """A checkpoint with batches 0 to 3, all marked as done, that keeps state and reads files."""
    folder = tmp_path / "flow" / "0"
    texts = {f"{log}/{number}": f"{log} {number}" for log in ("offsets", "commits") for number in range(4)}
    texts |= {
        "metadata": '{"id": "of-the-flow"}',
        "sources/0/0": "files",
        "sources/0/1.compact": "files",
        "state/0/0/3.delta": "s",
    }
    texts |= {"offsets/.3.crc": "x", "state/0/0/.3.delta.crc": "x", "offsets/.4.abc.tmp": "x"}
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_batch_is_planned_and_not_done(epoch, tmp_path):
    """The copy has the plans up to the batch and the marks before it, the state, and the id of another query."""
    before = files(epoch)
    copy = tmp_path / "copy"
    lay_out_batch(epoch, 2, copy)
    assert files(copy) == [
        *("commits/0", "commits/1", "metadata", "offsets/0", "offsets/1", "offsets/2"),
        *("sources/0/0", "sources/0/1.compact", "state/0/0/3.delta"),
    ]
    assert files(epoch) == before
    assert query_id(copy) not in (None, query_id(epoch))


def test_what_is_replaced_in_the_copy_stays_in_the_original(epoch, tmp_path):
    """Files are replaced by renaming, as Spark does it: the linked original keeps its text."""
    copy = tmp_path / "copy"
    lay_out_batch(epoch, 3, copy)
    (copy / "new").write_text("other")
    (copy / "new").rename(copy / "state/0/0/3.delta")
    (copy / "offsets/3").write_text("other")
    assert (epoch / "state/0/0/3.delta").read_text() == "s"
    assert (epoch / "offsets/3").read_text() == "offsets 3"


def test_a_copy_is_made_from_scratch(epoch, tmp_path):
    """What a killed driver left of an earlier copy is not taken over."""
    copy = tmp_path / "copy"
    lay_out_batch(epoch, 3, copy)
    lay_out_batch(epoch, 0, copy)
    assert [name for name in files(copy) if name.startswith("offsets")] == ["offsets/0"]
    assert not list((copy / "commits").iterdir())


@pytest.mark.parametrize("gone", ["0", "1"])
def test_a_plan_that_is_gone(epoch, tmp_path, gone):
    """Without the plan of the batch, or of the one before it, what it read can't be known; nothing is copied."""
    (epoch / "offsets" / gone).unlink()
    with pytest.raises(CheckpointUnreadable, match=f"no batch {gone}"):
        lay_out_batch(epoch, 1, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_files_that_changed_since_the_batch_are_named(tmp_path):
    """Of the batch's files alone: one that is gone, one that was written again, not one that is as it was."""
    files = [tmp_path / name for name in ("earlier", "same", "gone", "rewritten", "later")]
    entries = []
    for file in files:
        file.write_text("x")
        batch = {"earlier": 0, "later": 2}.get(file.name, 1)
        times = file.stat().st_mtime_ns // 1_000_000 - (file.name == "rewritten")
        entries.append((batch, {"path": file.as_uri(), "timestamp": times, "batchId": batch}))
    for name in ("earlier", "gone", "later"):
        (tmp_path / name).unlink()
    epoch = tmp_path / "0"
    for batch in range(3):
        lines = [json.dumps(entry) for number, entry in entries if number == batch]
        write(epoch / "sources/0" / str(batch), "v1", *lines)
        write(
            epoch / "offsets" / str(batch), "v1", "{}", json.dumps({"logOffset": batch}), '{"topic":{"0":3}}'
        )
    assert changed_files(epoch, 1) == [str(tmp_path / "gone"), str(tmp_path / "rewritten")]
    assert changed_files(epoch, 0) == [str(tmp_path / "earlier")]


def write(file: Path, *lines: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines))
