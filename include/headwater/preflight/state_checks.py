"""The state of a stateful query: every partition must have the version that the next batch builds on."""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from headwater.checkpoints.checksums import agrees
from headwater.checkpoints.conditions import PlanChanged, StateDamaged, StateLost
from headwater.files.json_lines import lines_of
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.sink_checks import last_remedy, remedy
from headwater.storage.listing import look_into
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place, parts_below
from headwater.storage.reading_ahead import read_ahead
from headwater.storage.walking import files_and_folders, files_below, in_order, names_in, sizes_in

_FILE = re.compile(r"(\d+)(?:_[^.]+)*\.(delta|changelog|snapshot|zip)")
_REPAIRS = (Repair.RESTORE, Repair.REWIND, Repair.FULL_REFRESH)
_UNREADABLE = (FileNotFoundError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


@dataclass
class StateStore:
    """The files of one store of one partition, by version: complete ones (snapshots), and changes on top of them."""

    folder: Place
    whole: dict[int, str] = field(default_factory=dict)
    changes: dict[int, str] = field(default_factory=dict)

    def base(self, version: int) -> int | None:
        """The whole version from which ``version`` can be made, 0 for the empty one, None where it can't."""
        at = version
        while at > 0:
            if at in self.whole:
                return at
            if at not in self.changes:
                return None
            at -= 1
        return 0

    def needed(self, version: int) -> list[Place]:
        """The files that a start at ``version`` reads."""
        base = self.base(version)
        if base is None:
            return []
        first = [self.whole[base]] if base else []
        names = [*first, *(self.changes[number] for number in range(base + 1, version + 1))]
        return [self.folder / name for name in names]


def state_stores(folder: Place) -> list[StateStore]:
    """Every store below the ``state`` folder of a checkpoint."""
    root = folder / "state"
    partitions = [
        operator / name
        for operator in (in_order(root.iterdir()) if root.is_dir() else ())
        if operator.name.isdigit() and operator.is_dir()
        for name in sorted(names_in(operator))
        if name.isdigit()
    ]
    return [store for partition in partitions for store in _stores_below(partition)]


def _stores_below(partition: Place) -> list[StateStore]:
    # A join of streams keeps several stores a partition, each in a folder of its name.
    files, folders = files_and_folders(partition)
    below = [partition / name for name in folders if name not in ("SSTs", "_metadata")]
    stores = [_store(partition, files), *(_store(folder, names_in(folder)) for folder in sorted(below))]
    return [store for store in stores if store.whole or store.changes]


def _store(folder: Place, names: list[str]) -> StateStore:
    store = StateStore(folder)
    for name in names:
        match = _FILE.fullmatch(name)
        if match is not None:
            files = store.whole if match[2] in ("snapshot", "zip") else store.changes
            files[int(match[1])] = name
    return store


def newest_whole_batch(start: FlowStart) -> int | None:
    """The newest batch after which the state of every partition can be made, None where there is none."""
    stores = state_stores(start.folder)
    if not stores or _absent(start, stores):
        return None
    newest = min(max([*store.whole, *store.changes]) for store in stores)
    for version in range(newest, 0, -1):
        if all(store.base(version) is not None and not _missing_parts(store, version) for store in stores):
            return version - 1
    return None


def state_was_lost(start: FlowStart) -> Iterator[Damage]:
    """Spark fails in the middle of a batch where state is incomplete, and names the missing file but no remedy."""
    done = max((batch for batch in start.committed if batch in start.planned), default=None)
    if done is None or done < start.state.first_batch or not start.state.state_settings:
        return
    version = done + 1
    look_into(start.folder / "state")
    stores = state_stores(start.folder)
    read_ahead(file for store in stores if (file := _snapshot(store, version)) is not None)
    missing = _absent(start, stores)
    damaged: list[str] = []
    for store in stores:
        if store.base(version) is None:
            missing.append(f"{store.folder}: version {version} can't be made of what is there")
            continue
        missing += _missing_parts(store, version)
        files = [*store.needed(version), *(_parts(store, version) if start.deep else ())]
        damaged += [
            f"{file} does not agree with its checksum" for file in files if start.deep and not agrees(file)
        ]
        damaged += (
            _unlike_its_list(store, version) if start.deep and isinstance(store.folder, ObjectPath) else []
        )
    if missing or damaged:
        condition = StateLost if missing else StateDamaged
        what = "is not whole" if missing else "is damaged"
        yield Damage(
            condition(
                f"The state of {start.flow!r} {what}: batch {version} can't be built on it ({(missing or damaged)[0]}).",
                where=start.folder / "state",
                remedy=start.restoring(
                    f"go back to the newest batch with a whole state: {start.command('rewind')}; "
                    f"or {last_remedy(start)}"
                ),
            ),
            (
                *(missing or damaged)[:10],
                f"newest batch with a whole state: {newest_whole_batch(start)}",
            ),
            _REPAIRS,
        )


def plan_was_changed(start: FlowStart) -> Iterator[Damage]:
    """State that was written with other keys: Spark fails, or reads it as if nothing had changed."""
    if start.plan is None or not start.state.plan or start.plan == start.state.plan or not start.committed:
        return
    yield Damage(
        PlanChanged(
            f"The query of {start.flow!r} keeps its state with other operators or keys than before.",
            where=start.folder,
            remedy=f"Put the query back, or refill the table: headwater run PIPELINE_DIR --full-refresh {start.dataset}"
            if not start.is_sink
            else remedy(start),
        ),
        (f"before: {'; '.join(start.state.plan)}", f"now: {'; '.join(start.plan) or 'no state'}"),
        (Repair.FULL_REFRESH, Repair.NEW_EPOCH),
    )


def store_names(folder: Place, stores: list[StateStore] | None = None) -> tuple[str, ...]:
    """Where a checkpoint's state lies, below its ``state`` folder (``0/1``: the first operator's second partition)."""
    all_stores = state_stores(folder) if stores is None else stores
    below = len(f"{folder}/state/")
    return tuple(sorted(str(store.folder)[below:] for store in all_stores))


def _absent(start: FlowStart, stores: list[StateStore]) -> list[str]:
    """Stores of the last run that are not there. Spark's own number of partitions is wrong for queries without keys."""
    there = set(store_names(start.folder, stores))
    return [
        f"{start.folder / 'state' / name} is not there"
        for name in start.state.state_stores
        if name not in there
    ]


def _snapshot(store: StateStore, version: int) -> Place | None:
    """The zip file that lists the tables of a RocksDB snapshot; None where the state has another form."""
    name = store.whole.get(store.base(version) or 0, "")
    return store.folder / name if name.endswith(".zip") else None


def _parts(store: StateStore, version: int) -> list[Place]:
    """The tables that a RocksDB snapshot consists of."""
    file = _snapshot(store, version)
    if file is None:
        return []
    try:
        listed = _sst_files(file)
    except _UNREADABLE:
        return []
    return [store.folder / "SSTs" / entry["dfsSstFileName"] for entry in listed]


def _unlike_its_list(store: StateStore, version: int) -> list[str]:
    """What is wrong with a RocksDB snapshot by the checksums inside its own zip file."""
    file = _snapshot(store, version)
    if file is None:
        return []
    try:
        with zipfile.ZipFile(io.BytesIO(file.read_bytes())) as packed:
            broken = packed.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError):
        broken = file.name
    if broken is not None:
        return [f"{file} does not agree with the checksums inside it ({broken})"]
    return []


