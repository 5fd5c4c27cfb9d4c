"""The rows that a flow's definition gives for a range: its query as a batch over bounded sources, judged by its rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame

from headwater.backfills.backfill_range import BackfillMode, RangeKind
from headwater.backfills.conditions import RangeNotReadYet
from headwater.backfills.live_position import LivePosition, live_position
from headwater.definitions.dataset import Dataset
from headwater.definitions.flow import Flow
from headwater.delta_log.table_history import table_exists
from headwater.doctor.start_facts import flow_start
from headwater_spark.backfills.bounded_sources import BoundedSources
from headwater_spark.backfills.event_slice import in_slice
from headwater_spark.backfills.source_limits import Limit, chosen_part, read_so_far
from headwater_spark.backfills.source_overlap import check_overlap
from headwater_spark.backfills.table_plan import TablePlan
from headwater_spark.delta_writes.batch_transaction import apart
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.plans.schemas import stored_schema
from headwater_spark.rules.expectations import Quality
from headwater_spark.rules.judgement import judged_batch, kept_rows, mark_rows
from headwater_spark.rules.source_records import with_source


@dataclass(frozen=True)
class RangeRows:
    """Rows of one flow: ``judged`` with a mark for each rule, ``kept`` those that go to the table.

    ``position``: where the live stream stood, None for a flow that is none. ``source_bytes``: of the files read.
    """

    flow: Flow
    judged: DataFrame
    kept: DataFrame
    quality: Quality
    position: LivePosition | None
    source_bytes: int | None


@contextmanager
def range_rows(context: UpdateContext, plan: TablePlan, flow: Flow) -> Iterator[RangeRows]:
    """The rows of a flow for the plan's range, kept in memory or on disk for as long as the block runs.

    Raises:
        RangeNotReadYet, RangeAlreadyWritten, BackfillNotPossible, InvalidRange: what the live stream has read, or will
            read, is in the way.
        What Spark throws where the query fails, or a row breaks a rule of kind fail.
    """
    limits, position = _limits(context, plan, flow)
    table = context.table_path(plan.dataset)
    with judged_rows(context, plan.dataset, flow, limits, plan.condition, table) as (frame, quality, size):
        rules = plan.dataset.expectations
        kept = kept_rows(frame, rules)
        yield RangeRows(flow, frame, kept, quality, position, size)


@contextmanager
def judged_rows(
    context: UpdateContext,
    dataset: Dataset,
    flow: Flow,
    limits: Sequence[Limit],
    condition: str | None,
    table: Path | None,
) -> Iterator[tuple[DataFrame, Quality, int | None]]:
    """The rows of a flow over bounded sources, judged, in a session of their own; and the bytes of the files read."""
    evaluation = context.pipeline.evaluation
    bounded = BoundedSources(evaluation, limits)
    with evaluation.settings(flow):
        evaluation.session.given = bounded
        try:
            # One that recomputes a part of its table at each update is asked for all of it: the range is the part.
            frame = evaluation.evaluate(flow, whole=True)
        finally:
            evaluation.session.given = None
        rows = with_source(in_slice(_without_marks(frame), condition))
        marked = apart(mark_rows(rows, dataset.expectations))
        with judged_batch(marked, dataset.expectations, table) as (judged, quality):
            yield judged, quality, _bytes_of(bounded.frames)


def _limits(
    context: UpdateContext, plan: TablePlan, flow: Flow
) -> tuple[tuple[Limit, ...], LivePosition | None]:
    manifest = context.pipeline.manifest
    entry = next(item for item in manifest.flows if item.name == flow.name)
    start = flow_start(context.pipeline.project, manifest, entry)
    if not entry.streaming or flow.once:
        if not table_exists(context.table_path(plan.dataset)):
            raise RangeNotReadYet(
                f"The table of {plan.dataset.name!r} is not there yet: its first update fills it.",
                where=context.table_path(plan.dataset),
                remedy="Run an update: headwater run PIPELINE_DIR",
            )
        return (), None
    position = live_position(start)
    if plan.chosen.kind is RangeKind.EVENT_TIME:
        return read_so_far(position, flow.name), position
    limits = chosen_part(plan.chosen, start)
    if not plan.by_sequence:
        check_overlap(plan.chosen, start, position, appends=plan.mode is BackfillMode.APPEND)
    return limits, position


def _without_marks(frame: DataFrame) -> DataFrame:
    """Delta would store the mark of a watermark with the column."""
    for field, plain in zip(frame.schema.fields, stored_schema(frame.schema).fields, strict=True):
        if field.metadata != plain.metadata:
            frame = frame.withMetadata(field.name, plain.metadata)
    return frame


def _bytes_of(frames: Sequence[DataFrame]) -> int | None:
    """The size of the files that the sources have within their limits, as far as they are on this machine."""
    if not frames:
        return None
    found = {unquote(urlparse(uri).path) for frame in frames for uri in frame.inputFiles()}
    return _sizes(found)


def _sizes(paths: Iterable[str]) -> int:
    """The sum over the files that are there."""
    size = 0
    for path in paths:
        with suppress(FileNotFoundError, NotADirectoryError):
            state = Path(path).stat()
            size += state.st_size if S_ISREG(state.st_mode) else 0
    return size
