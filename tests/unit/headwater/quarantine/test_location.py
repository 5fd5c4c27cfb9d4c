"""A quarantine whose rules are gone is still found; a table that only has its name is left alone by every verb."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.unit.headwater.metrics.conftest import done, pipeline
from tests.unit.headwater.moves.test_moving import Killed
from tests.unit.headwater.quarantine.test_table import TYPES, entry

from headwater.commands import quarantine
from headwater.commands.command_line import main
from headwater.event_log.reader import events
from headwater.quarantine import columns as c

__all__ = ["done", "pipeline"]


def call(done: Any, capsys: Any, verb: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    """The exit code of a verb, and the JSON of its last line."""
    roots = [f"--storage={done.project.storage}", f"--warehouse={done.project.warehouse}", "--json"]
    words = verb.split()
    code = main([*words, str(done.project.folder), *arguments, *roots])
    return code, json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.fixture
def left(done: Any) -> Path:
    """Two held rows of silver, which has no rule that quarantines (any more)."""
    schema = pa.schema([(name, TYPES.get(name, pa.string())) for name in c.MANAGED])
    path = done.table("silver_quarantine")
    rows = [entry(1, "whole", flow="silver"), entry(2, "whole", flow="silver")]
    write_deltalake(str(path), pa.Table.from_pylist(rows, schema=schema))
    return Path(path)


@pytest.fixture
def foreign(done: Any) -> Path:
    """Somebody's own table of that name."""
    path = done.table("silver_quarantine")
    write_deltalake(str(path), pa.table({"id": [1]}))
    return Path(path)


def test_rows_of_a_removed_rule_are_not_hidden(done, capsys, left):
    """They are listed, shown and discarded, and count in the status."""
    assert call(done, capsys, "quarantine list")[1]["quarantine"][0]["rows"] == 2
    assert len(call(done, capsys, "quarantine show", "silver")[1]["rows"]) == 2
    assert call(done, capsys, "status")[0] == 0
    code, answer = call(done, capsys, "quarantine discard", "silver", "--id=1-id", "--reason=old")
    assert (code, answer["discarded"]) == (0, 1)


def test_a_discard_that_was_killed_is_recorded_with_its_rows(done, capsys, left, monkeypatch):
    """Once, by whoever runs it again: what was recorded is not recorded as a discard of no row."""
    discard = ("quarantine discard", "silver", "--rule=whole", "--reason=old")

    def killed(*_):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(quarantine, "_record_discard", killed)
        with pytest.raises(Killed):
            call(done, capsys, *discard)
    for _ in range(2):
        code, answer = call(done, capsys, *discard)
        assert (code, answer["discarded"]) == (0, 0)
        records = events(done.project.state_folder, event_type="user_action")
        assert [record["details"]["user_action"]["rows"] for record in records] == [2]


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--rule=hole", "Did you mean 'whole'?"),
        ("--flow=gold", "There is: silver"),
        ("--limit=-1", "usage"),
    ],
)
def test_filters_that_name_nothing_are_told(done, capsys, left, argument, said):
    """A rule or a flow that nobody knows is an error, not an empty answer."""
    code, answer = call(done, capsys, "quarantine show", "silver", argument)
    assert code == 2
    assert said in answer["error"]["remedy"]


def test_a_drop_takes_the_quarantine_along(done, capsys, left):
    """A table that is refilled reads its rows again; a replay of the old ones would double them."""
    assert call(done, capsys, "drop", "silver", "--yes")[0] == 0
    assert not left.exists()


@pytest.mark.parametrize("verb", [("drop", "silver"), ("rename", "silver", "purified")])
def test_a_table_of_that_name_stays(done, capsys, foreign, verb):
    """Neither a drop nor a rename touches it, and no verb takes it for a quarantine."""
    assert call(done, capsys, "quarantine list")[1]["quarantine"] == []
    assert call(done, capsys, verb[0], *verb[1:], "--yes")[0] == 0
    assert (foreign / "_delta_log").is_dir()
