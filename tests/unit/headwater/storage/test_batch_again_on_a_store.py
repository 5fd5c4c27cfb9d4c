"""A copy of a checkpoint that runs one batch again, on S3."""

from __future__ import annotations

import itertools
import json

import pytest

from headwater.checkpoints.batch_again import changed_files, lay_out_batch
from headwater.checkpoints.offsets import query_id
from headwater.errors import CheckpointUnreadable
from headwater.storage.object_path import ObjectPath
from headwater.storage.walking import objects_below

_NUMBERS = itertools.count()


@pytest.fixture
def epoch(s3):
    """A checkpoint with batches 0 to 3, all marked as done, that keeps state and reads files; and marks of Hadoop's."""
    folder = s3.place("places", f"again-{next(_NUMBERS)}/flow/0")
    texts = {f"{log}/{number}": f"{log} {number}" for log in ("offsets", "commits") for number in range(4)}
    texts |= {
        "metadata": '{"id": "of-the-flow"}',
        "sources/0/0": "files",
        "state/0/0/3.delta": "s",
        "state/0/0/.3.x.tmp": "t",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    for name in ("state", "state/0", "sources"):
        s3.put_mark(folder / name)
    return folder


def names(folder: ObjectPath) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path, about in objects_below(folder) if about.st_size)


def test_the_batch_is_planned_and_not_done(epoch):
    """The copy has the plans up to the batch and the marks before it, the state, and the id of another query; nothing of a copy before it."""
    before = names(epoch)
    copy = epoch.with_name(".recount")
    lay_out_batch(epoch, 3, copy)
    lay_out_batch(epoch, 2, copy)
    assert names(copy) == [
        *("commits/0", "commits/1", "metadata", "offsets/0", "offsets/1", "offsets/2"),
        *("sources/0/0", "state/0/0/3.delta"),
    ]
    assert names(epoch) == before
    assert query_id(copy) not in (None, query_id(epoch))
    (copy / "state/0/0/3.delta").write_text("other")
    assert (epoch / "state/0/0/3.delta").read_text() == "s"


def test_a_plan_that_is_gone(epoch):
    """Nothing is copied where the plan of the batch before is gone."""
    (epoch / "offsets" / "0").unlink()
    with pytest.raises(CheckpointUnreadable, match="no batch 0"):
        lay_out_batch(epoch, 1, epoch.with_name(".recount"))
    assert not epoch.with_name(".recount").exists()


def test_files_of_a_store_that_changed_since_the_batch_are_named(epoch):
    """One that is gone and one that was written again; not one that is as it was."""
    files = [epoch.parent / "landing" / name for name in ("same", "gone", "rewritten")]
    entries = []
    for file in files:
        file.write_text("x")
        millis = file.stat().st_mtime_ns // 1_000_000 - 1000 * (file.name == "rewritten")
        entries.append(json.dumps({"path": str(file), "timestamp": millis, "batchId": 0}))
    files[1].unlink()
    (epoch / "sources" / "0" / "0").write_text("\n".join(["v1", *entries]))
    (epoch / "offsets" / "0").write_text('v1\n{}\n{"logOffset":0}')
    assert changed_files(epoch, 0) == [str(files[1]), str(files[2])]
