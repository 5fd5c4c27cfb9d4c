"""The checks before a start as a whole: one that can't be carried out hides none of the others."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from inspect import get_annotations, isfunction
from pathlib import Path

import pytest

from headwater.checkpoints.conditions import CheckFailed, StateLost
from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.errors import LeaseLost, SourceUnreachable
from headwater.preflight import checks
from headwater.preflight.checks import CHECKS, CHECKS_OF_ONCE_FLOWS, examine, mended
from headwater.preflight.damage import Damage
from headwater.preflight.flow_start import FlowStart

MENDED: list[str] = []


def finds(start: FlowStart) -> Iterator[Damage]:
    yield Damage(StateLost(f"{start.flow} has lost its state."))


def mends(start: FlowStart) -> Iterator[Damage]:
    yield Damage(StateLost(f"{start.flow} has lost a file."), mend=lambda: MENDED.append("done") or "mended")


def may_not_read(start: FlowStart) -> Iterator[Damage]:
    raise PermissionError(13, "Permission denied", str(start.folder / "offsets"))
    yield


def stumbles_late(start: FlowStart) -> Iterator[Damage]:
    yield Damage(StateLost(f"{start.flow} has lost more."))
    raise KeyError("reservoirVersion")


def can_not_ask(start: FlowStart) -> Iterator[Damage]:
    raise SourceUnreachable("The broker is away.", where=start.flow)
    yield


@pytest.fixture
def start(tmp_path: Path) -> FlowStart:
    return FlowStart("p", "send", "outbox", FlowCheckpoint(tmp_path / "send"), FlowState(), None, None)


def test_the_others_report_when_one_raises(start: FlowStart):
    """What came before and after is reported; the failed check says its name, the cause and the file that it was at."""
    damages = examine(start, (finds, may_not_read, stumbles_late, can_not_ask, finds))
    assert [damage.condition for damage in damages] == [
        "STATE_LOST",
        "CHECK_FAILED",
        "STATE_LOST",
        "CHECK_FAILED",
        "SOURCE_UNREACHABLE",
        "STATE_LOST",
    ]
    denied = damages[1].error
    assert "may_not_read" in denied.what
    assert "Permission denied" in denied.what
    assert denied.where.endswith("send/0/offsets")
    assert damages[1].blocks
    assert not damages[1].repairs
    assert "KeyError: 'reservoirVersion'" in damages[3].evidence[0]


def test_a_start_with_a_check_that_raises_is_refused(start: FlowStart):
    """Nothing is repaired and nothing starts; a retry may help, as a file may be readable then."""
    with pytest.raises(CheckFailed) as raised:
        mended(examine(start, (mends, may_not_read)))
    assert raised.value.transient
    assert MENDED == []
    with pytest.raises(SourceUnreachable):
        mended(examine(start, (mends, can_not_ask)))
    assert [done for _, done in mended(examine(start, (mends,)))] == ["mended"]


def test_a_start_that_stood_still_repairs_nothing(start: FlowStart):
    """Its driver may have lost the lease while it looked: another one may have written what it found damaged."""
    MENDED.clear()

    def lost() -> None:
        raise LeaseLost("taken", remedy="none")

    with pytest.raises(LeaseLost):
        mended(examine(start, (mends,)), lost)
    assert MENDED == []


def test_every_check_is_carried_out():
    """What a module of the preflight can find is looked for before a flow starts: no check is left out of the lists."""
    folder = Path(checks.__file__).parent
    written = {
        function
        for file in folder.glob("*_checks.py")
        for name, function in vars(import_module(f"headwater.preflight.{file.stem}")).items()
        if isfunction(function)
        and not name.startswith("_")
        and get_annotations(function) == {"start": "FlowStart", "return": "Iterator[Damage]"}
    }
    assert written - {*CHECKS, *CHECKS_OF_ONCE_FLOWS} == set()
    assert len(written) > 20
