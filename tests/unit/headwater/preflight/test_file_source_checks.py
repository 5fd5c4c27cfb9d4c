"""Files of a batch that did not end are looked for before it comes again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.definitions.source import SourceKind
from headwater.preflight.file_source_checks import names_are_patterns, planned_files_are_gone
from headwater.preflight.flow_start import FlowStart, StreamSource


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
    ("committed", "deleted", "is_damage"), [(0, 1, True), (0, 0, False), (1, 1, False), (-1, 1, True)]
)
def test_only_files_that_will_be_read(tmp_path: Path, committed: int, deleted: int, is_damage: bool):
    """A file of the planned batch is missed; one that was read already is not."""
    flow = start(tmp_path, committed=committed)
    assert list(planned_files_are_gone(flow)) == []
    (tmp_path / f"in put{deleted}.json").unlink()
    damages = list(planned_files_are_gone(flow))
    assert [damage.condition for damage in damages] == ["SOURCE_FILES_GONE"] * is_damage
    if is_damage:
        assert "batch 1 of 'f'" in damages[0].error.what
        assert "--from-time TIME" in damages[0].error.remedy


def test_who_wants_to_go_on(tmp_path: Path):
    """With Spark's own option nothing is said: it leaves such files out."""
    flow = start(tmp_path, committed=0, ignoreMissingFiles="true")
    (tmp_path / "in put1.json").unlink()
    assert list(planned_files_are_gone(flow)) == []


def listing(flow: FlowStart, *paths: str) -> FlowStart:
    """The flow over a folder that holds these files now."""
    (source,) = flow.sources or ()
    return replace(flow, sources=(replace(source, files=lambda: iter(paths)),))


@pytest.mark.parametrize("name", ["b [1].json", "{a}.json", "a*.json", "what?.json", "day=[x]/a.json"])
def test_a_name_that_is_a_pattern_stops_the_start(tmp_path: Path, name: str):
    """The message names the file, what would happen and both ways out; plain names are nothing to speak of."""
    flow = start(tmp_path, committed=1)
    assert list(names_are_patterns(listing(flow, f"{tmp_path}/a-1_%20(2) +.json"))) == []
    (damage,) = names_are_patterns(listing(flow, f"{tmp_path}/plain.json", f"{tmp_path}/{name}"))
    assert damage.condition == "SOURCE_FILE_NAMES"
    assert damage.evidence == (f"{tmp_path}/{name}",)
    assert "twice" in damage.error.what
    assert "Rename" in damage.error.remedy


def test_a_pattern_that_was_read_or_comes_alone(tmp_path: Path):
    """A file of a batch that ended is no trouble any more, nor is one that has its batch for itself; a planned one is."""
    odd = f"{tmp_path}/in put1.json"
    for committed, damages in ((1, 0), (0, 1)):
        flow = start(tmp_path / str(committed), committed=committed)
        entry = {"path": f"file://{tmp_path}/a%5B1%5D.json", "timestamp": 1, "batchId": 1}
        (flow.folder / "sources/0/1").write_text(f"v1\n{json.dumps(entry)}")
        assert len(list(names_are_patterns(listing(flow, f"{tmp_path}/a[1].json", odd)))) == damages
    for option in ("maxFilesPerTrigger", "cloudFiles.maxFilesPerTrigger"):
        flow = start(tmp_path / option, committed=1, **{option: "1"})
        assert list(names_are_patterns(listing(flow, f"{tmp_path}/a[1].json", odd))) == []


@pytest.mark.parametrize(("written", "damages"), [(None, 1), (0, 0)])
def test_a_first_batch_that_the_table_has_needs_no_files(tmp_path: Path, written: int | None, damages: int):
    """Its driver died between table and checkpoint: the batch's number is known to the table, also where that is 0."""
    flow = start(tmp_path, committed=-1)
    (flow.folder / "offsets/1").unlink()
    (tmp_path / "in put0.json").unlink()
    vars(flow)["written"] = written
    assert len(list(planned_files_are_gone(flow))) == damages
