"""Which values of ``pipeline.yml`` are secrets: noted, so that no text of ours shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.runtime.secret_values import names_a_secret, note_secret, secret_variable

_VARIABLE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)")


# How settings of the closed platform name a secret: of a scope and a key.
_REFERENCE = re.compile(r"\{\{\s*secrets/([^/{}]+)/([^/{}]+?)\s*\}\}")


def by_variables(value: Any) -> Any:
    """The value with each ``{{secrets/scope/key}}`` as the ``${env:...}`` of the variable that ``dbutils.secrets`` would read."""
    if isinstance(value, Mapping):
        return {key: by_variables(item) for key, item in value.items()}
    if isinstance(value, list):
        return [by_variables(item) for item in value]
    if not isinstance(value, str):
        return value
    return _REFERENCE.sub(lambda match: f"${{env:{secret_variable(match[1], match[2])}}}", value)


def note_secrets(
    spec: PipelineSpec,
    written: Mapping[str, Any],
    environment: Mapping[str, str],
    parameters: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Note the values of settings named like a secret, of ``*_env`` keys, and of such ``${env:...}``.

    Args:
        spec: as it was read, with values from the environment in it.
        written: the file as it is, with ``${env:...}`` still in it.
        environment: where those values came from.
        parameters: values that take the place of those of the configuration for this run.

    """
    for name, value in (*spec.spark.items(), *spec.configuration.items(), *parameters.items()):
        if names_a_secret(name):
            note_secret(value)
    for key, text in _texts(written):
        if key.endswith("_env"):
            note_secret(environment.get(text))
        for variable in _VARIABLE.findall(text):
            if names_a_secret(variable) or names_a_secret(key):
                note_secret(environment.get(variable))


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _texts(item, str(name))
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, key)
    elif isinstance(value, str):
        yield key, value
