"""Where a flow's checkpoint is: ``<storage>/pipelines/<id>/checkpoints/<table>/<flow>/<epoch>/``.

An epoch is one life of a flow's position. A reset or a full refresh opens the next one; a number is never used
twice, and the state of a flow (``flow.json`` beside the epochs) says which one is live.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from headwater.checkpoints.record_files import recorded
from headwater.checkpoints.whole_folders import hidden_folders, unfinished
from headwater.errors import LeaseLost
from headwater.files.atomic_files import write_atomically
from headwater.storage.atomic import read_record, read_tagged, write_if_unchanged
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place
from headwater.storage.walking import files_and_folders, files_below

# Of what AUTO CDC keeps beside a table: the Delta table of tombstones, sequences and superseded events.
REMEMBERED = "events"


@dataclass(frozen=True)
class FlowState:
    """What must outlive an update besides Spark's own checkpoint.

    ``pending_epoch``: of a full refresh or reset that was begun and not finished; ``pending_empties_table`` says which
    (the table may be empty already).
    ``sink_id``: the Delta id of the flow's target, the table that the live epoch writes to.
    ``input_versions``: for a batch flow, the version of each source when it was last read (by source key).
    ``source_schemas``: the columns (name to type) of a stream's sources, and of its result, at its last start.
    ``definition_hash``: the hash of the pipeline's sources at the last completed run.
    ``completed``: whether the last run ended well.
    ``state_settings``: for a stateful stream, the Spark settings that the live epoch's state was created with.
    ``batch_settings``: for a stateful stream, those that Spark wrote into the live epoch's offset entries: by no others it reads the state.
    ``query_id``: Spark's id of the live epoch's query; the Delta sink commits under it.
    ``table``: where the target lay when ``sink_id`` was written; only a message depends on it.
    ``sink_version``: the target's version after the last run.
    ``has_quarantine``: whether rows that rules kept out had a table of their own after the last run.
    ``quarantine_version``: its version then, None where there was none.
    ``change_memory``: the version of what AUTO CDC remembers beside the table after the last run, None where that was nothing.
    ``sources``: which tables and topics a stream read at its last run, in the order of the offset log.
    ``newest_files``: of each file source, by its number, the newest entry of its log after the last run and a file that it names.
    ``plan``: the operators that keep the state, with their keys; ``state_stores``: the folders it lies in, below ``state``.
    ``first_batch``: batches before it were created by a repair and wrote nothing.
    ``versions``: of Headwater, Spark and Delta at the last run.
    ``refresh``: of a materialized view, what its last refresh did, up to where changes came to nothing since, and what refreshes
    cost; rows never depend on it.
    ``role``: as what the flow last ran (``FlowRole``), None before its first run.
    ``others``: fields of another version of Headwater; written back unchanged.
    """

    epoch: int = 0
    pending_epoch: int | None = None
    pending_empties_table: bool = False
    sink_id: str | None = None
    table: str | None = None
    input_versions: Mapping[str, str] = field(default_factory=dict)
    source_schemas: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    definition_hash: str | None = None
    completed: bool = False
    state_settings: Mapping[str, str] = field(default_factory=dict)
    batch_settings: Mapping[str, str] = field(default_factory=dict)
    query_id: str | None = None
    sink_version: int | None = None
    has_quarantine: bool = False
    quarantine_version: int | None = None
    change_memory: int | None = None
    sources: tuple[Mapping[str, Any], ...] = ()
    newest_files: Mapping[str, Any] = field(default_factory=dict)
    plan: tuple[str, ...] = ()
    state_stores: tuple[str, ...] = ()
    first_batch: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    refresh: Mapping[str, Any] = field(default_factory=dict)
    role: str | None = None
    others: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> FlowState:
        """The state from its JSON form, of whichever version: what is not there has its default."""
        own = set(cls.__dataclass_fields__) - {"others"}
        own_fields = {key: value for key, value in data.items() if key in own}
        for name in ("sources", "plan", "state_stores"):
            own_fields[name] = tuple(own_fields.get(name) or ())
        return cls(**own_fields, others={key: value for key, value in data.items() if key not in own})

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        own = asdict(self)
        others = own.pop("others")
        return {**others, **own}

    def opened(self, epoch: int) -> FlowState:
        """The state with another live epoch; what belonged to the previous one is dropped."""
        return FlowState(epoch=epoch, definition_hash=self.definition_hash, others=self.others)


@dataclass(frozen=True)
class StateSeen:
    """What ``flow.json`` was at a moment. ``tag``: names its content on a store; None there where it is missing, and on a disk always."""

    tag: str | None


# Of a flow that has never run.
NO_STATE = StateSeen(None)


@dataclass(frozen=True)
class FlowCheckpoint:
    """The folder of one flow."""

    folder: Place

    @property
    def state_file(self) -> Place:
        """The file that names the live epoch."""
        return self.folder / "flow.json"

    def read_state(self) -> FlowState | None:
        """The flow's state, or None where it never ran; raises FlowStateDamaged, or StorageNotReadable, where it can't be read."""
        return self._recorded()

    def _recorded(self, **more: Any) -> FlowState | None:
        return recorded(
            self.state_file,
            _state_of,
            what=f"The file that says which epoch of {self.folder.name!r} is live",
            unknown=f"which epoch of {self.folder.name!r} is live",
            remedy="Move the file aside: the newest epoch is then the live one, and the next start checks it against its table.",
            **more,
        )

    def surviving_state(self) -> FlowState | None:
        """The flow's state; where it is lost and checkpoints are not, one that names the newest of them."""
        state = self.read_state()
        epochs = [epoch for epoch in self.epochs() if self._has_files(epoch)] if state is None else []
        return FlowState(epoch=epochs[-1]) if epochs else state

    def write_state(self, state: FlowState) -> None:
        """Replace the state in one step, durable before it returns."""
        write_atomically(self.state_file, _text(state))

    def seen_state(self) -> StateSeen:
        """What ``replace_state`` may replace."""
        file = self.state_file
        seen = read_tagged(file) if isinstance(file, ObjectPath) else None
        return StateSeen(seen[1] if seen is not None else None)

    def replace_state(self, state: FlowState, seen: StateSeen) -> None:
        """As ``write_state``; on a store only where nobody has written since it was looked at.

        Raises:
            LeaseLost: somebody has; what that one wrote stays.
        """
        if not isinstance(self.state_file, ObjectPath):
            self.write_state(state)
        elif not write_if_unchanged(self.state_file, _text(state), seen.tag):
            raise self._changed_by_another()

    def _changed_by_another(self) -> LeaseLost:
        return LeaseLost(
            f"Another process has changed which epoch of {self.folder.name!r} is live while this one was about to.",
            where=self.state_file,
            remedy="What it wrote stays. Run the same command again once nothing else runs.",
        )

    def update_state(self, *, of_epoch: int | None = None, **changes: Any) -> FlowState:
        """Change some fields of the state and write it; errors as of ``change_state``.

        ``of_epoch``: the epoch that they are of, where another driver may have opened one since.
        """
        return self.change_state(
            lambda state: replace(state, **changes),
            still=lambda state: of_epoch is None or state.epoch == of_epoch,
        )

    def change_state(
        self, change: Callable[[FlowState], FlowState], still: Callable[[FlowState], bool] = lambda _: True
    ) -> FlowState:
        """Change the state and write it; errors as of ``read_state`` and ``replace_state``.

        What it replaces is read together with its tag, so the condition takes no request of its own.

        Args:
            change: gives the new state of the one that is read; of the first one where there is none.
            still: whether what is read is what the change was decided from; where it is not, LeaseLost is raised.
        """
        tags: list[str | None] = []

        def read(file: Place) -> str:
            text, tag = read_record(file)
            tags.append(tag)
            return text

        before = self._recorded(read=read) or FlowState()
        if not still(before):
            raise self._changed_by_another()
        state = change(before)
        self.replace_state(state, StateSeen(next(iter(tags), None)))
        return state

    def epoch_folder(self, epoch: int) -> Place:
        """The checkpoint location of an epoch."""
        return self.folder / str(epoch)

    def epochs(self) -> list[int]:
        """The epochs that have a folder, oldest first; not those whose folder was never filled to the end."""
        files, folders = self._below()
        return sorted(int(name) for name in {*folders} - unfinished(files) if name.isdigit())

    def _has_files(self, epoch: int) -> bool:
        """Whether an epoch is more than Hadoop's marks of its folders, which outlive what is removed on a store: Spark takes them for state."""
        folder = self.epoch_folder(epoch)
        return not isinstance(folder, ObjectPath) or any(about.st_size for _, about in files_below(folder))

    def epochs_begun(self) -> list[int]:
        """As ``epochs``, with those that were not filled to the end."""
        files, folders = self._below()
        return sorted(int(name) for name in {*folders, *unfinished(files)} if name.isdigit())

    def epochs_given_up(self) -> list[Place]:
        """Folders of a disk that a repair was filling for an epoch; none where no repair runs or was killed."""
        return [self.folder / name for name in hidden_folders(self._below()[1])]

    def _below(self) -> tuple[list[str], list[str]]:
        return files_and_folders(self.folder) if self.folder.is_dir() else ([], [])

    def has_written(self) -> bool:
        """Whether the live epoch has written to its table: it says to which, or has committed a batch."""
        state = self.surviving_state()
        if state is None:
            return False
        commits = self.epoch_folder(state.epoch) / "commits"
        return state.sink_id is not None or (
            commits.is_dir()
            and any(path.name.isdigit() and int(path.name) >= state.first_batch for path in commits.iterdir())
        )

    def live_folder(self) -> Place:
        """The checkpoint location that the next run uses."""
        state = self.read_state()
        return self.epoch_folder(state.epoch if state else 0)


