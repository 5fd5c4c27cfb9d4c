"""A repair that was killed, wherever it stood, and is run again ends as one that was not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.headwater.metrics.conftest import Pipeline, delta_offset, write_checkpoint

from headwater.doctor.flow_case import FlowCase
from headwater.doctor.surgery import snapshot_flow
from headwater.storage.walking import remove_tree


def ended(done: Pipeline, tmp_path: Path, flow: str, *arguments: str) -> dict[str, Any]:
    """What ``tests.killed_writes`` says of a repair."""
    roots = [f"--storage={done.project.storage}", f"--warehouse={done.project.warehouse}"]
    verb = ["repair", str(done.project.folder), flow, *arguments, "--yes", *roots]
    program = [
        sys.executable,
        "-m",
        "tests.killed_writes",
        str(tmp_path),
        str(done.checkpoint(flow).folder),
        *verb,
    ]
    answer = subprocess.run(
        program, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[4]
    )
    left: dict[str, Any] = json.loads(answer.stdout)
    return left


@pytest.mark.parametrize("case", ["mend", "rewind", "restore"])
def test_it_ends_as_one_that_was_not(done: Pipeline, tmp_path: Path, case: str):
    """A lost position is written back, a step back is taken once, and a copy is taken that is whole; each code is 0."""
    folder = done.checkpoint("silver").epoch_folder(0)
    (folder / "metadata").write_text('{"id":"00000000-0000-0000-0000-000000000000"}')
    write_checkpoint(folder, 1, [delta_offset(done.table("bronze"), 1)])
    flow, arguments = "silver", ["--action=rewind", "--batch=0"]
    if case == "mend":
        (folder / "commits" / "1").write_text("")
        arguments = ["--action=mend"]
    if case == "restore":
        flow, arguments = "bronze", ["--action=restore"]
        live = FlowCase(done.project, done.manifest, done.flow(flow))
        snapshot_flow(live, reason="asked for")
        remove_tree(live.start.folder / "sources")
    left = ended(done, tmp_path, flow, *arguments)
    assert left["whole"]["code"] == 0, left["whole"]["said"]
    assert len(left["after"]) > 10
    for number, killed, again, live_files in left["after"]:
        assert killed is None, number
        assert again["code"] == 0, (number, again["said"])
        assert live_files == left["live"], number
