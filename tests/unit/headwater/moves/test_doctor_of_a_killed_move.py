"""What the doctor says of a table that is half-way to another name."""

from __future__ import annotations

import json

import pytest

from headwater.commands.command_line import main
from headwater.moves.move_plan import plan_move
from headwater.moves.move_request import Wish
from headwater.moves.moving import move_table, steps


@pytest.mark.parametrize("steps_done", [3, 5, 8])
def test_it_names_the_command_that_ends_it(done, capsys, steps_done):
    """What looks like a lost source, a lost checkpoint or an unknown flow is none: no repair is offered."""

    def call(*words: str):
        verb = [
            *words,
            f"--storage={done.project.storage}",
            f"--warehouse={done.project.warehouse}",
            "--json",
        ]
        code = main(verb)
        return code, json.loads(capsys.readouterr().out.splitlines()[-1])

    folder = str(done.project.folder)
    wish = Wish(done.project, done.project, "silver", "purified", "headwater rename DIR silver purified")
    for step in list(steps(plan_move(wish), wish, lambda: None))[:steps_done]:
        step()
    repair = ("repair", folder, "silver", "--action=mend")
    for verb in (("checkpoints", "diagnose", folder), ("checkpoints", "verify", folder), repair):
        code, answer = call(*verb)
        assert (code, answer["error"]["condition"]) == (3, "MOVE_UNFINISHED"), verb
        assert wish.command in answer["error"]["remedy"]
    move_table(wish)
    assert "findings" in call("checkpoints", "verify", folder)[1]
