"""The notifiers that a pipeline.yml names."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from airflow.sdk import BaseNotifier

from headwater.definitions.airflow_spec import NotifierSpec
from headwater.errors import InvalidSpec


def notifiers_on(specs: Sequence[NotifierSpec], occasion: str) -> list[BaseNotifier]:
    """The notifiers to call on ``alert``, ``failure`` or ``success``.

    Raises:
        InvalidSpec: where a class can't be imported, is not a notifier, or does not take the arguments.

    """
    return [_notifier(spec) for spec in specs if occasion in spec.when]


def _notifier(spec: NotifierSpec) -> BaseNotifier:
    module, _, name = spec.notifier.rpartition(".")
    try:
        kind = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise _wrong(spec, f"can't be imported: {error}") from None
    if not (isinstance(kind, type) and issubclass(kind, BaseNotifier)):
        raise _wrong(spec, "is not a subclass of Airflow's BaseNotifier")
    try:
        return kind(**spec.arguments)
    except (TypeError, ValueError) as error:
        raise _wrong(spec, f"does not take these arguments: {error}") from None


def _wrong(spec: NotifierSpec, why: str) -> InvalidSpec:
    return InvalidSpec(
        f"`airflow.notifiers`: {spec.notifier} {why}.",
        remedy="Name a class of an installed provider, such as airflow.providers.smtp.notifications.smtp.SmtpNotifier, and its arguments.",
    )
