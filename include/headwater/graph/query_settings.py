"""The Spark settings of a query: its flow's own, and those of the views that are a part of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from headwater.definitions.flow import Flow
from headwater.errors import UnsupportedArgument


def query_settings(
    reader: Flow, views: Iterable[Flow], reads: Mapping[str, Sequence[str]]
) -> Mapping[str, str]:
    """The settings in force while a query is planned and runs.

    Args:
        reader: the flow that runs.
        views: the flows of the pipeline's temporary views.
        reads: the datasets that each flow's function reads, by the flow's name.

    Raises:
        UnsupportedArgument: two of them want different values of one setting; one query has one session.
    """
    settings = dict(reader.spark_conf)
    owner = dict.fromkeys(settings, reader)
    for view in views_in(reader.name, {view.name: view for view in views}, reads):
        for key, value in view.spark_conf.items():
            if settings.setdefault(key, value) != value:
                other = owner[key]
                raise UnsupportedArgument(
                    f"spark_conf: {view.name!r} sets {key} to {value!r}, and {other.name!r} sets it to {settings[key]!r}; both are "
                    f"parts of the query of {reader.name!r}, which runs with one value.",
                    where=view.location,
                    remedy=f"Give both one value, or make {view.name!r} a table: it then has a query of its own.",
                )
            owner.setdefault(key, view)
    return settings


def views_in(name: str, views: Mapping[str, Flow], reads: Mapping[str, Sequence[str]]) -> Iterator[Flow]:
    """The views that are a part of a query, at any depth, each once. ``views``: all, by name; ``reads``: as for :func:`query_settings`."""
    left, seen = list(reads.get(name, ())), {name}
    while left:
        view = views.get(left.pop(0))
        if view is not None and view.name not in seen:
            seen.add(view.name)
            yield view
            left += reads.get(view.name, ())
