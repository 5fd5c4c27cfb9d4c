"""What a plan says to people and to programs: which rows go, and what would be read."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.definitions.dataset import DatasetKind
from headwater.errors import InvalidSpec
from headwater.graph.update_plan import RefreshStage, ResetStage, UpdatePlan
from headwater.metrics.backlog import Backlog
from headwater.updates import planned_update as module
from headwater.updates.planned_update import PlannedFlow, PlannedUpdate

STAGES = tuple(RefreshStage(name, DatasetKind.STREAMING_TABLE, (name,)) for name in ("one", "other"))
RESETS = tuple(ResetStage(name, (name,), empty_table=True) for name in ("one", "other"))


def planned(emptied: dict[str, int | None]) -> PlannedUpdate:
    """A plan of two tables."""
    flows = tuple(PlannedFlow(name, name, Backlog(moved=False)) for name in ("one", "other"))
    return PlannedUpdate(UpdatePlan(RESETS, STAGES, ()), flows, emptied)


def test_rows_that_would_go():
    """They are counted, of those tables alone that would be emptied; a count that is not known is said to be all."""
    lines = list(planned({"one": 1234}).lines())
    assert lines[:3] == [
        str(RESETS[0]),
        "    1,234 rows go; those that its sources no longer hold do not come back",
        str(RESETS[1]),
    ]
    assert lines[3:] == [
        str(STAGES[0]),
        "    one: nothing to read",
        str(STAGES[1]),
        "    other: nothing to read",
    ]
    assert "    all rows go" in next(line for line in planned({"one": None}).lines() if " go;" in line)


@pytest.mark.parametrize(
    ("backlog", "said"),
    [
        (Backlog(unknown="no broker"), "how much it would read is not known: no broker"),
        (Backlog(moved=False), "nothing to read"),
        (Backlog(records=1500, files=2, bytes=0, moved=True), "1,500 records, 2 files, 0 B to read"),
        (Backlog(versions=3, moved=True), "3 commits to read"),
        (Backlog(moved=True), "there is something to read"),
    ],
)
def test_what_a_flow_would_read(backlog: Backlog, said: str):
    """By each measure that is known; a full refresh reads all there is."""
    assert str(PlannedFlow("f", "t", backlog)) == f"    f: {said}"
    assert (
        str(PlannedFlow("f", "t", backlog, from_beginning=True)) == "    f: reads all that its sources hold"
    )


def test_a_plan_as_json(capsys):
    """The rows that would go are beside the stages."""
    planned({"one": 5}).show(as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert (shown["state"], shown["emptied"], len(shown["plan"]), len(shown["flows"])) == (
        "PLANNED",
        {"one": 5},
        4,
        2,
    )


class Stored:
    """A manifest: whether it is of these sources, and of which parameters."""

    def __init__(self, *, fits: bool = True, parameters: str = "now") -> None:
        self._fits, self.parameters_hash = fits, parameters

    def fits(self, _: object) -> bool:
        return self._fits


FITS, OLDER, OTHERS = Stored(), Stored(fits=False), Stored(parameters="others")


@pytest.mark.parametrize(
    ("last", "committed", "chosen"),
    [
        (FITS, None, FITS), (FITS, OLDER, FITS), (None, FITS, FITS), (OLDER, FITS, FITS), (OTHERS, FITS, FITS),
        (InvalidSpec("damaged"), FITS, FITS), (OLDER, OTHERS, None), (None, None, None), (None, InvalidSpec("damaged"), None),
    ],
)  # fmt: skip
def test_the_manifest_that_a_plan_is_made_of(monkeypatch: pytest.MonkeyPatch, last, committed, chosen):
    """That of the last update or the committed one, if it is of these sources and parameters; one that can't be read is passed over."""
    manifests = {"state": last, "folder": committed}

    def read(file: Path) -> object:
        answer = manifests[file.parent.name]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(module, "read_manifest", read)
    project: Any = SimpleNamespace(
        state_folder=Path("state"), folder=Path("folder"), parameters_hash=lambda: "now"
    )
    assert module.fitting_manifest(project) is chosen
