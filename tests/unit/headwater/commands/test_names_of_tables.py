"""What verbs take as the name of a table or a flow."""

from __future__ import annotations

import pytest

from headwater.commands.command_line import main


@pytest.mark.parametrize(
    "argv",
    [
        ["run", "--dry-run", "--tables", "GOLD"],
        ["maintenance", "--tables", "shop.GOLD"],
        ["drop", "LIVE.gold"],
        ["files", "--flow", "BRONZE"],
        ["events", "--dataset", "Gold"],
        ["checkpoints", "diagnose", "BRONZE"],
    ],
)
def test_verbs_take_every_spelling(done, capsys: pytest.CaptureFixture[str], argv: list[str]):
    """Each verb that is given a name finds the table or flow that is meant."""
    project = done.project
    at = 2 if argv[0] == "checkpoints" else 1
    whole = [*argv[:at], str(project.folder), *argv[at:]]
    main([*whole, f"--storage={project.storage}", f"--warehouse={project.warehouse}"])
    assert " has no " not in capsys.readouterr().err
