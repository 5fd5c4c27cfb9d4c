"""Records that the event log has lost are a finding of the pipeline, and of none of its flows."""

from __future__ import annotations

import json

import pytest

from headwater.commands.command_line import main
from headwater.delta_log.commits import commit_file, newest_version
from headwater.event_log.event import event_table
from headwater.event_log.writer import EventLogWriter


@pytest.mark.parametrize("action", ["verify", "diagnose"])
def test_the_doctor_names_it(done, capsys, action: str):
    """Once, for the pipeline; no flow is refused for it, none is asked about it, and an update that writes now is left alone."""
    project = done.project
    for message in ("one", "two"):
        with EventLogWriter(project.state_folder, "orders", "orders", "u1") as log:
            log.emit("user_action", message)

    def call(*more: str):
        roots = (f"--storage={project.storage}", f"--warehouse={project.warehouse}")
        code = main(["checkpoints", action, str(project.folder), *more, *roots])
        return code, capsys.readouterr().out

    def conditions(*more: str):
        answer = json.loads(call(*more, "--json")[1].splitlines()[-1])
        return [(found["flow"], found["condition"], found["blocks"]) for found in answer["findings"]]

    before, (refused, _) = conditions(), call()
    table = event_table(project.state_folder)
    commit_file(table, newest_version(table)).unlink()
    lost = [("", "EVENT_RECORDS_LOST", False)]
    assert conditions() == [*before, *lost]
    code, shown = call()
    assert code == refused
    assert "event log" in shown
    assert "goes on" in shown
    assert lost[0] not in conditions("silver")
    with project.lease("somebody"):
        assert conditions() == before