def _state_of(data: Any) -> FlowState:
    if not isinstance(data, dict) or not _well_formed(data):
        raise ValueError("it holds no object as Headwater writes it")
    return FlowState.of(data)


def _well_formed(data: Mapping[str, Any]) -> bool:
    """Whether the fields that positions are decided by have their types; those that a version lacks are not there."""
    numbers = (data[name] for name in ("epoch", "first_batch") if name in data)
    maps = ("input_versions", "source_schemas", "state_settings", "batch_settings", "versions", "refresh")
    lists = [data.get(name) or [] for name in ("sources", "plan", "state_stores")]
    return (
        all(isinstance(number, int) and number >= 0 for number in numbers)
        and all(isinstance(data[name], dict) for name in maps if name in data)
        and all(isinstance(items, list) for items in lists)
        and all(isinstance(source, dict) for source in lists[0])
    )


def _text(state: FlowState) -> str:
    return json.dumps(state.as_dict(), indent=1, sort_keys=True) + "\n"


def flow_checkpoint(state_folder: Place, table_folder: str, flow: str) -> FlowCheckpoint:
    """The checkpoint of ``flow`` into a table; ``state_folder`` is the pipeline's folder in storage.

    ``table_folder``: the dataset's name as the manifest shows it (``orders``, or ``other.orders``).
    """
    return FlowCheckpoint(state_folder / "checkpoints" / table_folder / flow)


def remembered_changes(state_folder: Place, table_folder: str) -> Place:
    """The Delta table of tombstones, sequences and superseded events among it; not there where nothing was ever remembered."""
    return change_memory(state_folder, table_folder) / REMEMBERED


def change_memory(state_folder: Place, table_folder: str) -> Place:
    """The folder for what AUTO CDC remembers beside a table; arguments as for ``flow_checkpoint``."""
    return state_folder / "system" / "auto_cdc" / table_folder
