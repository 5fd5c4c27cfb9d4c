"""With includeExistingFiles off, only what was there at the first start is left out, however the folder is spelled later."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.checkpoints.layout import FlowCheckpoint, flow_checkpoint
from headwater_spark.sources.cloud_files.new_files import file_uri, listed
from headwater_spark.sources.cloud_files.options import parse_options
from headwater_spark.sources.cloud_files.start import _existing


@pytest.fixture
def checkpoint(tmp_path: Path) -> FlowCheckpoint:
    """The checkpoint of a flow over a folder with one file."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "old.json").write_text("{}")
    return flow_checkpoint(tmp_path / "state", "t", "f")


def skipped(checkpoint: FlowCheckpoint, key: str) -> tuple[str, ...]:
    """What a start leaves out."""
    folder = checkpoint.folder.parents[3] / "in"
    return _existing(
        checkpoint, key, listed(str(folder), parse_options({"cloudFiles.format": "json"}, schema_given=True))
    )


def commit(checkpoint: FlowCheckpoint, *files: Path) -> None:
    """A batch that has taken these files in."""
    epoch = checkpoint.epoch_folder(0)
    for name in ("offsets", "commits", "sources/0"):
        (epoch / name).mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"path": file.as_uri(), "timestamp": 1, "batchId": 0}) for file in files]
    (epoch / "sources/0/0").write_text("\n".join(["v1", *lines]))
    (epoch / "offsets/0").write_text('v1\n{}\n{"logOffset":0}')
    (epoch / "commits/0").write_text("v1\n{}")


def test_another_spelling_leaves_out_no_more(checkpoint: FlowCheckpoint, tmp_path: Path):
    """The key of a read depends on its spelling: under another one, a file that came since is not taken for an existing one."""
    old, new = tmp_path / "in" / "old.json", tmp_path / "in" / "new.json"
    assert skipped(checkpoint, "a") == (file_uri(str(old)),)
    new.write_text("{}")
    assert skipped(checkpoint, "a") == (file_uri(str(old)),)
    commit(checkpoint, old)
    assert skipped(checkpoint, "b") == ()


def test_what_no_batch_has_taken_yet_is_still_left_out(checkpoint: FlowCheckpoint, tmp_path: Path):
    """Batches of a few files: the existing ones that are left stay left out under the other spelling."""
    more, new = tmp_path / "in" / "more.json", tmp_path / "in" / "new.json"
    more.write_text("{}")
    assert len(skipped(checkpoint, "a")) == 2
    commit(checkpoint, tmp_path / "in" / "old.json")
    new.write_text("{}")
    assert file_uri(str(new)) not in skipped(checkpoint, "b")
    assert file_uri(str(more)) in skipped(checkpoint, "b")
