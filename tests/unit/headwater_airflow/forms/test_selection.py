"""What the form of a run accepts."""

from __future__ import annotations

import pytest
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import ParamValidationError

from headwater.errors import InvalidName
from headwater_airflow.forms.selection import Selection, flow_params, read_selection, selection_params

HOSTILE = [
    "a,b",
    "a --full-refresh-all",
    "--full-refresh-all",
    "../x",
    "a;rm -rf /",
    "a\n",
    "{{ ti }}",
    "a'b",
    "",
    "ä",
    "a" * 200,
    "a..b",
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("field", ["tables", "full_refresh"])
def test_hostile_names_are_refused_where_they_are_used(field, name):
    """Whatever got past the form is refused before it becomes an argument."""
    with pytest.raises(InvalidName):
        read_selection({field: [name]})


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "a\n"])
def test_hostile_names_are_refused_by_the_form(name):
    """The API answers with an error at once, since the parameters have a schema."""
    params = ParamsDict(selection_params(["orders"]))
    with pytest.raises(ParamValidationError):
        params["tables"] = [name]


@pytest.mark.parametrize("value", ["orders", {"a": 1}, 7, [7], [None], [["a"]]])
def test_anything_but_a_list_of_names_is_refused(value):
    """A value of another type is refused with the name of the field."""
    with pytest.raises(InvalidName):
        read_selection({"tables": value})


def test_the_selection_becomes_arguments():
    """Tables and refreshes are passed as the command line wants them; all from scratch needs no list."""
    chosen = read_selection({"tables": ["a", "s.b"], "full_refresh": ["a"], "full_refresh_all": False})
    assert chosen.arguments() == ["--tables", "a,s.b", "--full-refresh", "a"]
    assert Selection(full_refresh=("a",), full_refresh_all=True).arguments() == ["--full-refresh-all"]
    assert not read_selection({})


@pytest.mark.parametrize("field", ["tables", "flows"])
def test_all_from_scratch_is_not_for_some(field: str):
    """Who names a table and wants all from scratch means that table, and would lose the rows of the others: refused with both ways."""
    with pytest.raises(InvalidName, match="Every table") as caught:
        read_selection({field: ["a"], "full_refresh_all": True})
    assert "full_refresh" in caught.value.remedy
    assert read_selection({"full_refresh_all": True}).arguments() == ["--full-refresh-all"]


def test_a_task_of_one_table_refreshes_no_other():
    """With one submit per table, a refresh is passed only to the table it names."""
    params = {"tables": [], "full_refresh": ["a"]}
    assert read_selection(params, ["a"]).arguments() == ["--tables", "a", "--full-refresh", "a"]
    assert read_selection(params, ["b"]).arguments() == ["--tables", "b"]


@pytest.mark.parametrize("name", [name for name in HOSTILE if name])
@pytest.mark.parametrize("field", ["flows", "reset_checkpoint"])
def test_hostile_names_of_flows_are_refused(field, name):
    """By the form, and again before they become an argument."""
    with pytest.raises(InvalidName):
        read_selection({field: [name]})
    if name != "a\n":
        params = ParamsDict(flow_params(["orders"]))
        with pytest.raises(ParamValidationError):
            params[field] = [name]


def test_flows_resets_and_failures_become_arguments():
    """As the command line wants them; a failure's tables can't be chosen by hand, too."""
    chosen = read_selection({"flows": ["a.b"], "reset_checkpoint": ["c"]})
    assert chosen.arguments() == ["--flows", "a.b", "--reset-checkpoint", "c"]
    assert read_selection({"refresh_failed": True}).arguments() == ["--refresh-failed"]
    assert bool(read_selection({"refresh_failed": True}))
    with pytest.raises(InvalidName, match="others are named"):
        read_selection({"refresh_failed": True, "tables": ["a"]})
    with pytest.raises(InvalidName, match="neither true nor false"):
        read_selection({"refresh_failed": "yes"})


@pytest.mark.parametrize("params", [{"flows": ["a"]}, {"full_refresh_all": True}])
def test_a_submit_for_each_table_takes_nothing_of_the_whole(params):
    """No task could know which of the others run the flows, and each would empty the tables of all."""
    with pytest.raises(InvalidName, match="A submit for each table"):
        read_selection(params, ["orders"])
