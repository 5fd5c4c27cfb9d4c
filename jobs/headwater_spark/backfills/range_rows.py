"""The rows of a flow's definition for a range: its query as a batch over bounded sources, judged by its rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame

from headwater.backfills.backfill_range import BackfillMode
from headwater.backfills.conditions import RangeNotReadYet
from headwater.backfills.live_position import LivePosition, live_position
from headwater.definitions.flow import Flow
from headwater.delta_log.table_history import table_exists
from headwater.doctor.start_facts import flow_start
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place, is_url, of_spark
from headwater_spark.backfills.bounded_sources import BoundedSources
from headwater_spark.backfills.source_limits import Limit, chosen_part, read_again, read_so_far
from headwater_spark.backfills.source_overlap import check_overlap
from headwater_spark.backfills.table_plan import TablePlan
from headwater_spark.delta_writes.batch_transaction import in_own_session
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.plans.plan_walk import input_files
from headwater_spark.rules.expectations import Quality
from headwater_spark.rules.judgement import judged_batch, kept_rows, mark_rows
from headwater_spark.rules.source_records import with_source


@dataclass(frozen=True)
class RangeRows:
    """Rows of one flow's ``run``: ``judged`` with a mark for each rule, ``accepted`` those that go to the table.

    ``position``: the live stream's, None for a flow that is not a stream. ``source_bytes``: of the files read.
    """

    run: FlowRun
    judged: DataFrame
    accepted: DataFrame
    quality: Quality
    position: LivePosition | None
    source_bytes: int | None


@contextmanager
def range_rows(context: UpdateContext, plan: TablePlan, flow: Flow) -> Iterator[RangeRows]:
    """The rows of a flow for the plan's range, cached while the block runs.

    Raises:
        RangeNotReadYet, RangeAlreadyWritten, BackfillNotPossible, InvalidRange: the range conflicts with what the live
            stream has read, or will read.
        What Spark throws where the query fails, or a row breaks a rule of kind fail.
    """
    run = FlowRun.of(context, plan.dataset, flow)
    limits, position = _limits(run, plan)
    with judged_rows(run, limits, plan.row_condition) as (judged, quality, size):
        yield RangeRows(run, judged, kept_rows(judged, plan.dataset.expectations), quality, position, size)


@contextmanager
def judged_rows(
    run: FlowRun, limits: Sequence[Limit], condition: str | None = None
) -> Iterator[tuple[DataFrame, Quality, int | None]]:
    """The rows of a flow over bounded sources, judged, in a session of their own; and the bytes of the files read."""
    evaluation, rules = run.context.pipeline.evaluation, run.dataset.expectations
    bounded = BoundedSources(evaluation, limits)
    with run.settings():
        evaluation.session.substitutes = bounded
        # Files that the stream has read are examined once more: a start examines the new ones only.
        evaluation.cloud.again[run.name] = read_again(limits)
        try:
            # All rows, even of a flow that recomputes only a part of its table: the range is the part.
            frame = run.rows(whole=True)
        finally:
            evaluation.session.substitutes = None
            del evaluation.cloud.again[run.name]
        frame = frame if condition is None else frame.where(condition)
        marked = in_own_session(mark_rows(with_source(frame), rules))
        with judged_batch(marked, rules, run.table) as (judged, quality):
            yield judged, quality, _bytes_of(bounded.frames, run.context.pipeline.project.state_folder)


def _limits(run: FlowRun, plan: TablePlan) -> tuple[tuple[Limit, ...], LivePosition | None]:
    pipeline = run.context.pipeline
    start = flow_start(pipeline.project, pipeline.manifest, run.entry)
    if not run.entry.streaming or run.flow.once:
        if not table_exists(run.table):
            raise RangeNotReadYet(
                f"The table of {plan.dataset.name!r} does not exist yet: its first update creates it.",
                where=run.table,
                remedy="Run an update: headwater run PIPELINE_DIR",
            )
        return (), None
    position = live_position(start)
    if plan.chosen.kind.of_rows:
        return read_so_far(position, run.name), position
    limits = chosen_part(plan.chosen, start)
    if not plan.by_sequence:
        check_overlap(plan.chosen, start, position, appends=plan.mode is BackfillMode.APPEND)
    return limits, position


def _bytes_of(frames: Sequence[DataFrame], state_folder: Place) -> int | None:
    """The size of the sources' files within their limits, as far as this machine can see them; None without any source."""
    if not frames:
        return None
    uris = {uri for frame in frames for uri in input_files(frame)}
    stored = [of_spark(state_folder, uri) for uri in uris if is_url(uri)]
    return _sizes({unquote(urlparse(uri).path) for uri in uris if not is_url(uri)}) + _sizes_on_a_store(
        stored
    )


def _sizes_on_a_store(files: Sequence[Place]) -> int:
    """The sum over the objects that exist: one listing a folder."""
    listed = {file.parent: file.parent.listed() for file in files if isinstance(file, ObjectPath)}
    objects = (listed[file.parent].get(file.name) for file in files if isinstance(file, ObjectPath))
    return sum(one.size for one in objects if one is not None)


def _sizes(paths: Iterable[str]) -> int:
    """The sum over the files that exist."""
    size = 0
    for path in paths:
        with suppress(FileNotFoundError, NotADirectoryError):
            state = Path(path).stat()
            size += state.st_size if S_ISREG(state.st_mode) else 0
    return size
