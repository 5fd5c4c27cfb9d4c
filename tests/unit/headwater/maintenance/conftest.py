"""The pipelines on disk that the measures are tested with, after a completed update."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.unit.headwater.metrics.conftest import Pipeline, delta_offset, done, pipeline, write_checkpoint

from headwater.commands.command_line import main
from headwater.event_log.details import UpdateState, create_update, update_progress
from headwater.event_log.writer import EventLogWriter

__all__ = ["done", "kept", "pipeline"]


class Kept:
    """A pipeline and what maintenance says of it."""

    def __init__(self, pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
        self.pipeline, self.project, self._capsys = pipeline, pipeline.project, capsys

    def call(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Exit code and JSON of the verb."""
        roots = [f"--storage={self.project.storage}", f"--warehouse={self.project.warehouse}"]
        code = main(["maintenance", str(self.project.folder), *roots, *arguments, "--json"])
        return code, json.loads(self._capsys.readouterr().out.splitlines()[-1])

    def left_out(self, *arguments: str) -> str:
        """Why the one chore that is asked for is not done."""
        _, answer = self.call(*arguments)
        (remark,) = answer["plan"]["left_out"]
        return str(remark["why"])

    def read_on(self, version: int, *, starting: bool = False, batch: int = 1) -> None:
        """Let silver's checkpoint say that it goes on at a version of bronze."""
        offset = delta_offset(self.pipeline.table("bronze"), version, starting=starting)
        write_checkpoint(self.pipeline.checkpoint("silver").epoch_folder(0), batch, [offset])

    def files(self, name: str) -> set[str]:
        """The parquet files that are there."""
        return {path.name for path in self.pipeline.table(name).glob("*.parquet")}

    def live(self, name: str) -> set[str]:
        """The files of the newest version."""
        return {Path(uri).name for uri in DeltaTable(str(self.pipeline.table(name))).file_uris()}


@pytest.fixture
def kept(done: Pipeline, capsys: pytest.CaptureFixture[str]) -> Kept:
    """The pipeline after an update that the event log knows as completed."""
    with EventLogWriter(done.project.state_folder, "orders", "orders", "u1") as events:
        events.emit("create_update", "begun", details=create_update())
        events.emit("update_progress", "done", details=update_progress(UpdateState.COMPLETED))
    return Kept(done, capsys)
