"""The input of the checks before a flow's start, for a start itself and for a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from headwater.checkpoints.flow_identity import FlowIdentity, flow_identity
from headwater.checkpoints.flow_role import FlowRole
from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.checkpoints.log_entries import has_whole_neighbour
from headwater.checkpoints.offsets import numbered
from headwater.definitions.source import SourceKind
from headwater.delta_log.table_history import table_exists, transaction_version
from headwater.storage.access import ObjectStore
from headwater.storage.place import Place, place_of

Positions = tuple[str | None, ...]


class Topics(Protocol):
    """The checks' queries to a Kafka broker; answers are empty where it does not answer."""

    def ids(self, names: Sequence[str]) -> dict[str, str]:
        """The id that the broker gave each topic when it was made."""

    def gone(self, names: Sequence[str]) -> list[str]:
        """Those topics that the broker says it does not have."""

    def bounds(self, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], tuple[int, int]]:
        """The first kept and the next offset of each partition that is there."""


@dataclass(frozen=True)
class StreamSource:
    """One streaming source, in the order of the lines of the offset log.

    ``table``: the folder of a Delta table. ``files``: gives the paths of the files that are there now. ``store``: how S3 is
    reached, by the environment where it is not given.
    """

    kind: SourceKind
    name: str
    table: Place | None = None
    path: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    topics: Topics | None = None
    files: Callable[[], Iterable[str]] | None = None
    store: ObjectStore | None = None

    def place(self, path: str) -> Place:
        """The place of one of its files."""
        return place_of(path, store=self.store)

    def on(self, option: str) -> bool:
        """Whether an option is set to true."""
        lowered = {key.lower(): value for key, value in self.options.items()}
        return lowered.get(option.lower(), "false").lower() == "true"


def _unknown(batch_id: int) -> Positions | None:  # noqa: ARG001 - the form of FlowStart.position
    return None


def _never() -> int | None:
    return None


def _not_known() -> bool:
    return True


def _not_sent() -> bool:
    return False


def _no_places() -> Sequence[Place]:
    return ()


@dataclass(frozen=True)
class FlowStart:
    """What a check looks at.

    ``sink_id``: the flow's target as it is now: the Delta id of the table, None where there is none; of a sink
    without a table, its name. ``table``: the table's folder, where there is one; ``quarantine``: that of the rows that its rules keep out.
    ``state``: as stored; a new one where there is none.
    ``sources``: the streaming ones, None where they are not known.
    ``plan``: the operators that keep state now, None where that is not known.
    ``position``: the end offsets of a batch of the live epoch, as recorded outside the checkpoint.
    ``last_recorded``: the last batch of the live epoch that is recorded outside the checkpoint.
    ``sent_before``: whether a sink without a table was sent rows since it was dropped last, as recorded outside the checkpoint.
    ``role``: as what the flow runs now, None where that is not known. ``declared``: the flows that its table has now.
    ``deep``: compare checksums of all files that the next start needs, however large.
    ``has_copy``: whether there is a copy of the checkpoint to restore.
    ``known_identity``: the names in the flow's commits; read from storage where they are not given.
    ``schemas``: gives the folders in which the pipeline keeps columns that it inferred from files, for the flow and the views that it reads.
    """

    pipeline_id: str
    flow: str
    dataset: str
    checkpoint: FlowCheckpoint
    state: FlowState
    table: Place | None
    sink_id: str | None
    is_sink: bool = False
    sources: tuple[StreamSource, ...] | None = None
    plan: tuple[str, ...] | None = None
    position: Callable[[int], Positions | None] = _unknown
    deep: bool = False
    last_recorded: Callable[[], int | None] = _never
    sent_before: Callable[[], bool] = _not_sent
    role: FlowRole | None = None
    declared: tuple[str, ...] = ()
    quarantine: Place | None = None
    known_identity: FlowIdentity | None = None
    has_copy: Callable[[], bool] = _not_known
    schemas: Callable[[], Sequence[Place]] = _no_places

    @property
    def folder(self) -> Place:
        """The live epoch's checkpoint, in Spark's format."""
        return self.checkpoint.epoch_folder(self.state.epoch)

    @property
    def place(self) -> str:
        """The flow's target, for messages."""
        return (
            f"what the sink {self.dataset!r} writes to" if self.is_sink else f"the table of {self.dataset!r}"
        )

    @property
    def application(self) -> str:
        """The id under which batches are committed that do not go through the Delta sink itself."""
        return self.identity.application(self.state.epoch)

    @cached_property
    def identity(self) -> FlowIdentity:
        """The names in the flow's commits."""
        if self.known_identity is not None:
            return self.known_identity
        state_folder = self.checkpoint.folder.parents[2]
        return flow_identity(state_folder, self.pipeline_id, self.dataset, self.flow)

    @cached_property
    def planned(self) -> list[int]:
        """The batches of the offset log, ascending."""
        return sorted(numbered(self.folder / "offsets"))

    @cached_property
    def committed(self) -> list[int]:
        """The batches that are marked as done, ascending."""
        return sorted(numbered(self.folder / "commits"))

    @cached_property
    def written(self) -> int | None:
        """The last batch of the live epoch that the table has; None where it has none, or does not say."""
        if self.table is None or self.sink_id is None or not table_exists(self.table):
            return None
        names = {self.state.query_id, _query_id(self.folder), self.application} - {None}
        batches = [
            version
            for name in names
            if name is not None and (version := transaction_version(self.table, name)) is not None
        ]
        return max(batches, default=None)

    @property
    def repeatable(self) -> bool:
        """Whether repeating a batch under its number changes nothing."""
        return self.table is not None

    @property
    def entry_settings(self) -> Mapping[str, str]:
        """The settings for an entry of the offset log that is put back, as far as they are known."""
        return {**self.state.state_settings, **self.state.batch_settings}

    def can_put_back(self, batch: int) -> bool:
        """Whether an entry of the offset log, whose position is known, can be written so that Spark can read the state by it."""
        known = not self.state.state_settings or bool(self.state.batch_settings)
        return known or has_whole_neighbour(self.folder, batch)

    def command(self, action: str) -> str:
        """How ``repair`` is called."""
        return f"headwater repair PIPELINE_DIR {self.flow} --action {action}"

    def restoring(self, otherwise: str) -> str:
        """The remedy that restores a copy and, after it, another; only the other where there is no copy. Both begin in lower case."""
        text = (
            f"restore a snapshot: {self.command('restore')}; or {otherwise}" if self.has_copy() else otherwise
        )
        return text[:1].upper() + text[1:]

    def show(self) -> str:
        """How the doctor is called."""
        return f"headwater checkpoints diagnose PIPELINE_DIR {self.flow}"


def _query_id(folder: Place) -> str | None:
    from headwater.checkpoints.offsets import query_id
    from headwater.errors import CheckpointUnreadable

    try:
        return query_id(folder)
    except CheckpointUnreadable:
        return None
