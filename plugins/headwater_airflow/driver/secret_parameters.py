"""Secret parameters on their way to the driver: through its environment, where no list of processes shows them.

Decision 0160.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow.sdk import BaseHook, Variable
from airflow.sdk.exceptions import AirflowNotFoundException, AirflowRuntimeError, ErrorType
from airflow.sdk.log import mask_secret

from headwater.definitions.parameter import REFERENCE, ParameterSpec
from headwater.graph.conditions import InvalidParameter
from headwater.runtime.secret_values import note_secret

_PREFIX = "HEADWATER_PARAMETER_"


@dataclass(frozen=True)
class DriverParameters:
    """Values for a driver. ``variables``: of its environment, with the secrets that the values refer to."""

    values: Mapping[str, object]
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """The worker's environment with the secrets in it."""
        return {**os.environ, **self.variables}


def driver_parameters(declared: Mapping[str, ParameterSpec], given: Mapping[str, object]) -> DriverParameters:
    """Look up what lies in Airflow's connections and variables; references to the environment are left to the driver.

    Raises:
        InvalidParameter: there is no such connection or variable, or it holds no secret.
    """
    values, variables = dict(given), {}
    for name, spec in declared.items():
        reference = REFERENCE.fullmatch(str(given.get(name, spec.default))) if spec.secret else None
        if reference is None or reference[1] == "env":
            continue
        secret = _looked_up(name, reference[1], reference[2])
        mask_secret(secret)
        note_secret(secret)
        variables[_PREFIX + name] = secret
        values[name] = f"env:{_PREFIX}{name}"
    return DriverParameters(values, variables)


def _looked_up(name: str, kind: str, key: str) -> str:
    try:
        secret = BaseHook.get_connection(key).password if kind == "connection" else Variable.get(key)
    except AirflowNotFoundException:
        secret = None
    except AirflowRuntimeError as error:
        if error.error.error not in (ErrorType.VARIABLE_NOT_FOUND, ErrorType.CONNECTION_NOT_FOUND):
            raise
        secret = None
    if not secret or not isinstance(secret, str):
        what = "password in a connection" if kind == "connection" else "variable"
        raise InvalidParameter(
            f"The secret parameter {name!r} refers to {kind}:{key}, and Airflow has no {what} of that name.",
            remedy="Make it in Airflow (Admin), or refer to another.",
        )
    return str(secret)
