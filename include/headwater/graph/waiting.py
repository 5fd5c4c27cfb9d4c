"""``depends_on``: a flow's table waits for datasets that the flow does not read.

Decision 0175.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from headwater.definitions.flow import Flow
from headwater.errors import DatasetCycle, UnknownDataset
from headwater.suggestions import did_you_mean, nearest


def check_waits(flows: Sequence[Flow], datasets: Collection[str], reads: Mapping[str, Sequence[str]]) -> None:
    """Check each ``depends_on``, once it is known what the flows read.

    Args:
        flows: all flows of the pipeline.
        datasets: the names of its datasets.
        reads: the datasets that each flow's function reads, by the flow's name.

    Raises:
        UnknownDataset: the pipeline has no dataset of that name.
        DatasetCycle: a table would wait for itself.
    """
    waiting = [flow for flow in flows if flow.depends_on]
    for flow in waiting:
        for name in flow.depends_on:
            if name not in datasets:
                raise UnknownDataset(
                    f"depends_on: the flow {flow.name!r} waits for {name!r}, which is no dataset of the pipeline.",
                    where=flow.location,
                    remedy=did_you_mean(
                        nearest(name, list(datasets)),
                        "Name a table, view or sink of this pipeline; an update that another pipeline ends is waited for "
                        "in Airflow.",
                    ),
                )
    before: dict[str, set[str]] = {name: set() for name in datasets}
    for flow in flows:
        # A flow may read its own table; that is no order.
        before[flow.target] |= {name for name in reads.get(flow.name, ()) if name != flow.target}
        before[flow.target] |= set(flow.depends_on)
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        # graphlib lists each before what waits for it.
        circle = list(reversed(error.args[1]))
        guilty = next((flow for flow in waiting if flow.target in circle), None)
        raise DatasetCycle(
            f"Datasets wait for each other in a circle: {' -> '.join(circle)}.",
            where=guilty.location if guilty else None,
            remedy="Take a name out of depends_on: a table can't wait for one that reads it.",
        ) from None
