"""The folders of a table that is renamed or moved, where each goes, and whether it can."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from headwater.checkpoints.conditions import NameTaken, TableNested
from headwater.checkpoints.layout import FlowCheckpoint, change_memory
from headwater.checkpoints.table_move import is_free
from headwater.definitions.dataset import quarantine_folder
from headwater.definitions.dataset_name import DatasetName
from headwater.delta_log.table_history import table_exists
from headwater.errors import RefusedForSafety
from headwater.graph.change_targets import hydration_name
from headwater.graph.manifest import DatasetEntry
from headwater.graph.table_places import refuse_around_tables
from headwater.moves.move_request import Wish
from headwater.moves.stored_folders import is_there
from headwater.quarantine.table import is_quarantine
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place, is_below

_ROOTS = ("checkpoints", "snapshots")


def flow_folders(state_folder: Place, dataset: str, root: str = "checkpoints") -> list[FlowCheckpoint]:
    """The flows of a table that have a folder, also those that the sources no longer define."""
    folder = state_folder / root / dataset
    folders = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [FlowCheckpoint(path) for path in folders if is_there(path)]


def renamed_flow(flow: str, dataset: str, new: str) -> str:
    """The name of a flow after its table got another: flows that are named after the table follow it."""
    named_after = {dataset: new, hydration_name(dataset): hydration_name(new)}
    return named_after.get(flow, flow)


def moved_folders(
    wish: Wish, entry: DatasetEntry, name: DatasetName, new: str
) -> Iterator[tuple[Place, Place]]:
    """Each folder of a table that is there, and where it goes. ``name``, ``new``: the new name, and as the target shows it."""
    source, target = wish.source.state_folder, wish.target.state_folder
    flows = [flow.folder.name for root in _ROOTS for flow in flow_folders(source, wish.dataset, root)]
    # Of each flow a copy is taken first, and goes along.
    for root, flow in product(_ROOTS, dict.fromkeys(flows)):
        after = target / root / new / renamed_flow(flow, wish.dataset, new)
        yield source / root / wish.dataset / flow, after
    pairs = [(change_memory(source, wish.dataset), change_memory(target, new))]
    places = table_places(wish, entry, name)
    pairs += places if not places or is_quarantine(places[0][0]) else places[1:]
    yield from ((before, after) for before, after in pairs if is_there(before) and before != after)


def table_places(wish: Wish, entry: DatasetEntry, name: DatasetName) -> list[tuple[Place, Place]]:
    """Where the quarantine and then the table are, or would be, and where they go; none where ``path=`` says where it is."""
    location = _new_location(wish, entry, name)
    if location is None:
        return []
    old, now = location
    names = ((quarantine_folder(old), quarantine_folder(now)), (old, now))
    return [(wish.source.warehouse / before, wish.target.warehouse / after) for before, after in names]


def _new_location(wish: Wish, entry: DatasetEntry, name: DatasetName) -> tuple[str, str] | None:
    """The table's folder now and then; None where its owner gave it one with ``path=``, which stays."""
    spec = wish.source.spec
    own = DatasetName.parse(entry.name, catalog=spec.catalog, schema=spec.schema).location
    places = {
        own: name.location,
        f".private/{wish.source.pipeline_id}/{own}": f".private/{wish.target.pipeline_id}/{name.location}",
    }
    location = entry.location or ""
    return (location, places[location]) if location in places else None


def refuse_taken_places(
    wish: Wish, new: str, folders: tuple[tuple[Place, Place], ...], wanted: Iterable[Place]
) -> None:
    """Refuse a move to where something is, that would nest tables, or that can't be done in one step. ``wanted``: places that must be free, too."""
    places = dict.fromkeys([*(after for _, after in folders), *wanted])
    taken = next((place for place in places if is_there(place)), None)
    for root in _ROOTS:
        folder = wish.target.state_folder / root / new
        taken = taken or (None if is_free(folder) else folder)
    if taken is not None:
        raise NameTaken(
            f"{new!r} is taken: something of that name is there already.",
            where=taken,
            remedy=f"Choose another name; or, if an update has begun to fill it again, remove that first: "
            f"headwater drop PIPELINE_DIR {new} --yes",
        )
    for before, after in folders:
        if not is_below(before, wish.source.state_folder):
            refuse_around_tables(before)
        outer = next((above for above in after.parents if table_exists(above)), None)
        if outer is not None:
            raise TableNested(
                f"{new!r} would lie inside a table: {after} is below {outer}.",
                where=outer,
                remedy="Choose another name or schema.",
            )
        if not _is_near(before, after):
            raise RefusedForSafety(
                f"{before} and {after} are on different file systems: the folder could not be renamed in one step.",
                where=before,
                remedy="Keep the storage and the warehouse of both pipelines on one file system, or on stores "
                "(headwater move ... --storage, --warehouse).",
            )


def _is_near(before: Place, after: Place) -> bool:
    """Whether a folder can get its new place: by a rename on one file system, or by a copy between addresses of stores."""
    if isinstance(before, ObjectPath) or isinstance(after, ObjectPath):
        return isinstance(before, ObjectPath) and isinstance(after, ObjectPath)
    here, there = (next(p for p in path.parents if p.exists()) for path in (before, after))
    return here.stat().st_dev == there.stat().st_dev
