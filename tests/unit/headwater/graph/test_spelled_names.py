"""A name on a command line means what it means in a source: letter case, schema, backticks and LIVE. do not matter."""

from __future__ import annotations

import pytest
from tests.unit.headwater.graph.test_update_plan import manifest, plan

from headwater.errors import UnknownDataset
from headwater.graph.spelled_names import declared_name, declared_names, known_name
from headwater.graph.update_plan import Selection


@pytest.mark.parametrize("text", ["gold", "GOLD", "s.gold", "S.Gold", "LIVE.gold", "`gold`", "`s`.`gold`"])
def test_spellings_of_one_name(text: str):
    """All of these are the table that is declared as `gold`."""
    assert declared_name(manifest(), text) == "gold"


@pytest.mark.parametrize("text", ["gld", "other.gold", "c.s.gold", "", "a b", "gold.", "../gold"])
def test_other_names_stay_as_they_are(text: str):
    """What is no spelling of a declared name is left to whoever refuses it."""
    assert declared_name(manifest(), text) == text


def test_a_name_that_the_pipeline_has_not():
    """It is refused with the nearest one; one that it has is taken in any spelling, of those that may be meant."""
    assert known_name(manifest(), "S.Gold", ["gold", "silver"], "table") == "gold"
    for text, names in (("gld", ["gold", "silver"]), ("gold", ["golden"])):
        with pytest.raises(UnknownDataset, match=f"no table '{text}'") as refused:
            known_name(manifest(), text, names, "table")
        assert f"Did you mean '{names[0]}'" in refused.value.remedy


def test_two_spellings_are_one_name():
    """A table that is named twice is refreshed once."""
    assert declared_names(manifest(), ["GOLD", "s.gold", "x"], ["gold", "silver"]) == ("gold", "x")


def test_a_selection_by_other_spellings_is_the_same_plan():
    """Tables, full refreshes, flows and resets alike."""
    assert plan(Selection(tables=("S.GOLD",))) == plan(Selection(tables=("gold",)))
    assert plan(Selection(full_refresh=("Bronze", "SILVER"))) == plan(
        Selection(full_refresh=("bronze", "silver"))
    )
    assert plan(Selection(flows=("WEB",))) == plan(Selection(flows=("web",)))
    assert plan(Selection(reset_flows=("Alone",))) == plan(Selection(reset_flows=("alone",)))
