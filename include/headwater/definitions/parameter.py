"""A parameter as ``pipeline.yml`` declares it: its type, its default, and who may see its value.

Decision 0160.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from headwater.definitions.names import NAME_PATTERN
from headwater.definitions.parameter_value import ParameterType, Value, kind_of, read_value, value_text
from headwater.runtime.secret_values import names_a_secret

# Fields of the form of an update that are not parameters; one that had such a name could not be filled in.
FORM_FIELDS = frozenset(
    {"tables", "flows", "full_refresh", "full_refresh_all", "reset_checkpoint", "refresh_failed"}
)
# Where a secret lies: in a variable of the driver's environment, or in Airflow's connections and variables.
REFERENCE = re.compile(r"(env|connection|variable):([A-Za-z0-9_][A-Za-z0-9_.-]{0,199})")
_HOW_SECRETS = "a secret is given as a reference: env:NAME, or under Airflow connection:ID or variable:KEY"


def _usable_name(name: str) -> str:
    if not NAME_PATTERN.fullmatch(name):
        raise ValueError(
            "a parameter's name has letters, digits and underscores, does not begin with a digit, and is at most 128 long"
        )
    if name in FORM_FIELDS:
        raise ValueError("the form of a run has a field of this name; choose another")
    return name


ParameterName = Annotated[str, AfterValidator(_usable_name)]


class ParameterSpec(BaseModel):
    """One parameter. ``default``: of its type; of a secret, a reference to where it lies. A lone value is a default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: ParameterType = ParameterType.STRING
    default: Any = None
    description: str = Field(default="", max_length=1000)
    required: bool = False
    enum: tuple[Any, ...] | None = Field(default=None, min_length=1, max_length=1000)
    secret: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _lone_value(cls, given: Any) -> Any:
        if given is None:
            return {}
        return given if isinstance(given, dict) else {"type": kind_of(given), "default": given}

    @field_validator("enum")
    @classmethod
    def _listed(cls, values: tuple[Any, ...] | None, info: Any) -> tuple[Value, ...] | None:
        kind = info.data.get("type")
        if values is None or kind is None:
            return values
        try:
            return tuple(dict.fromkeys(read_value(kind, value) for value in values))
        except ValueError as error:
            raise ValueError(f"each value {error}") from None

    @model_validator(mode="after")
    def _fitting_default(self) -> ParameterSpec:
        if self.secret:
            if self.type is not ParameterType.STRING or self.enum is not None:
                raise ValueError("a secret is a string without an enum")
            if self.default is not None and not is_reference(self.default):
                raise ValueError(f"{_HOW_SECRETS}; its default, too")
            return self
        if self.default is not None:
            try:
                self.read(self.default)
            except ValueError as error:
                raise ValueError(f"the default {error}") from None
        return self

    def read(self, given: object) -> Value:
        """A value given for a run as this parameter's type; of a secret, the reference.

        Raises:
            ValueError: it is of another type, none of the listed values, or a secret in plain text; the message has no value.
        """
        if self.secret:
            if not is_reference(given):
                raise ValueError(f"can't be given in plain text: {_HOW_SECRETS}")
            return str(given)
        value = read_value(self.type, given)
        if self.enum is not None and value not in self.enum:
            listed = ", ".join(value_text(item) for item in self.enum[:20])
            raise ValueError(f"must be one of: {listed}{', ...' if len(self.enum) > 20 else ''}")
        return value

    @property
    def default_value(self) -> Value | None:
        """The default as its type (of a secret, the reference); None where there is none."""
        return None if self.default is None else self.read(self.default)


def is_reference(value: object) -> bool:
    """Whether a value says where a secret lies."""
    return isinstance(value, str) and REFERENCE.fullmatch(value) is not None


def undeclared_secret(parameters: Mapping[str, ParameterSpec]) -> str | None:
    """The first parameter that is named like a secret and does not say whether it is one."""
    return next(
        (name for name, spec in parameters.items() if spec.secret is None and names_a_secret(name)), None
    )
