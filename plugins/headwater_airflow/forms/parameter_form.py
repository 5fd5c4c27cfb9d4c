"""Parameters on the form of a run, and their values read back: anybody may post anything, so they are checked again.

Decision 0160.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from airflow.sdk import Param

from headwater.definitions.parameter import REFERENCE, ParameterSpec
from headwater.definitions.parameter_value import LONGEST_VALUE, ParameterType, Value, value_text
from headwater.errors import InvalidName
from headwater.graph.conditions import InvalidParameter
from headwater.suggestions import did_you_mean, nearest

_SCHEMAS: dict[ParameterType, dict[str, Any]] = {
    ParameterType.STRING: {"type": "string", "maxLength": LONGEST_VALUE},
    ParameterType.INTEGER: {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    ParameterType.NUMBER: {"type": "number"},
    ParameterType.BOOLEAN: {"type": "boolean"},
    ParameterType.DATE: {"type": "string", "format": "date"},
    ParameterType.TIMESTAMP: {"type": "string", "format": "date-time"},
}
_SECTION = "Parameters"
# Airflow's TriggerDagRunOperator puts in here who has triggered the run, where OpenLineage is on.
_OF_AIRFLOW = "openlineage"
_REFERENCE_HINT = "Where the secret lies: env:NAME, connection:ID or variable:KEY. Never the secret itself."


def parameter_fields(parameters: Mapping[str, ParameterSpec]) -> dict[str, Param]:
    """A field for each declared parameter, with its type, its values and its description."""
    return {name: _field(spec) for name, spec in parameters.items()}


def parameters_field(parameters: Mapping[str, ParameterSpec]) -> dict[str, Param]:
    """One field for all parameters, on forms with fields of their own; none where the pipeline declares none."""
    if not parameters:
        return {}
    known = ", ".join(parameters)
    text = f'Values of the pipeline\'s parameters, as {{"name": value}}; others have their defaults. It has: {known}.'
    return {"parameters": Param({}, type="object", title="Parameters", description=text)}


def _field(spec: ParameterSpec) -> Param:
    schema = {**_SCHEMAS[spec.type], "section": _SECTION}
    description = spec.description
    if spec.secret:
        schema["pattern"] = f"^{REFERENCE.pattern}$"
        description = f"{description} {_REFERENCE_HINT}".strip()
    if spec.enum is not None:
        schema["enum"] = [_plain(value) for value in spec.enum]
    if description:
        schema["description"] = description
    default = spec.default_value
    if default is None and spec.required:
        if spec.type is ParameterType.STRING:
            schema["minLength"] = 1
        return Param(**schema)
    if default is None:
        schema["type"] = ["null", schema["type"]]
        if spec.enum is not None:
            schema["enum"].append(None)
    return Param(None if default is None else _plain(default), **schema)


def _plain(value: Value) -> Any:
    """A value as JSON has it."""
    return value if isinstance(value, bool | int | float | str) else value_text(value)


def read_parameters(params: Mapping[str, Any], declared: Collection[str]) -> dict[str, object]:
    """The values in a run's parameters; an empty field is left to the default."""
    return {name: params[name] for name in declared if params.get(name) is not None}


def refuse_unknown_fields(given: Iterable[str], known: Collection[str]) -> None:
    """Raise InvalidParameter for a field that neither the form nor its DAG has: it would have no effect."""
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise InvalidParameter(
            f"A run of this DAG has no field {ascii(unknown)[:80]}.",
            remedy=did_you_mean(nearest(unknown, known), f"It has: {', '.join(known)}."),
        )


def refuse_unknown_conf(task: Any, context: Mapping[str, Any], also: Collection[str] = ()) -> None:
    """Raise InvalidParameter for a field of the run's conf that its DAG's form does not have.

    Airflow takes any. A misspelled ``tables`` or ``dry_run`` would be a run with the form's defaults.

    Args:
        task: an operator of the DAG.
        context: of the task.
        also: fields that are read in any case, where the DAG's author has replaced the form.
    """
    dag = task.get_dag()
    known = {*dag.params, *also} if dag else {*context["params"], *also}
    conf = getattr(context.get("dag_run"), "conf", None) or {}
    refuse_unknown_fields([name for name in conf if name != _OF_AIRFLOW], sorted(known))


def read_object(params: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A field that holds several values by name."""
    value = params.get(key) or {}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise InvalidName(
            "The values are not an object of names and values.", where=key, remedy='Write {"name": "value"}.'
        )
    return dict(value)
