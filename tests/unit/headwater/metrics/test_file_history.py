"""Which files were taken in, and when: read from the checkpoint alone where the event log has nothing."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from headwater.checkpoints.layout import flow_checkpoint
from headwater.metrics.file_history import ingested_files
from headwater.metrics.file_listing import list_files


def write(path: Path, text: str, modified: int | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if modified is not None:
        os.utime(path, (modified, modified))


def log(*entries: tuple[str, int]) -> str:
    lines = [
        json.dumps({"path": f"file:{path}", "timestamp": 5000, "batchId": batch}) for path, batch in entries
    ]
    return "\n".join(["v1", *lines])


def test_states_and_times(tmp_path: Path):
    """A file belongs to the first batch that ends behind it; what is not committed is in flight."""
    checkpoint = flow_checkpoint(tmp_path, "t", "f")
    checkpoint.update_state(epoch=2)
    folder = checkpoint.epoch_folder(2)
    write(folder / "sources/0/0", log(("/in/a", 0), ("/in/old", 0)))
    write(folder / "sources/0/1", log(("/in/b?superseded=5000", 1)))
    write(folder / "sources/0/2", log(("/in/c", 2)))
    write(folder / "offsets/0", 'v1\n{}\n{"logOffset":0}')
    write(folder / "offsets/1", 'v1\n{}\n{"logOffset":1}')
    write(folder / "commits/0", "v1\n{}", modified=1000)
    write(folder / "commits/1", "v1\n{}", modified=2000)
    write(checkpoint.folder / "existing-2-in-1.json", '["/in/old"]')
    files = {f.path: (f.state, f.batch, f.ingested_at) for f in ingested_files(tmp_path, "t", "f")}
    assert files == {
        "/in/a": ("ingested", 0, datetime.fromtimestamp(1000, UTC)),
        "/in/old": ("skipped", 0, datetime.fromtimestamp(1000, UTC)),
        "/in/b": ("superseded", 1, datetime.fromtimestamp(2000, UTC)),
        "/in/c": ("in flight", None, None),
    }


def test_nothing_yet(tmp_path: Path):
    """A flow that never ran, or reads no files, has none."""
    assert ingested_files(tmp_path, "t", "f") == []
    write(flow_checkpoint(tmp_path, "t", "f").epoch_folder(0) / "sources/0/0", '\0v1\n{"topic":{"0":1}}')
    assert ingested_files(tmp_path, "t", "f") == []


def test_listing_by_time(tmp_path: Path):
    """modifiedAfter and modifiedBefore leave files out, at UTC where no zone is given."""
    write(tmp_path / "a", "", modified=0)
    write(tmp_path / "b", "", modified=1_000_000_000)
    names = [Path(f.path).name for f in list_files(str(tmp_path), {"modifiedAfter": "2001-01-01T00:00:00"})]
    assert names == ["b"]
    names = [
        Path(f.path).name for f in list_files(str(tmp_path), {"modifiedBefore": "2001-01-01T00:00:00+01:00"})
    ]
    assert names == ["a"]


def test_bounds_of_time_are_outside_by_the_millisecond(tmp_path: Path):
    """A file changed in the millisecond that is named is neither after nor before it, as Spark compares."""
    write(tmp_path / "a", "", modified=1_000_000_000)
    os.utime(tmp_path / "a", ns=(0, 1_000_000_000_000_400_000))
    moment = "2001-09-09 01:46:40.000 UTC+0"
    assert list_files(str(tmp_path), {"modifiedAfter": moment}) == []
    assert list_files(str(tmp_path), {"modifiedBefore": moment}) == []
