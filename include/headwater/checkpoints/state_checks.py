"""The state of a stateful query: every partition must have what the next batch builds on."""

from __future__ import annotations

import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwater.checkpoints.checksums import agrees
from headwater.checkpoints.conditions import PlanChanged, StateDamaged, StateLost
from headwater.checkpoints.damage import Damage, Repair
from headwater.checkpoints.flow_start import FlowStart
from headwater.checkpoints.sink_checks import remedy

_FILE = re.compile(r"(\d+)(?:_[^.]+)*\.(delta|changelog|snapshot|zip)$")
_REPAIRS = (Repair.RESTORE, Repair.REWIND, Repair.FULL_REFRESH)


@dataclass
class StateStore:
    """The files of one store of one partition, by version: whole ones (snapshots), and changes upon them."""

    folder: Path
    whole: dict[int, Path] = field(default_factory=dict)
    changes: dict[int, Path] = field(default_factory=dict)

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

    def needed(self, version: int) -> list[Path]:
        """The files that a start at ``version`` reads."""
        base = self.base(version)
        if base is None:
            return []
        first = [self.whole[base]] if base else []
        return [*first, *(self.changes[number] for number in range(base + 1, version + 1))]


def state_stores(folder: Path) -> list[StateStore]:
    """Every store below the ``state`` folder of a checkpoint."""
    root = folder / "state"
    found: dict[Path, StateStore] = {}
    for partition in sorted(root.glob("*/*")) if root.is_dir() else ():
        if not (partition.is_dir() and partition.name.isdigit() and partition.parent.name.isdigit()):
            continue
        # A join of streams keeps several stores a partition, each in a folder of its name.
        stores = [
            partition,
            *(p for p in partition.iterdir() if p.is_dir() and p.name not in ("SSTs", "_metadata")),
        ]
        for store in stores:
            for file in store.iterdir():
                match = _FILE.match(file.name)
                if match is None:
                    continue
                kept = found.setdefault(store, StateStore(store))
                files = kept.whole if match[2] in ("snapshot", "zip") else kept.changes
                files[int(match[1])] = file
    return list(found.values())


def newest_whole_batch(start: FlowStart) -> int | None:
    """The newest batch after which the state of every partition can be made, None where there is none."""
    stores = state_stores(start.folder)
    if not stores or _absent(start):
        return None
    newest = min(max([*store.whole, *store.changes]) for store in stores)
    for version in range(newest, 0, -1):
        if all(store.base(version) is not None and not _missing_parts(store, version) for store in stores):
            return version - 1
    return None


def state_was_lost(start: FlowStart) -> Iterator[Damage]:
    """Spark fails in the middle of a batch over a state that is not whole, and says which file it missed, not what to do."""
    done = max((batch for batch in start.committed if batch in start.planned), default=None)
    if done is None or done < start.state.first_batch or not start.state.state_settings:
        return
    version = done + 1
    missing = _absent(start)
    damaged: list[str] = []
    for store in state_stores(start.folder):
        if store.base(version) is None:
            missing.append(f"{store.folder}: version {version} can't be made of what is there")
            continue
        missing += _missing_parts(store, version)
        files = [*store.needed(version), *(_parts(store, version) if start.deep else ())]
        damaged += [
            f"{file} does not agree with its checksum" for file in files if start.deep and not agrees(file)
        ]
    if missing or damaged:
        condition = StateLost if missing else StateDamaged
        what = "is not whole" if missing else "is damaged"
        yield Damage(
            condition(
                f"The state of {start.flow!r} {what}: batch {version} can't be built on it ({(missing or damaged)[0]}).",
                where=start.folder / "state",
                remedy=f"Restore a snapshot: {start.command('restore')}; "
                f"go back to the newest batch with a whole state: {start.command('rewind')}; "
                f"or {remedy(start)[:1].lower()}{remedy(start)[1:]}",
            ),
            (
                *(missing or damaged)[:10],
                f"newest batch with a whole state: {newest_whole_batch(start)}",
            ),
            _REPAIRS,
        )


def plan_was_changed(start: FlowStart) -> Iterator[Damage]:
    """State that was laid down by other keys: Spark fails, or reads it as if nothing had changed."""
    if start.plan is None or not start.state.plan or start.plan == start.state.plan or not start.committed:
        return
    yield Damage(
        PlanChanged(
            f"The query of {start.flow!r} keeps its state by other operators or keys than before.",
            where=start.folder,
            remedy=f"Put the query back, or fill the table anew: --full-refresh {start.dataset}"
            if not start.is_sink
            else remedy(start),
        ),
        (f"before: {'; '.join(start.state.plan)}", f"now: {'; '.join(start.plan) or 'no state'}"),
        (Repair.FULL_REFRESH, Repair.NEW_EPOCH),
    )


def store_names(folder: Path) -> tuple[str, ...]:
    """Where a checkpoint's state lies, below its ``state`` folder (``0/1``: the first operator's second partition)."""
    return tuple(
        sorted(store.folder.relative_to(folder / "state").as_posix() for store in state_stores(folder))
    )


def _absent(start: FlowStart) -> list[str]:
    """Stores of the last run that are not there. Spark's own count of partitions does not hold without keys."""
    there = set(store_names(start.folder))
    return [
        f"{start.folder / 'state' / name} is not there"
        for name in start.state.state_stores
        if name not in there
    ]


def _parts(store: StateStore, version: int) -> list[Path]:
    """The tables that a RocksDB snapshot consists of."""
    base = store.base(version)
    file = store.whole.get(base or 0)
    if file is None or file.suffix != ".zip":
        return []
    try:
        with zipfile.ZipFile(file) as packed:
            name = next((name for name in packed.namelist() if name == "metadata"), None)
            lines = packed.read(name).decode().splitlines() if name else []
        data: dict[str, Any] = json.loads(lines[1]) if len(lines) > 1 else {}
    except (OSError, ValueError, zipfile.BadZipFile):
        return [file.with_name(f"{file.name} (unreadable)")]
    return [store.folder / "SSTs" / entry["dfsSstFileName"] for entry in data.get("sstFiles") or ()]


def _missing_parts(store: StateStore, version: int) -> list[str]:
    return [f"{part} is not there" for part in _parts(store, version) if not part.exists()]


def size_by_operator(folder: Path) -> dict[str, int]:
    """Bytes on disk of each operator's state, by its number."""
    sizes: dict[str, int] = defaultdict(int)
    for file in (folder / "state").glob("*/**/*"):
        if file.is_file():
            sizes[file.relative_to(folder / "state").parts[0]] += file.stat().st_size
    return dict(sizes)
