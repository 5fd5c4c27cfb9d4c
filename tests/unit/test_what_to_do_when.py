"""Every condition has its section in the page that all messages point to, and each remedy names a verb that is there."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater
import headwater_demo
from headwater.commands.doctor_arguments import ACTIONS
from headwater.errors import HELP_PAGE, HeadwaterError
from headwater.preflight.damage import Repair

PAGE = Path(__file__).resolve().parents[2] / HELP_PAGE
VERBS = {
    "init",
    "run",
    "stop",
    "backfill",
    "validate",
    "graph",
    "status",
    "lag",
    "events",
    "files",
    "checkpoints",
    "repair",
    "drop",
    "rename",
    "move",
    "relocate",
    "quarantine",
    "maintenance",
    "--help",
}


def conditions() -> dict[str, type[HeadwaterError]]:
    """Every error of the ground floor and of the demo on it, by its condition."""
    for package in (headwater, headwater_demo):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            # The testing kit needs pytest's plugins in place; it raises no errors of its own.
            if not module.name.startswith("headwater.testing") and not module.name.endswith(".__main__"):
                importlib.import_module(module.name)

    def below(kind: type[HeadwaterError]) -> Iterator[type[HeadwaterError]]:
        yield kind
        for child in kind.__subclasses__():
            yield from below(child)

    return {kind.condition: kind for kind in below(HeadwaterError)}


def sections() -> dict[str, str]:
    """The page's text by condition."""
    parts = re.split(r"^### (\w+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_condition_has_a_section():
    """None is missing, and none is about a condition that no longer exists."""
    assert set(sections()) == set(conditions())


@pytest.mark.parametrize("condition", sorted(sections()))
def test_each_remedy_names_a_verb(condition: str):
    """A section names at least one command, and each exists, with its action."""
    text = sections()[condition]
    verbs = re.findall(r"headwater ([\w-]+)", text)
    assert verbs
    assert set(verbs) <= VERBS
    assert set(re.findall(r"headwater checkpoints (\w+)", text)) <= set(ACTIONS)
    assert set(re.findall(r"--action ([\w-]+)", text)) <= {str(action) for action in Repair}


def test_messages_point_to_their_section():
    """The last line of a message, and the JSON form, lead to the condition's heading."""
    error = conditions()["CHECKPOINT_LOST"]("It is gone.", where="here", remedy="Look.")
    assert str(error).splitlines()[-1] == f"  more: {HELP_PAGE}#checkpoint_lost"
    assert error.as_dict()["help"] == f"{HELP_PAGE}#checkpoint_lost"
