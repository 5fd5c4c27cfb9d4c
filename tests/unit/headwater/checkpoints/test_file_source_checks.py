"""Files of a batch that did not end are looked for before it comes again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.checkpoints.file_source_checks import planned_files_are_gone
from headwater.checkpoints.flow_start import FlowStart, StreamSource
from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.definitions.source import SourceKind


def start(folder: Path, *, committed: int, **options: str) -> FlowStart:
    """A flow with two planned batches of one file each; both files are there."""
    checkpoint = FlowCheckpoint(folder / "flow")
    epoch = checkpoint.epoch_folder(0)
    for name in ("offsets", "commits", "sources/0"):
        (epoch / name).mkdir(parents=True)
    for batch in range(2):
        file = folder / f"in put{batch}.json"
        file.write_text("{}")
        entry = {"path": file.as_uri(), "timestamp": 1, "batchId": batch}
        (epoch / "sources/0" / str(batch)).write_text(f"v1\n{json.dumps(entry)}")
        (epoch / "offsets" / str(batch)).write_text(f'v1\n{{}}\n{{"logOffset":{batch}}}')
        if batch <= committed:
            (epoch / "commits" / str(batch)).write_text("v1\n{}")
    source = StreamSource(SourceKind.FILES, "input", path=str(folder), options=options)
    return FlowStart("p", "f", "d", checkpoint, FlowState(), None, None, sources=(source,))


@pytest.mark.parametrize(
    ("committed", "deleted", "found"), [(0, 1, True), (0, 0, False), (1, 1, False), (-1, 1, True)]
)
def test_only_files_that_will_be_read(tmp_path: Path, committed: int, deleted: int, found: bool):
    """A file of the planned batch is missed; one that was read already is not."""
    flow = start(tmp_path, committed=committed)
    assert list(planned_files_are_gone(flow)) == []
    (tmp_path / f"in put{deleted}.json").unlink()
    damages = list(planned_files_are_gone(flow))
    assert [damage.condition for damage in damages] == ["SOURCE_FILES_GONE"] * found
    if found:
        assert "batch 1 of 'f'" in damages[0].error.what
        assert "--from-time TIME" in damages[0].error.remedy


def test_who_wants_to_go_on(tmp_path: Path):
    """With Spark's own option nothing is said: it leaves such files out."""
    flow = start(tmp_path, committed=0, ignoreMissingFiles="true")
    (tmp_path / "in put1.json").unlink()
    assert list(planned_files_are_gone(flow)) == []
