"""Overwritten files are taken out of what Spark's file source knows: committed ones only, the rest untouched."""

from __future__ import annotations

import json
from pathlib import Path

from headwater.checkpoints.file_source_log import forget_overwritten
from headwater.checkpoints.offsets import files_seen


def checkpoint(root: Path, logs: dict[str, list[tuple[str, int, int]]], committed: int) -> Path:
    """A checkpoint with one file source: ``logs`` are its files, with (path, time, batch) entries."""
    for folder in ("offsets", "commits", "sources/0"):
        (root / folder).mkdir(parents=True)
    for name, entries in logs.items():
        lines = [json.dumps({"path": f"file:{p}", "timestamp": t, "batchId": b}) for p, t, b in entries]
        (root / "sources/0" / name).write_text("\n".join(["v1", *lines]))
        (root / f"sources/0/.{name}.crc").write_text("old")
    for batch in range(committed + 1):
        (root / f"offsets/{batch}").write_text(f'v1\n{{}}\n{{"logOffset":{batch}}}')
        (root / f"commits/{batch}").write_text("v1\n{}")
    (root / f"offsets/{committed + 1}").write_text(f'v1\n{{}}\n{{"logOffset":{committed + 1}}}')
    return root


def test_a_newer_file_is_forgotten(tmp_path: Path):
    """Its entry is marked, its checksum removed, and the path is no longer known; others stay byte for byte."""
    folder = checkpoint(
        tmp_path,
        {"0": [("/in/a%20b.json", 5, 0), ("/in/c.json", 5, 0)], "1": [("/in/d.json", 6, 1)]},
        committed=1,
    )
    untouched = (folder / "sources/0/1").read_bytes()
    assert forget_overwritten(folder, {"/in/a b.json": 9, "/in/c.json": 5, "/in/d.json": 6}) == [
        "/in/a b.json"
    ]
    assert [f.path for f in files_seen(folder)] == ["/in/a b.json?superseded=5", "/in/c.json", "/in/d.json"]
    assert not (folder / "sources/0/.0.crc").exists()
    assert (folder / "sources/0/1").read_bytes() == untouched
    assert (folder / "sources/0/.1.crc").exists()
    assert forget_overwritten(folder, {"/in/c.json": 5}) == []


def test_compacted_logs_too(tmp_path: Path):
    """Entries live on in compacted files; those are marked as well."""
    folder = checkpoint(tmp_path, {"9.compact": [("/in/a.json", 5, 3)]}, committed=9)
    assert forget_overwritten(folder, {"/in/a.json": 6}) == ["/in/a.json"]
    assert forget_overwritten(folder, {"/in/a.json": 6}) == []


def test_planned_batches_are_left_alone(tmp_path: Path):
    """A batch that is planned and not committed is repeated with the files that it named."""
    folder = checkpoint(tmp_path, {"0": [("/in/b.json", 1, 0)], "1": [("/in/a.json", 5, 1)]}, committed=0)
    assert forget_overwritten(folder, {"/in/a.json": 9}) == []
    assert forget_overwritten(tmp_path / "nothing", {"/in/a.json": 9}) == []


def test_a_batch_that_is_not_done_is_left_alone(tmp_path: Path):
    """Its files are read when it is repeated, as it was planned: an entry of it is not marked, whatever batches before it read."""
    logs = {"0": [("/in/a.json", 5, 0)], "1": [("/in/a.json", 7, 1)]}
    folder = checkpoint(tmp_path, logs, committed=0)
    untouched = (folder / "sources/0/1").read_bytes()
    assert forget_overwritten(folder, {"/in/a.json": 9}) == ["/in/a.json"]
    assert (folder / "sources/0/1").read_bytes() == untouched
    assert "superseded=5" in (folder / "sources/0/0").read_text()


def test_sources_of_other_kinds_are_left_alone(tmp_path: Path):
    """One that gave nothing yet has no position, and that of a table is none of files; the source of files beside them counts."""
    folder = checkpoint(tmp_path, {"0": [("/in/a.json", 5, 0)]}, committed=0)
    (folder / "sources/0").rename(folder / "sources/2")
    (folder / "offsets/0").write_text('v1\n{}\n-\n{"reservoirVersion":3}\n{"logOffset":0}')
    assert forget_overwritten(folder, {"/in/a.json": 6}) == ["/in/a.json"]


def test_files_that_are_none_of_the_log(tmp_path: Path):
    """What somebody else left in its folder is neither read nor changed."""
    folder = checkpoint(tmp_path, {"0": [("/in/a.json", 5, 0)]}, committed=0)
    others = {name: folder / "sources/0" / name for name in ("_SUCCESS", "0.bak", ".0.compact.tmp")}
    for file in others.values():
        file.write_text('v1\n{"path": "file:/in/a.json", "timestamp": 5, "batchId": 0}')
    assert forget_overwritten(folder, {"/in/a.json": 6}) == ["/in/a.json"]
    assert not any("superseded" in file.read_text() for file in others.values())
