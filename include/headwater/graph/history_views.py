"""What is declared implicitly with a target of AUTO CDC: the target itself, and views of a history.

``<table>_current`` has the rows that hold now, ``<table>_versions`` all of them; both spell the ends ``valid_from`` and
``valid_to``, of a bitemporal history also ``known_from`` and ``known_to``. A dataset of the user's with such a name takes its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.flow import Flow
from headwater.graph.registry import Registry

_ENDS = {"__START_AT": "valid_from", "__END_AT": "valid_to"}
_SYSTEM_ENDS = {"__SYSTEM_START_AT": "known_from", "__SYSTEM_END_AT": "known_to"}


def declare_targets(registry: Registry) -> None:
    """Declare tables that no query has turned up for, and the targets of change flows that nothing declares, as streaming tables."""
    registry.declare_waiting()
    for flow in registry.flows():
        if flow.changes is not None and not _has(registry, flow.target):
            name = registry.dataset_name(flow.target, flow.location)
            registry.add_dataset(Dataset(flow.target, name, DatasetKind.STREAMING_TABLE, flow.location))


def declare_history_views(registry: Registry) -> frozenset[str]:
    """Declare the views of every history; gives their names."""
    declared = []
    for flow in registry.flows():
        changes = flow.snapshots.changes if flow.snapshots is not None else flow.changes
        if changes is None or not changes.history:
            continue
        for suffix, current in (("_current", True), ("_versions", False)):
            name = registry.canonical(f"{flow.target}{suffix}", flow.location)
            if not _has(registry, name):
                bitemporal = changes.system_sequence_by is not None
                reading = _reading(registry, flow.target, current=current, bitemporal=bitemporal)
                _declare(registry, flow, name, reading)
                declared.append(name)
    return frozenset(declared)


def _declare(registry: Registry, flow: Flow, name: str, function: Callable[[], Any]) -> None:
    qualified = registry.dataset_name(name, flow.location)
    registry.add_dataset(Dataset(name, qualified, DatasetKind.TEMPORARY_VIEW, flow.location), function)
    registry.add_flow(Flow(name, name, function, flow.location))


def _reading(registry: Registry, target: str, *, current: bool, bitemporal: bool) -> Callable[[], Any]:
    def read() -> Any:
        assert registry.reader is not None
        rows = registry.reader.read_dataset(target)
        if current:
            rows = rows.where("__END_AT IS NULL" + (" AND __SYSTEM_END_AT IS NULL" if bitemporal else ""))
        taken = {name.lower() for name in rows.columns}
        for column, name in (_ENDS | (_SYSTEM_ENDS if bitemporal else {})).items():
            rows = rows if name in taken else rows.withColumnRenamed(column, name)
        return rows

    return read


def _has(registry: Registry, name: str) -> bool:
    return any(dataset.name.lower() == name.lower() for dataset in registry.datasets())
