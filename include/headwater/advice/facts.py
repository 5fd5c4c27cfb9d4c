"""What the rules of advice are given: plain values, read by :mod:`headwater.advice.reading`.

Decision 0166.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from headwater.definitions.expectation import ViolationAction
from headwater.definitions.output_kind import OutputKind
from headwater.definitions.source import SourceKind


@dataclass(frozen=True)
class StateFact:
    """One stateful operator after a batch. ``operator``: Spark's name of it; ``removed``: rows that the batch freed."""

    operator: str
    rows: int
    bytes: int
    removed: int = 0


@dataclass(frozen=True)
class BatchFact:
    """One committed batch. A None is not known.

    ``rates``: rows a second that came in, and that were processed. ``phases``: seconds by Spark's names of a batch's parts.
    ``watermark``: seconds since 1970, None where the query has none (yet). ``executor_seconds``: of all tasks together.
    """

    batch_id: int
    update_id: str
    input_rows: int | None = None
    seconds: float | None = None
    input_rate: float | None = None
    processing_rate: float | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    states: tuple[StateFact, ...] = ()
    watermark: float | None = None
    executor_seconds: float | None = None

    @property
    def state_rows(self) -> int:
        """Rows in all its operators' state."""
        return sum(state.rows for state in self.states)

    @property
    def state_bytes(self) -> int:
        """Bytes of all its operators' state, in memory."""
        return sum(state.bytes for state in self.states)


@dataclass(frozen=True)
class SourceFact:
    """A streaming source of a flow, and what the flow has not read of it yet.

    ``limits``: those of its options that bound a batch, as the manifest has them. ``cloud_files``: whether it is read by ``cloudFiles``.
    ``file_bytes``: sizes of the files of the newest batches, batch by batch. ``bytes_per_row``: of a table.
    ``partitions``: of a topic. ``unread``: by measure (files, records, versions, bytes); empty where it is not known.
    """

    kind: SourceKind
    name: str
    limits: Mapping[str, str] = field(default_factory=dict)
    cloud_files: bool = False
    file_bytes: tuple[tuple[int, ...], ...] = ()
    bytes_per_row: float | None = None
    partitions: int | None = None
    unread: Mapping[str, int] = field(default_factory=dict)
    waiting_seconds: float | None = None


@dataclass(frozen=True)
class FlowFact:
    """A flow that streams, with its batches under the definition of today, oldest first.

    ``interval``: seconds between two looks, None where an update ends when it has read all; ``interval_place``: the key where
    it stands. ``left_over``: what each of its newest updates left unread, oldest first, in one measure.
    ``state_plan``: its stateful operators with their keys; ``state_settings``: those that its state was laid down with.
    ``time_columns``: those by which a watermark could free its state.
    """

    flow: str
    dataset: str
    batches: tuple[BatchFact, ...] = ()
    sources: tuple[SourceFact, ...] = ()
    output: OutputKind = OutputKind.APPEND
    interval: float | None = None
    interval_place: str = "trigger"
    left_over: tuple[int, ...] = ()
    state_plan: tuple[str, ...] = ()
    state_settings: Mapping[str, str] = field(default_factory=dict)
    time_columns: tuple[str, ...] = ()

    @property
    def working(self) -> tuple[BatchFact, ...]:
        """The batches that had rows, or may have had."""
        return tuple(batch for batch in self.batches if batch.input_rows != 0)

    @property
    def pace(self) -> float | None:
        """The median seconds of the newest batches with rows, at most five; None with fewer than three."""
        seconds = [batch.seconds for batch in self.working if batch.seconds is not None][-5:]
        return statistics.median(seconds) if len(seconds) >= 3 else None


@dataclass(frozen=True)
class CommitFact:
    """The files that a commit added."""

    files: int
    bytes: int


@dataclass(frozen=True)
class TableFact:
    """A table on disk. ``rules``: name, constraint and action of each.

    ``guarded``: whether rows pass a rule somewhere: here, before, or in what reads it directly.
    ``partitions``: how many have files; ``commits``: the newest that changed data, oldest first. ``managed``: whether maintenance may rewrite it.
    ``drift``: how its columns changed from update to update, oldest first, as sentences; ``columns``: name and type now.
    ``dropped``: rows that rules kept out for good, in the newest batches. ``cloud_files``: whether a flow into it reads so.
    """

    dataset: str
    streaming: bool = True
    rules: tuple[tuple[str, str, ViolationAction], ...] = ()
    guarded: bool = True
    files: int = 0
    bytes: int = 0
    partitions: int = 1
    partition_columns: tuple[str, ...] = ()
    cluster_columns: tuple[str, ...] = ()
    commits: tuple[CommitFact, ...] = ()
    managed: bool = True
    properties: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    drift: tuple[str, ...] = ()
    added_columns: Mapping[str, str] = field(default_factory=dict)
    dropped: int = 0
    cloud_files: bool = False
    merges: bool = False
    comment: str | None = None


@dataclass(frozen=True)
class PipelineFacts:
    """A pipeline. ``folder``: as it is given to commands. ``schedule_gap``: seconds, None without a schedule.

    ``run_for``: seconds, of a long update. ``maintained``: whether a schedule rewrites small files. ``cores``: of a local master.
    ``continuous``: its update ends when it is stopped, and holds the lease so long.
    """

    folder: str
    flows: tuple[FlowFact, ...] = ()
    tables: tuple[TableFact, ...] = ()
    interval: float | None = None
    run_for: float | None = None
    schedule_gap: float | None = None
    maintained: bool = True
    cores: int | None = None
    continuous: bool = False

    def table(self, dataset: str) -> TableFact | None:
        """The table of this name; None where there is none (yet), or it is a sink."""
        return next((table for table in self.tables if table.dataset == dataset), None)
