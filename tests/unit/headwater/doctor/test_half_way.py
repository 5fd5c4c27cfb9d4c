"""``status`` says what is half-way, and the command that ends it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.killed_removals import Killed, killed_at_tree

from headwater.commands.command_line import main
from headwater.doctor import dropping
from headwater.doctor.dropping import drop, plan_drop
from headwater.doctor.half_way import half_way
from headwater.moves.move_plan import plan_move
from headwater.moves.move_request import Wish
from headwater.moves.moving import move_table, steps
from headwater.storage.walking import remove_tree


def status(done, capsys, *more: str):
    """What it prints; of JSON what is half-way."""
    project = done.project
    roots = (f"--storage={project.storage}", f"--warehouse={project.warehouse}")
    assert main(["status", str(project.folder), *roots, *more]) == 0
    shown = capsys.readouterr().out
    if "--json" not in more:
        return shown
    errors = json.loads(shown.splitlines()[-1]).get("half_way", [])
    return [(error["condition"], error["remedy"]) for error in errors]


@pytest.mark.parametrize("steps_done", [3, 5, 8])
def test_a_rename_that_was_killed(done, capsys, steps_done):
    """It is named from the journal on, though nothing has run; once it has ended, nothing is."""
    assert status(done, capsys, "--json") == []
    wish = Wish(done.project, done.project, "silver", "purified", "headwater rename DIR silver purified")
    for step in list(steps(plan_move(wish), wish, lambda: None))[:steps_done]:
        step()
    ((condition, remedy),) = status(done, capsys, "--json")
    assert condition == "MOVE_UNFINISHED"
    assert f"{wish.command} --yes" in remedy
    assert "'silver' is half-way to 'purified'" in status(done, capsys)
    move_table(wish)
    assert status(done, capsys, "--json") == []


@pytest.mark.parametrize("removed", range(4))
def test_a_drop_that_was_killed(done, capsys, monkeypatch, removed):
    """From the moment at which the table is gone to that at which its checkpoint is."""
    plans = [plan_drop(done.project, done.manifest, "silver", ("gold",))]
    with monkeypatch.context() as patched:
        patched.setattr(dropping, "remove_tree", killed_at_tree(removed, dropping.remove_tree))
        if removed < 3:
            with pytest.raises(Killed):
                drop(done.project, plans, lambda: plans)
        else:
            drop(done.project, plans, lambda: plans)
    named = status(done, capsys, "--json")
    gone = not (done.table("silver") / "_delta_log").exists() and done.checkpoint("silver").has_written()
    assert [condition for condition, _ in named] == ["TABLE_GONE"] * gone
    assert gone is (removed < 2)
    assert all("headwater drop PIPELINE_DIR silver --yes" in remedy for _, remedy in named)


def test_what_the_doctor_says_is_left_to_it(done):
    """A state that can't be read is a finding of its own, and a table that was never filled is none."""
    remove_tree(done.table("gold"))
    (error,) = half_way(done.project, done.manifest, ["gold"])
    assert error.condition == "TABLE_GONE"
    file = done.checkpoint("gold").state_file
    assert isinstance(file, Path)
    file.write_text("{")
    assert half_way(done.project, done.manifest, ["gold"]) == []
    file.unlink()
    assert half_way(done.project, done.manifest, ["gold"]) == []
