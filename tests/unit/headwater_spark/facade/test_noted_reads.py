"""What sources read while they are loaded: files that their code opens itself or has opened, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headwater.graph.files_read import ABSENT, content_digest
from headwater_spark.facade.noted_reads import NotedReads, note_rows, noting_reads

SOURCE = """
import csv, glob, io, json, os, pathlib, threading, tomllib, zoneinfo
with open(CONF + "/a.json") as file:
    json.load(file)
pathlib.Path(CONF, "b.toml").read_bytes()
with os.fdopen(os.open(CONF + "/c", os.O_RDONLY)) as file:
    file.read()
[path for path in glob.glob(CONF + "/more/*.json")]
try:
    open(CONF + "/later.json")
except FileNotFoundError:
    pass
with open(CONF + "/written", "w") as file:
    file.write("x")
zoneinfo.ZoneInfo("Europe/Berlin")
open("/proc/self/stat").close()
open(__file__).close()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    conf = tmp_path / "conf"
    (conf / "more").mkdir(parents=True)
    for name, text in {"a.json": "[]", "b.toml": "", "c": "1", "more/x.json": "{}"}.items():
        (conf / name).write_text(text)
    (tmp_path / "pipeline" / "transformations").mkdir(parents=True)
    return tmp_path / "pipeline"


def run(folder: Path, source: str, **names: Any) -> NotedReads:
    file = folder / "transformations" / "main.py"
    file.write_text(source)
    with noting_reads(folder) as noted:
        exec(compile(source, str(file), "exec"), {"__file__": str(file), **names})
    return noted


def test_what_sources_open(folder: Path) -> None:
    """Files that are read, listed folders and files that are not there; not what is written, of Python, of the system, or code."""
    conf = folder.parent / "conf"
    noted = run(folder, SOURCE, CONF=str(conf))
    expected = {str(conf / name) for name in ("a.json", "b.toml", "c", "more", "later.json")}
    assert set(noted.files) == expected
    assert noted.files[f"{conf}/later.json"] == ABSENT
    assert noted.files[f"{conf}/a.json"] == content_digest(conf / "a.json")
    assert not noted.rows


def test_files_of_the_folder(folder: Path) -> None:
    """They are named from the folder, and count as they were before they were read first."""
    (folder / "tables.json").write_text("1")
    change = "import pathlib\nfor text in '23':\n    pathlib.Path(F).read_text()\n    pathlib.Path(F).write_text(text)\n"
    before = content_digest(folder / "tables.json")
    assert run(folder, change, F=str(folder / "tables.json")).files == {"tables.json": before}


def test_modules_of_other_folders(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that lies elsewhere counts by its source, also where it was compiled before; where Python looks for it does not."""
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    shared = folder.parent / "shared"
    shared.mkdir()
    (shared / "prices_of_all.py").write_text("A = 1")
    source = "import sys\nsys.path.insert(0, SHARED)\nimport prices_of_all\ndel sys.modules['prices_of_all'], sys.path[0]"
    for _ in range(2):
        assert list(run(folder, source, SHARED=str(shared)).files) == [str(shared / "prices_of_all.py")]
    assert (shared / "__pycache__").is_dir()


def test_what_others_open(folder: Path) -> None:
    """What this code opens for itself, or our own code for a source, is not a source's; nor is anything outside of the block."""
    other = folder.parent / "conf" / "a.json"

    def reads() -> None:
        json.loads(other.read_text())

    with noting_reads(folder) as noted:
        reads()
        content_digest(other)
    reads()
    note_rows()
    assert noted.files == {}
    assert not noted.rows
    assert not run(folder, "digest(path)", digest=content_digest, path=other).files


def test_queries(folder: Path) -> None:
    """That a source ran a query is noted."""
    assert run(folder, "query()", query=note_rows).rows
