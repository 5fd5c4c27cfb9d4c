"""The manifests of the last updates after a table was renamed or moved, so that verbs that read them keep working.

They no longer match the sources: the next update resolves the graph again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headwater.checkpoints.guarded_files import Guarded
from headwater.checkpoints.table_move import TableMove
from headwater.definitions.dataset import quarantine_folder
from headwater.graph.manifest import DatasetEntry, FlowEntry, Manifest
from headwater.graph.stored_manifest import replace_manifest, seen_manifest
from headwater.moves.move_request import Wish
from headwater.moves.moved_folders import renamed_flow
from headwater.storage.place import located, parts_below

# An empty hash, which matches no sources: these may still declare the old name.
_NO_SOURCES = "moved"


def rewrite_manifests(move: TableMove, wish: Wish, check: Callable[[], None]) -> None:
    """Write the new name, or the table's new pipeline, into the stored manifests; done twice, it changes nothing more.

    ``check``: raises where a lease is lost; LeaseLost is raised, too, where another process has written a manifest since.
    """
    seen, source = seen_manifest(wish.source.state_folder)
    if source is None:
        return
    entry = next((item for item in source.datasets if item.name == move.source.dataset), None)
    if entry is None:
        return
    flows = [_renamed(flow, move) for flow in source.flows_into(entry.name)]
    table = _renamed_table(entry, move, wish)
    if move.within:
        source = _without_dropped(source, table.name)
        datasets = tuple(table if item is entry else item for item in source.datasets)
        others = (_renamed(flow, move, table) for flow in source.flows)
        _write(seen, check, source, datasets, tuple(others))
        return
    seen_there, there = seen_manifest(wish.target.state_folder)
    target = _without_dropped(there or _empty(source, wish), table.name)
    if all(item.name != table.name for item in target.datasets):
        names = {item.name for item in target.datasets} | {table.name}
        taken = [_with_order(flow, lambda name: name if name in names else None) for flow in flows]
        _write(seen_there, check, target, (*target.datasets, table), (*target.flows, *taken))
    datasets = tuple(item for item in source.datasets if item is not entry)
    left = tuple(flow for flow in source.flows if flow.target != entry.name)
    _write(seen, check, source, datasets, tuple(_without(flow, entry.name) for flow in left))


def _empty(like: Manifest, wish: Wish) -> Manifest:
    """The manifest of a pipeline that has not run."""
    own = {"pipeline_id": wish.target.pipeline_id, "pipeline_name": wish.target.spec.name}
    names = {"catalog": wish.target.spec.catalog, "schema_name": wish.target.spec.schema}
    return like.model_copy(update={**own, **names, "datasets": (), "flows": ()})


def _without_dropped(manifest: Manifest, name: str) -> Manifest:
    """The manifest without a table of this name that was dropped: now another one has it."""
    if name not in manifest.dropped:
        return manifest
    changes = {
        "dropped": tuple(other for other in manifest.dropped if other != name),
        "datasets": tuple(entry for entry in manifest.datasets if entry.name != name),
        "flows": tuple(flow for flow in manifest.flows if flow.target != name),
    }
    return manifest.model_copy(update=changes)


def _without(flow: FlowEntry, dataset: str) -> FlowEntry:
    return _with_order(flow, lambda name: None if name == dataset else name)


def _with_order(flow: FlowEntry, name_of: Callable[[str], str | None]) -> FlowEntry:
    """The flow with the datasets that it reads and waits for under other names; None: not any more."""

    def named(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new for name in names if (new := name_of(name)) is not None)

    return flow.model_copy(update={"inputs": named(flow.inputs), "depends_on": named(flow.depends_on)})


def _write(
    seen: Guarded[str],
    check: Callable[[], None],
    manifest: Manifest,
    datasets: tuple[DatasetEntry, ...],
    flows: tuple[FlowEntry, ...],
) -> None:
    changes: Mapping[str, object] = {"datasets": datasets, "flows": flows, "source_hash": _NO_SOURCES}
    replace_manifest(seen, manifest.model_copy(update=changes), check)


def _renamed_table(entry: DatasetEntry, move: TableMove, wish: Wish) -> DatasetEntry:
    location = entry.location
    for before, after in move.folders:
        if location is not None and str(located(wish.source.warehouse, location)) == before:
            location = "/".join(parts_below(wish.place(after), wish.target.warehouse))
            break
    quarantine = (
        quarantine_folder(location) if entry.quarantine and location is not None else entry.quarantine
    )
    return entry.model_copy(
        update={"name": move.target.dataset, "location": location, "quarantine": quarantine}
    )


def _renamed(flow: FlowEntry, move: TableMove, table: DatasetEntry | None = None) -> FlowEntry:
    old, new = move.source.dataset, move.target.dataset
    sources = tuple(
        source.model_copy(update={"name": new, "location": table.location})
        if table is not None and source.name == old
        else source
        for source in flow.sources
    )
    own: dict[str, object] = {}
    if flow.target == old:
        waits = tuple(renamed_flow(name, old, new) for name in flow.after_flows)
        own = {"name": renamed_flow(flow.name, old, new), "target": new, "after_flows": waits}
    renamed = _with_order(flow, lambda name: new if name == old and table is not None else name)
    return renamed.model_copy(update={**own, "sources": sources})