def _sst_files(file: Place) -> list[dict[str, Any]]:
    """The tables that a snapshot's zip file lists; raises what zipfile and JSON raise."""
    with zipfile.ZipFile(io.BytesIO(file.read_bytes())) as packed:
        lines = lines_of(packed.read("metadata").decode()) if "metadata" in packed.namelist() else []
    data: dict[str, Any] = json.loads(lines[1]) if len(lines) > 1 else {}
    return list(data.get("sstFiles") or ())


def _missing_parts(store: StateStore, version: int) -> list[str]:
    """Tables of a RocksDB snapshot that are gone, or have another size than its list says: one listing has both."""
    file = _snapshot(store, version)
    if file is None:
        return []
    try:
        listed = _sst_files(file)
    except _UNREADABLE:
        return [f"{file} can't be read"]
    folder = store.folder / "SSTs"
    there = sizes_in(folder) if listed else {}
    faults = []
    for entry in listed:
        name, size = entry["dfsSstFileName"], entry.get("sizeBytes")
        if name not in there:
            faults.append(f"{folder / name} is not there")
        elif size not in (None, there[name]):
            faults.append(f"{folder / name} has {there[name]} bytes instead of {size}")
    return faults


def size_by_operator(folder: Place) -> dict[str, int]:
    """Bytes on disk of each operator's state, by its number."""
    sizes: dict[str, int] = defaultdict(int)
    for file, about in files_below(folder / "state"):
        sizes[parts_below(file, folder / "state")[0]] += about.st_size
    return dict(sizes)
