"""On a full or read-only disk nothing half-done becomes live, and looking works all the same."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.unit.headwater.metrics.conftest import done, pipeline

from headwater.commands.command_line import main

__all__ = ["done", "pipeline"]


class Disk:
    """A small file system of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self) -> None:
        """Leave no room at all."""
        with suppress(OSError), (self.folder / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 4096)
        assert shutil.disk_usage(self.folder).free == 0

    def free(self) -> None:
        """Make room."""
        (self.folder / "filler").unlink()

    def remount(self, how: str) -> None:
        """Make it read-only (ro) or writable (rw)."""
        subprocess.run(["mount", "-o", f"remount,{how}", str(self.folder)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """The storage of the pipeline, on a disk of two megabytes."""
    folder = tmp_path / "storage"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], check=False)
    if mounted.returncode:
        pytest.skip("only root may mount")
    yield Disk(folder)
    subprocess.run(["umount", str(folder)], check=True)


def call(done, capsys, *arguments: str):
    """What a verb answers."""
    project = done.project
    verb, *rest = arguments
    action = [rest.pop(0)] if verb == "checkpoints" else []
    roots = [f"--storage={project.storage}", f"--warehouse={project.warehouse}", "--json"]
    code = main([verb, *action, str(project.folder), *rest, *roots])
    return code, json.loads(capsys.readouterr().out.splitlines()[-1])


REPAIR = ("repair", "silver", "--action=new-epoch", "--from-version=1", "--yes")


@pytest.fixture
def whole(disk: Disk, done):
    """The pipeline on that disk, with checkpoints in which nothing is missing."""
    for flow in ("bronze", "silver"):
        (done.checkpoint(flow).epoch_folder(0) / "metadata").write_text('{"id":"of-the-test"}')
    return done


def test_a_full_disk(disk: Disk, whole, capsys):
    """The repair says so and changes nothing; with room again the same call works."""
    before = {
        path: path.read_bytes() for path in whole.checkpoint("silver").folder.rglob("*") if path.is_file()
    }
    disk.fill()
    code, answer = call(whole, capsys, *REPAIR)
    assert (code, answer["error"]["condition"]) == (1, "STORAGE_FAILED")
    disk.free()
    assert {path: path.read_bytes() for path in before} == before
    assert whole.checkpoint("silver").epochs() == [0]
    code, answer = call(whole, capsys, *REPAIR)
    assert (code, answer["state"]) == (0, "COMPLETED")
    assert whole.checkpoint("silver").live_folder().name == "1"
    assert call(whole, capsys, "checkpoints", "verify")[0] == 0


def test_a_read_only_disk(disk: Disk, whole, capsys):
    """Every look works; what writes is told that it can't."""
    disk.remount("ro")
    try:
        for action in ("list", "inspect", "verify", "diagnose"):
            assert call(whole, capsys, "checkpoints", action)[0] == 0
        assert call(whole, capsys, *REPAIR[:-1])[0] == 0
        for arguments in (REPAIR, ("checkpoints", "snapshot")):
            code, answer = call(whole, capsys, *arguments)
            assert (code, answer["error"]["condition"]) == (1, "STORAGE_FAILED")
    finally:
        disk.remount("rw")
    assert call(whole, capsys, *REPAIR)[0] == 0
