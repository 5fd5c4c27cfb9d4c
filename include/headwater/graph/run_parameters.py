"""The values of a run's parameters: checked against their declarations wherever they come from.

They come from a command line, from the form of an Airflow run or from another DAG: nobody is trusted, and the driver checks
again what was checked before it was started.

Decision 0160.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headwater.definitions.parameter import REFERENCE, ParameterSpec
from headwater.definitions.parameter_value import Value, value_text
from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.definitions.platform_settings import SettingPlace, wrong_place
from headwater.graph.conditions import InvalidParameter
from headwater.graph.spec_file import place_of
from headwater.runtime.secret_values import REDACTED, names_a_secret, note_secret
from headwater.suggestions import did_you_mean, nearest

_LISTED = 12


def given_values(
    spec: PipelineSpec, given: Mapping[str, object], where: Path | None = None
) -> dict[str, str]:
    """The values given for a run as texts, each checked; those that are the default anyway are left out.

    Args:
        spec: with the declarations.
        given: texts of a command line, or values of JSON.
        where: the pipeline's file, for errors.

    Raises:
        InvalidParameter: a name that is neither a parameter nor a key of the configuration, a value of another type, or a
            secret in plain text.
    """
    texts: dict[str, str] = {}
    for name, value in given.items():
        declared = spec.parameters.get(name)
        if declared is None:
            texts[name] = _undeclared(spec, name, value, where)
            continue
        text = value_text(_read(name, declared, value, where))
        default = declared.default_value
        if default is None or text != value_text(default):
            texts[name] = text
    return texts


@dataclass(frozen=True)
class RunParameters:
    """The declared parameters with the values of one run.

    ``given``: as :func:`given_values` gives them. ``environment``: where references ``env:NAME`` lead.
    """

    declared: Mapping[str, ParameterSpec]
    given: Mapping[str, str]
    environment: Mapping[str, str]
    where: Path | None = None

    def values(self) -> dict[str, Value | None]:
        """Every declared parameter as its type; None where it has neither a value nor a default.

        Raises:
            InvalidParameter: a required one has no value, or the variable of a secret is not set.
        """
        values = {name: self._value(name, spec) for name, spec in self.declared.items()}
        missing = [name for name, spec in self.declared.items() if spec.required and values[name] is None]
        if missing:
            raise InvalidParameter(
                f"The parameter {missing[0]!r} is required and has no value.",
                where=_declaration(self.where, missing[0]),
                remedy=f"Give it: --param {missing[0]}=VALUE, or in the form of the run.",
            )
        return values

    def texts(self) -> dict[str, str]:
        """The values as texts for the configuration; what has none is left out, whatever is required."""
        texts: dict[str, str] = {}
        for name, spec in self.declared.items():
            value = self._secret(name, spec) if spec.secret else self._value(name, spec)
            if value is not None:
                texts[name] = value_text(value)
        return texts

    def shown(self) -> dict[str, str]:
        """The values as the event log and the page may have them."""
        texts = self.texts()
        return {name: REDACTED if self.declared[name].secret else text for name, text in texts.items()}

    def note_secrets(self) -> None:
        """Remember the secrets, so that no text of ours shows them."""
        for name, spec in self.declared.items():
            if spec.secret:
                note_secret(self._secret(name, spec))

    def _value(self, name: str, spec: ParameterSpec) -> Value | None:
        given = _read(name, spec, self.given[name], self.where) if name in self.given else None
        reference = spec.default_value if given is None else given
        if not spec.secret:
            return reference
        value = self._secret(name, spec)
        if value is None and reference is not None:
            raise InvalidParameter(
                f"The secret parameter {name!r} refers to {reference}, which {_unreachable(str(reference))}.",
                where=_declaration(self.where, name),
                remedy="Set the variable in the environment of whoever runs the pipeline."
                if str(reference).startswith("env:") else "Give --param " + name + "=env:NAME here.",
            )  # fmt: skip
        return value

    def _secret(self, name: str, spec: ParameterSpec) -> str | None:
        reference = REFERENCE.fullmatch(str(self.given.get(name, spec.default)))
        return self.environment.get(reference[2]) if reference and reference[1] == "env" else None


def _unreachable(reference: str) -> str:
    return "is not set" if reference.startswith("env:") else "only Airflow can look up"


def _declaration(where: Path | None, name: str) -> str | None:
    """The line at which a parameter is declared."""
    return None if where is None else place_of(where, "parameters", name)


def _read(name: str, spec: ParameterSpec, value: object, where: Path | None) -> Value:
    try:
        return spec.read(value)
    except ValueError as error:
        got = "" if spec.secret else f" (got {ascii(value)[:80]})"
        raise InvalidParameter(
            f"The parameter {name!r} {error}{got}.",
            where=_declaration(where, name),
            remedy=f"It is declared as {spec.type}{f': {spec.description}' if spec.description else ''}.",
        ) from None


def _undeclared(spec: PipelineSpec, name: str, value: object, where: Path | None) -> str:
    """A value for a key of the configuration; where parameters are declared, no other name is taken."""
    if spec.parameters and name not in spec.configuration:
        known = [*spec.parameters, *spec.configuration]
        raise InvalidParameter(
            f"The pipeline has no parameter {ascii(name)[:80]}.",
            where=where,
            remedy=did_you_mean(nearest(name, known), f"It has: {', '.join(known[:_LISTED])}."),
        )
    wrong = wrong_place([name], SettingPlace.CONFIGURATION)
    if wrong is not None:
        raise InvalidParameter(f"{wrong.what}.", where=where, remedy=wrong.remedy)
    if not isinstance(value, str):
        shown = "" if names_a_secret(name) else f" (got {ascii(value)[:80]})"
        raise InvalidParameter(f"The value of {name!r} must be text{shown}.", where=where)
    return value
