"""Parameters on the form of a run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import ParamValidationError

from headwater.definitions.parameter import FORM_FIELDS
from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.errors import InvalidName
from headwater.graph.conditions import InvalidParameter
from headwater_airflow.forms.parameter_form import (
    parameter_fields,
    parameters_field,
    read_object,
    read_parameters,
    refuse_unknown_conf,
    refuse_unknown_fields,
)
from headwater_airflow.forms.selection import flow_params, selection_params

DECLARED = PipelineSpec.model_validate(
    {
        "name": "shop",
        "parameters": {
            "day": {"type": "date", "required": True, "description": "Which day"},
            "limit": {"type": "integer", "default": 10, "enum": [10, 20]},
            "rate": {"type": "number"},
            "since": {"type": "timestamp", "default": "2026-01-31T08:00"},
            "fast": False,
            "region": {"enum": ["eu", "us"]},
            "token": {"secret": True, "default": "connection:shop"},
        },
    }
).parameters


def test_each_parameter_is_a_field_with_its_type_values_and_description():
    """The form says what the pipeline's file says; optional ones may stay empty, required ones may not."""
    fields = parameter_fields(DECLARED)
    shown = {name: (field.schema, field.value) for name, field in fields.items()}
    assert (shown["day"][0]["type"], shown["day"][0]["format"]) == ("string", "date")
    assert fields["day"].description == "Which day"
    assert (shown["limit"][0]["enum"], shown["limit"][1]) == ([10, 20], 10)
    assert shown["rate"][0]["type"] == ["null", "number"]
    assert shown["since"][1] == "2026-01-31T08:00:00+00:00"
    assert (shown["fast"][0]["type"], shown["fast"][1]) == ("boolean", False)
    assert shown["region"][0]["enum"] == ["eu", "us", None]
    assert shown["token"][1] == "connection:shop"
    assert "Never the secret itself" in str(fields["token"].description)


@pytest.mark.parametrize(
    ("name", "value"),
    [("day", "soon"), ("day", None), ("limit", "10"), ("limit", 11), ("rate", "x"), ("fast", 1), ("token", "hunter2-hunter2")],
)  # fmt: skip
def test_the_form_refuses_what_does_not_fit(name: str, value: object):
    """Airflow answers at once, for its page, its API and another DAG's trigger alike."""
    fields = parameter_fields({name: DECLARED[name]})
    with pytest.raises(ParamValidationError):
        ParamsDict({**fields, name: fields[name]}).update({name: value})


def test_an_untouched_form_is_valid_once_the_required_field_is_filled():
    """No default is refused by its own field."""
    params = ParamsDict(parameter_fields(DECLARED))
    params["day"] = "2026-01-31"
    assert read_parameters(params.validate(), DECLARED) == {
        "day": "2026-01-31", "limit": 10, "since": "2026-01-31T08:00:00+00:00", "fast": False, "token": "connection:shop",
    }  # fmt: skip


def test_no_parameter_can_take_the_name_of_a_field_of_the_form():
    """The names that are refused in the pipeline's file are those of the form."""
    assert {*selection_params([]), *flow_params([])} == FORM_FIELDS


def test_a_field_that_nobody_reads_is_refused_with_the_nearest():
    """A misspelled name in a trigger would be a run with the default."""
    refuse_unknown_fields({"day": 1}, ["day"])
    with pytest.raises(InvalidParameter, match="no field 'dya'") as caught:
        refuse_unknown_fields({"dya": 1}, ["day", "limit"])
    assert "Did you mean 'day'" in caught.value.remedy


def test_other_forms_have_one_field_for_all():
    """A backfill has fields of its own, so parameters are an object there; without parameters there is none."""
    assert parameters_field({}) == {}
    assert "day, limit" in parameters_field(DECLARED)["parameters"].description
    assert read_object({"parameters": {"day": "x"}}, "parameters") == {"day": "x"}
    assert read_object({}, "parameters") == {}
    with pytest.raises(InvalidName):
        read_object({"parameters": ["day"]}, "parameters")


def test_what_airflow_adds_to_a_conf_is_no_field():
    """Where OpenLineage is on, TriggerDagRunOperator says there who triggered the run; a wrong field beside it is refused as ever."""
    task = SimpleNamespace(get_dag=lambda: SimpleNamespace(params={"tables": []}))
    by_operator = {"openlineage": {"parentRunId": "0"}}
    refuse_unknown_conf(task, {"dag_run": SimpleNamespace(conf={**by_operator, "tables": ["a"]})})
    with pytest.raises(InvalidParameter, match="no field 'tabels'"):
        refuse_unknown_conf(task, {"dag_run": SimpleNamespace(conf={**by_operator, "tabels": ["a"]})})
