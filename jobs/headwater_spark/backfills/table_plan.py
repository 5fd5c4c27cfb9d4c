"""What a backfill will do to one table, or why it can't be done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from headwater.backfills.backfill_range import BackfillMode, BackfillRange, RangeKind
from headwater.backfills.conditions import BackfillNotPossible, ReadersWouldBreak
from headwater.contract.backfill_arguments import BackfillArguments
from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.expectation import UniqueWithin, quarantines
from headwater.definitions.flow import Flow
from headwater.definitions.output_kind import OutputKind
from headwater.errors import UsageError
from headwater_spark.backfills.event_slice import slice_condition
from headwater_spark.backfills.rows_condition import rows_condition
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.plans.stateful_queries import is_stateful


@dataclass(frozen=True)
class TablePlan:
    """A table's backfill. ``condition``: the rows of the table in the range, None for a range of the source.

    ``row_condition``: the same of the rows that its queries return, which lack the columns that Delta generates.
    ``skipped``: a stream reads the table and skips commits that remove rows.
    """

    dataset: Dataset
    flows: tuple[Flow, ...]
    mode: BackfillMode
    chosen: BackfillRange
    keys: tuple[str, ...]
    condition: str | None
    is_view: bool
    row_condition: str | None = None
    skipped: bool = False

    @property
    def waits(self) -> bool:
        """Whether it must wait for a running update of the pipeline.

        The side table of AUTO CDC has one writer. And late rows that are put back would be read twice by a stream that
        has read them and skips the commit that removed them.
        """
        replaced = self.skipped and self.mode is BackfillMode.REPLACE_WHERE
        return replaced or any(flow.declared_output is OutputKind.CHANGES for flow in self.flows)

    @property
    def by_sequence(self) -> bool:
        """Whether the flows themselves decide which row of a key is kept: a row that is written twice changes nothing."""
        return any(flow.declared_output.keeps_newest for flow in self.flows)


def plan_table(context: UpdateContext, dataset: Dataset, arguments: BackfillArguments) -> TablePlan:
    """Decide how a table is filled.

    Raises:
        BackfillNotPossible, ReadersWouldBreak: the result would not be that of the definition.
        UsageError, InvalidRange: the arguments do not fit the table.
    """
    evaluation = context.pipeline.evaluation
    assert arguments.chosen is not None
    flows = tuple(evaluation.flows_of(dataset))
    is_view = evaluation.kind_of(dataset) is DatasetKind.MATERIALIZED_VIEW
    for flow in flows:
        check_definition(FlowRun.of(context, dataset, flow))
    mode = _mode(dataset, flows, arguments, is_view=is_view)
    schema = evaluation.schema_of(dataset)
    condition = row_condition = None
    columns = evaluation.table_schema(dataset)
    if arguments.chosen.kind is RangeKind.WHERE:
        condition = row_condition = rows_condition(context.spark, arguments.chosen, columns, dataset)
    elif arguments.chosen.kind is RangeKind.EVENT_TIME:
        condition = slice_condition(arguments.chosen, columns, dataset)
        row_condition = slice_condition(arguments.chosen, columns, dataset, of_query=True)
    keys = _keys(dataset, flows, arguments, mode, [field.name for field in schema.fields])
    plan = TablePlan(dataset, flows, mode, arguments.chosen, keys, condition, is_view, row_condition)
    _check_rules(plan)
    _check_readers(context, plan)
    skipped = any(_is_on(options, *_SKIPS) for _, options in _streams_over(context, plan))
    return replace(plan, skipped=skipped)


def check_definition(run: FlowRun) -> None:
    """Raise BackfillNotPossible where a part of the flow's result can't be computed by itself."""
    flow, name = run.flow, run.name
    refresh = f"headwater run PIPELINE_DIR --full-refresh {run.dataset.name}"
    if flow.snapshots is not None:
        raise BackfillNotPossible(
            f"{name!r} compares whole snapshots with its table: a part of one would delete the rest.",
            where=flow.location,
            remedy="Let the function return the snapshots again, or refill the table: " + refresh,
        )
    frame = run.context.pipeline.evaluation.frames[name]
    if is_stateful(frame) or run.mode.kind.is_aggregation:
        raise BackfillNotPossible(
            f"{name!r} keeps state (a window, an aggregation, a deduplication or a join of streams). Its live state would not include "
            "what a backfill writes, and would write other rows of the same range later.",
            where=flow.location,
            remedy=f"Refill the table: {refresh}. Or make it a materialized view, any range of which can be backfilled.",
        )


def _mode(
    dataset: Dataset, flows: tuple[Flow, ...], arguments: BackfillArguments, *, is_view: bool
) -> BackfillMode:
    assert arguments.chosen is not None
    by_row = arguments.chosen.kind.of_rows
    if is_view:
        if arguments.mode not in (None, BackfillMode.REPLACE_WHERE) or not by_row:
            raise BackfillNotPossible(
                f"{dataset.name!r} is a materialized view: its rows are the result of its query, and none can be added.",
                where=dataset.location,
                remedy="Give a range by event time, or --where: its rows are recomputed in place (replace-where). Or run an update.",
            )
        return BackfillMode.REPLACE_WHERE
    if any(flow.declared_output.keeps_newest for flow in flows):
        if arguments.mode not in (None, BackfillMode.MERGE) or arguments.keys:
            raise BackfillNotPossible(
                f"{dataset.name!r} merges rows by its own keys and sequence: they can't be appended, replaced, or merged by others.",
                where=dataset.location,
                remedy="Omit --mode and --keys. Rows that are written a second time change nothing.",
            )
        return BackfillMode.MERGE
    return arguments.mode or (BackfillMode.REPLACE_WHERE if by_row else BackfillMode.APPEND)


def _keys(
    dataset: Dataset,
    flows: tuple[Flow, ...],
    arguments: BackfillArguments,
    mode: BackfillMode,
    columns: list[str],
) -> tuple[str, ...]:
    has_keys = any(flow.declared_output.keeps_newest for flow in flows)
    if mode is not BackfillMode.MERGE or has_keys:
        return ()
    by_lower = {name.lower(): name for name in columns}
    unknown = [key for key in arguments.keys if key.lower() not in by_lower]
    if unknown or not arguments.keys:
        problem = f"has no column {unknown[0]!r}" if unknown else "has no key of its own to merge by"
        raise UsageError(
            f"{dataset.name!r} {problem}.", remedy=f"Give --keys, of its columns: {', '.join(columns)}."
        )
    return tuple(by_lower[key.lower()] for key in arguments.keys)


def _check_rules(plan: TablePlan) -> None:
    rules = plan.dataset.expectations
    if plan.is_view and quarantines(rules):
        raise BackfillNotPossible(
            f"The rules of {plan.dataset.name!r} quarantine rows, and a part of a view's quarantine can't be replaced.",
            where=plan.dataset.location,
            remedy="Run an update: it recomputes the whole view and its quarantine.",
        )
    unique = next((r for r in rules if r.unique is not None and r.unique.within is UniqueWithin.TABLE), None)
    if unique is not None and plan.mode is not BackfillMode.APPEND:
        raise BackfillNotPossible(
            f"The rule {unique.name!r} requires keys to be unique in all of {plan.dataset.name!r}: rows that replace others would "
            "count as duplicates.",
            where=unique.location,
            remedy=f"Refill the table: headwater run PIPELINE_DIR --full-refresh {plan.dataset.name}",
        )


# A stream with one of these skips commits that remove rows.
_SKIPS = ("skipChangeCommits", "ignoreChanges")


def _is_on(options: Mapping[str, str], *names: str) -> bool:
    return any(options.get(name, "").lower() == "true" for name in names)


def _streams_over(context: UpdateContext, plan: TablePlan) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The targets of the streams that read the table, and the options they read it with."""
    for entry in context.pipeline.manifest.flows:
        for source in entry.sources:
            if source.streaming and source.name == plan.dataset.name:
                yield entry.target, source.options


def _check_readers(context: UpdateContext, plan: TablePlan) -> None:
    if plan.mode is BackfillMode.APPEND:
        return
    readers = sorted(
        {
            target for target, options in _streams_over(context, plan)
            if not _is_on(options, *_SKIPS, "readChangeFeed")
        }
    )  # fmt: skip
    if readers:
        raise ReadersWouldBreak(
            f"The streams into {', '.join(readers)} read {plan.dataset.name!r}: they fail on a commit that removes rows from it, and "
            f"{plan.mode} makes one.",
            where=plan.dataset.location,
            remedy='Let them read with .option("skipChangeCommits", "true") and backfill them too, or refresh all of them: '
            f"headwater run PIPELINE_DIR --full-refresh {','.join([plan.dataset.name, *readers])}",
        )
