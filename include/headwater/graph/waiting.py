"""``depends_on``: a flow waits for flows or datasets that it does not read.

A name of a flow into the same target is an order within that target; any other name lets the whole target wait.

Decision 0175.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from headwater.definitions.flow import Flow
from headwater.errors import DatasetCycle, UnknownDataset
from headwater.suggestions import did_you_mean, nearest


def beside(flow: Flow, flows: Iterable[Flow]) -> tuple[str, ...]:
    """The flows into its own target that it waits for, as ``depends_on`` names them."""
    into = {other.name for other in flows if other.target == flow.target and other.name != flow.name}
    return tuple(name for name in flow.depends_on if name in into)


def upstream(flow: Flow, flows: Iterable[Flow], datasets: Collection[str]) -> tuple[str, ...]:
    """The datasets that its target waits for: those that it names, and the targets of the flows that it names."""
    targets = {other.name: other.target for other in flows}
    within = beside(flow, flows)
    names = (
        name if name in datasets else targets.get(name, name)
        for name in flow.depends_on
        if name not in within
    )
    return tuple(dict.fromkeys(names))


def check_waits(flows: Sequence[Flow], datasets: Collection[str], reads: Mapping[str, Sequence[str]]) -> None:
    """Check each ``depends_on``, once it is known what the flows read.

    Args:
        flows: all flows of the pipeline.
        datasets: the names of its datasets.
        reads: the datasets that each flow's function reads, by the flow's name.

    Raises:
        UnknownDataset: the pipeline has no flow and no dataset of that name.
        DatasetCycle: a table or a flow would wait for itself.
    """
    waiting = [flow for flow in flows if flow.depends_on]
    for flow in waiting:
        _check_names(flow, flows, datasets)
    before: dict[str, set[str]] = {name: set() for name in datasets}
    for flow in flows:
        # A flow may read its own table; that is no order.
        before[flow.target] |= {name for name in reads.get(flow.name, ()) if name != flow.target}
        before[flow.target] |= set(upstream(flow, flows, datasets))
    _check_circles(
        before, {flow.target: flow for flow in reversed(waiting)}, "Datasets",
        "Take a name out of depends_on: a table can't wait for one that reads it, or that waits for it as a whole.",
    )  # fmt: skip
    _check_circles(
        {flow.name: set(beside(flow, flows)) for flow in flows}, {flow.name: flow for flow in waiting}, "Flows",
        "Take a name out of depends_on: one of the flows has to be the first.",
    )  # fmt: skip


def _check_names(flow: Flow, flows: Sequence[Flow], datasets: Collection[str]) -> None:
    known = {*datasets, *(other.name for other in flows)}
    for name in flow.depends_on:
        if name not in known:
            raise UnknownDataset(
                f"depends_on: the flow {flow.name!r} waits for {name!r}, which is no flow and no dataset of the pipeline.",
                where=flow.location,
                remedy=did_you_mean(
                    nearest(name, sorted(known)),
                    "Name a flow, table, view or sink of this pipeline; an update that another pipeline ends is waited for "
                    "in Airflow.",
                ),
            )


def _check_circles(
    before: Mapping[str, Collection[str]], waiting: Mapping[str, Flow], what: str, remedy: str
) -> None:
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        # graphlib lists each before what waits for it.
        circle = list(reversed(error.args[1]))
        guilty = next((waiting[name] for name in circle if name in waiting), None)
        raise DatasetCycle(
            f"{what} wait for each other in a circle: {' -> '.join(circle)}.",
            where=guilty.location if guilty else None,
            remedy=remedy,
        ) from None
