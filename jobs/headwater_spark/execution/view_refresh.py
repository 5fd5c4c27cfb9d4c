"""Bring a materialized view up to date by one commit: readers see the rows before or the rows after.

The commit says what it read and how (decision 0164). Decisions 0162 to 0165.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from delta.exceptions import DeltaConcurrentModificationException
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from headwater.checkpoints.layout import FlowState
from headwater.definitions.expectation import needs_judgement
from headwater.delta_log.table_history import (
    head_version,
    readable_table_id,
    table_exists,
    transaction_version,
)
from headwater.errors import FlowInterrupted, RefusedForSafety
from headwater.event_log.details import FlowStatus
from headwater.incremental.conditions import NotIncrementalizable
from headwater.incremental.costs import KEPT_FULL_RUNS, KEPT_RUNS, Reach, full_runs
from headwater.incremental.refresh_record import (
    KEY,
    SEEN,
    RefreshRecord,
    last_record,
    lost_files,
    view_log,
)
from headwater.incremental.techniques import Issue, IssueType, Planned, RefreshPolicy, Technique
from headwater_spark.delta_writes.batch_commits import quality_details
from headwater_spark.delta_writes.batch_transaction import BatchTarget, BatchTransaction
from headwater_spark.delta_writes.delta_overwrite import DeltaOverwrite
from headwater_spark.delta_writes.table_upkeep import keep_clustering
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.flow_writer import count_rows, write_batch, write_rows
from headwater_spark.execution.former_flows import make_replaceable
from headwater_spark.execution.refresh_decision import BEGINNINGS, Decision, RefreshDecision, source_bytes
from headwater_spark.execution.view_sources import fingerprints, noted_tables, other_sources, table_bytes
from headwater_spark.execution.written_rows import merged_groups, overwritten_rows
from headwater_spark.facade.pinned_tables import pinned_tables
from headwater_spark.plans.names import quoted
from headwater_spark.resolution.replaced_slice import slice_condition
from headwater_spark.rules.expectations import Quality
from headwater_spark.views.changed_rows import FilesMissing, FilesUnknown
from headwater_spark.views.deciding_settings import deciding_settings
from headwater_spark.views.examined_query import ExaminedQuery, NotedTable, examine
from headwater_spark.views.layout import Layout, view_layout
from headwater_spark.views.merged_groups import MergedGroups
from headwater_spark.views.part_write import PartWrite
from headwater_spark.views.techniques import Increment
from headwater_spark.views.whole_write import WholeWrite

# Delta refuses to read an old version by its number, unless it is the newest one.
_TOO_OLD = "TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION"
# What is raised where this Spark has other classes than those that are known: the view is recomputed whole.
_NOT_SEEN = (Py4JError, PySparkException, AttributeError, TypeError, ValueError, KeyError)


def refresh_view(run: FlowRun, *, force: bool = False) -> None:
    """Bring a materialized view up to date; it is left alone where no source has moved since its last refresh.

    Args:
        force: recompute it whether or not anything moved, and all of it (a full refresh).

    Raises:
        NotIncrementalizable: its policy is incremental_strict, and it can't be refreshed incrementally this time.
        FlowKindChanged: the table has rows of a stream, and a full refresh was not asked for, or is not allowed.
    """
    # Taken before the read: what arrives meanwhile is read again by the next update, never missed.
    now = fingerprints(run.context, run.entry)
    others = other_sources(run.context, run.entry)
    state, sink = run.checkpoint.read_state(), readable_table_id(run.table)
    if not force and sink is not None and _is_fresh(run, state, sink, now):
        _plan(run, Planned(Technique.NO_OP, note="no source has moved since the last refresh"))
        run.outcome.version = head_version(run.table)
        run.outcome.status = FlowStatus.COMPLETED
        return
    make_replaceable(run, state, force=force)
    run.checkpoint.update_state(completed=False, role=run.role)
    with run.settings():
        refresh = _begun(run, others, whole=force)
        refresh.carry_out()
    run.checkpoint.update_state(
        sink_id=readable_table_id(run.table),
        completed=True,
        definition_hash=run.context.pipeline.manifest.definition_hash,
        input_versions=now or {},
        refresh={**refresh.stored(), "update": view_log(run.table, *run.identity.names).update},
    )
    run.outcome.version = head_version(run.table)
    run.outcome.status = FlowStatus.COMPLETED


def _begun(run: FlowRun, others: Mapping[str, str | None], *, whole: bool) -> _Refresh:
    """A refresh over the versions that its sources have now."""
    noted = noted_tables(run.context, run.entry)
    try:
        return _Refresh.begun(run, noted, others, whole=whole)
    except Exception as error:
        if _TOO_OLD not in str(error):
            raise
        # A source was written to since its version was noted, and that one was its newest for longer than files are kept.
        return _Refresh.begun(run, noted_tables(run.context, run.entry), others, whole=whole)


def _is_fresh(run: FlowRun, state: FlowState | None, sink: str, now: dict[str, str] | None) -> bool:
    """Whether the view was recomputed by this definition, and no source has moved since."""
    return (
        state is not None and state.completed and state.sink_id == sink
        and state.definition_hash == run.context.pipeline.manifest.definition_hash and not run.entry.time_dependent
        and not run.context.pipeline.manifest.rows_read
        and now is not None and dict(state.input_versions) == now
        and view_log(run.table, *run.identity.names).stands_at(state.refresh)
    )  # fmt: skip


def _plan(run: FlowRun, planned: Planned) -> None:
    run.emit(
        "planning_information", planned.message(run.name), details=planned.details(), maturity="EVOLVING"
    )


@dataclass
class _Refresh:
    """One refresh, from what its query reads to its commit."""

    run: FlowRun
    rows: DataFrame
    query: ExaminedQuery | None
    settings: Mapping[str, str]
    others: Mapping[str, str | None]
    whole: bool
    unseen: str = ""
    done: Technique = Technique.NO_OP
    reason: str = ""
    seconds: float = 0.0
    predicted: float = 0.0
    planned: str = ""
    # How far changes reach, by which technique, where that is known since.
    reached: tuple[Technique, Reach] | None = None
    # Whether changes of the sources are of use to the next refresh: maintenance keeps them.
    follows: bool = True

    @classmethod
    def begun(
        cls, run: FlowRun, noted: list[NotedTable], others: Mapping[str, str | None], *, whole: bool
    ) -> _Refresh:
        """Evaluate the view's query over the versions that were noted."""
        with pinned_tables({table.folder: table.head.version for table in noted}):
            rows = run.rows(whole=whole)
        try:
            query = _examined(run, rows, noted)
            settings = deciding_settings(rows.sparkSession, run.flow.spark_conf)
        except _NOT_SEEN as error:
            return cls(
                run, rows, None, {}, others, whole, f"{type(error).__name__}: {error}".partition("\n")[0]
            )
        return cls(run, rows, query, settings, others, whole)

    def carry_out(self) -> None:
        """Do what is decided; what fails on the incremental way before its commit is done by recomputing the view."""
        decision = self._decision()
        self._note_reach(decision)
        if decision.techniques is not None:
            instead = self._increment(decision)
            if instead is None:
                return
            decision = Decision(instead)
        planned = decision.planned
        self._refuse_where_strict(planned)
        _plan(self.run, planned)
        self.done, self.reason = planned.chosen, planned.reason
        never = any(issue.lasting for issue in planned.issues)
        self.follows = not never and self.run.dataset.refresh_policy is not RefreshPolicy.FULL
        if planned.chosen is not Technique.NO_OP:
            started = time.monotonic()
            self._recompute()
            self.seconds = time.monotonic() - started

    def stored(self) -> dict[str, Any]:
        """What the flow's state keeps of it: what predictions of cost need, and what pages show."""
        state = self.run.checkpoint.read_state()
        known = dict(state.refresh) if state is not None else {}
        if self.done is Technique.COMPLETE_RECOMPUTE:
            size = source_bytes(self.query) if self.query is not None else 0
            last = [round(self.seconds, 2), size]
            every = [[run.seconds, run.bytes] for run in full_runs(known)]
            kept = [*every, last][-KEPT_FULL_RUNS:]
            known |= {"full_seconds": last[0], "full_bytes": size, "full_runs": kept}
        elif self.done.incremental and self.predicted:
            runs = dict(known.get("runs", {}))
            own = [*runs.get(self.planned, ()), [round(self.predicted, 2), round(self.seconds, 2)]]
            known["runs"] = runs | {self.planned: own[-KEPT_RUNS:]}
        if self.reached is not None:
            technique, reach = self.reached
            noted = [reach.share, round(reach.changed, 4), reach.since]
            known["reach"] = {**known.get("reach", {}), str(technique): noted}
        record = self._record(self.done) if self.done is Technique.NO_OP else None
        known[SEEN] = record.seen if record is not None else None
        follows = known.get("follows", True) if self.done is Technique.NO_OP else self.follows
        return {**known, "technique": str(self.done), "reason": self.reason, "follows": follows}

    def _note_reach(self, decision: Decision) -> None:
        if decision.followed is not None and decision.reach is not None:
            self.reached = (decision.followed, decision.reach)

    def _decision(self) -> Decision:
        run = self.run
        if self.whole:
            return Decision(Planned(Technique.COMPLETE_RECOMPUTE, note="a full refresh was asked for"))
        previous = (
            lost_files(run.table) or last_record(run.table, *run.identity.names)
            if table_exists(run.table)
            else Issue(IssueType.CHANGE_SET_MISSING, "there is no earlier refresh to go on from")
        )
        if isinstance(previous, RefreshRecord) and (state := run.checkpoint.read_state()) is not None:
            previous = previous.going_on_from(state.refresh)
        seen = self.query or self.unseen
        try:
            decision = RefreshDecision(run, seen, self.settings, self.others, previous).decide()
        except (*_NOT_SEEN, FilesMissing, FilesUnknown) as error:
            decision = Decision(Planned(Technique.COMPLETE_RECOMPUTE, (_failed(error),)))
        if run.flow.replace_where is not None and decision.planned.chosen is not Technique.NO_OP:
            note = "replace_where names the part to recompute"
            return Decision(Planned(Technique.PARTITION_OVERWRITE, note=note))
        return decision

    def _refuse_where_strict(self, planned: Planned) -> None:
        strict = self.run.dataset.refresh_policy is RefreshPolicy.INCREMENTAL_STRICT
        in_the_way = [issue for issue in planned.issues if issue.kind not in BEGINNINGS]
        if not strict or self.whole or planned.chosen is not Technique.COMPLETE_RECOMPUTE or not in_the_way:
            return
        raise NotIncrementalizable.of(self.run.dataset.name, RefreshPolicy.INCREMENTAL_STRICT, in_the_way[0])

    # -- writing -------------------------------------------------------------------------------------------------

    def _increment(self, decision: Decision) -> Planned | None:
        """Refresh the view by what changed; the full refresh that is to be done instead, where that is better."""
        run, chosen = self.run, decision.planned.chosen
        before, started = head_version(run.table), time.monotonic()
        assert decision.techniques is not None
        try:
            increment = decision.techniques.increment(chosen)
            if isinstance(increment, Issue):
                self._note_reach(decision.everywhere())
                return Planned(Technique.COMPLETE_RECOMPUTE, (increment,), sources=decision.planned.sources)
            decision = decision.at(increment.effort)
            self._note_reach(decision)
            planned = decision.planned
            if decision.techniques is None:
                return planned
            final = Planned(increment.technique, costs=planned.costs, sources=planned.sources)
            if increment.rows is None:
                final = Planned(Technique.NO_OP, note="the changes come to nothing", sources=planned.sources)
            _plan(run, final)
            self.done = final.chosen
            if increment.rows is not None:
                self._write(increment.rows, self._target(increment), increment.technique, whole=False)
                self.seconds, self.predicted = time.monotonic() - started, decision.predicted
                self.planned = str(chosen)
        except (RefusedForSafety, DeltaConcurrentModificationException):
            raise
        except Exception as error:
            if head_version(run.table) != before or run.context.stop_requested.is_set():
                raise
            return Planned(Technique.COMPLETE_RECOMPUTE, (_failed(error),), sources=decision.planned.sources)
        return None

    def _target(self, increment: Increment) -> BatchTarget:
        run = self.run
        if increment.technique is Technique.GROUP_AGGREGATE:
            return MergedGroups(run.table, increment.merging)
        return PartWrite(run.table, run.dataset.named_partitions, increment.condition, increment.sought)

    def _recompute(self) -> None:
        """Recompute the view, or the part of it that its declaration names."""
        run = self.run
        in_part = run.flow.replace_where is not None and not self.whole and table_exists(run.table)
        layout = Layout() if in_part else self._layout()
        rows = self.rows
        if layout.sorted_by is not None:
            rows = rows.sortWithinPartitions(quoted(layout.sorted_by))
        # Delta refuses one that was under way while another driver replaced the rows: both remove the same files.
        plain = DeltaOverwrite(
            run.table,
            run.dataset.partition_columns,
            slice_condition(self.rows, run.flow) if in_part else None,
            new_columns=run.dataset.schema is None,
            once=not needs_judgement(run.dataset.expectations),
            rows_per_file=layout.rows_per_file,
        )
        self._write(rows, WholeWrite(plain), self.done, whole=True)
        keep_clustering(run.context.spark, run.dataset, run.table)

    def _layout(self) -> Layout:
        """How a later refresh will find a part of the view."""
        query, dataset = self.query, self.run.dataset
        if query is None or not self.follows or needs_judgement(dataset.expectations):
            return Layout()
        sizes = {
            number: table_bytes(query.noted[key]) or 0
            for number, (key, _) in query.tables.items()
            if key in query.noted
        }
        fields = query.plan.frame.schema.fields
        types, names = [field.dataType.simpleString() for field in fields], [field.name for field in fields]
        declared = (*dataset.partition_columns, *(dataset.cluster_columns or ()))
        try:
            return view_layout(query.plan.root, types, names, sizes, declared)
        except _NOT_SEEN:
            return Layout()

    def _write(self, rows: DataFrame, target: BatchTarget, technique: Technique, *, whole: bool) -> None:
        run = self.run
        metadata = run.metadata(update=run.context.update_id)
        record = self._record(technique)
        if record is not None:
            metadata[KEY] = record.as_dict()
        # Refreshes are numbered, so that one that was under way while another driver made the next is refused by Delta.
        application = "{}.{}@refresh".format(*run.identity.names)
        number = (transaction_version(run.table, application) or 0) + 1
        if needs_judgement(run.dataset.expectations):
            application, number = str(run.table), 0
        # The rows that are kept out come first: a view that is new has its quarantine, and a crash between the two is redone.
        transaction = BatchTransaction(application, number, json.dumps(metadata))
        if isinstance(target, MergedGroups):  # views with rules are not merged into
            write_batch(run.context, rows, target, transaction)
            quality = merged_groups(run.table)
        elif whole and not run.dataset.expectations and run.flow.replace_where is None:
            # The files say how many rows they have: to count each row as it passes is no gain.
            write_batch(run.context, rows, target, transaction)
            quality = overwritten_rows(run.table)
        else:
            quality = write_rows(run, rows, target, transaction, whole=whole)
        run.context.check_lease()
        self._check_commit()
        self._count(quality, technique)

    def _check_commit(self) -> None:
        """Delta leaves out, in silence, what has the number of a commit that it has: that one was another driver's."""
        if view_log(self.run.table, *self.run.identity.names).update != self.run.context.update_id:
            raise FlowInterrupted(
                f"Another driver refreshed {self.run.dataset.name!r} at the same time.",
                where=self.run.table,
                remedy="Run the update again.",
            )

    def _record(self, technique: Technique) -> RefreshRecord | None:
        query = self.query
        if query is None:
            return None
        others = {key: value for key, value in self.others.items() if value is not None}
        sources = query.sources if len(others) == len(self.others) else None
        return RefreshRecord(str(technique), query.fingerprint, self.settings, sources, others)

    def _count(self, quality: Quality, technique: Technique) -> None:
        run = self.run
        how = "was recomputed" if not technique.incremental else f"was refreshed by {technique}"
        message = f"{run.dataset.name} {how}: {quality.accepted} rows, {quality.dropped} dropped."
        count_rows(run, quality, message, head_version(run.table), level="METRICS")
        run.outcome.data_quality = quality_details(quality, run.dataset.name)


def _examined(run: FlowRun, rows: DataFrame, noted: list[NotedTable]) -> ExaminedQuery:
    """What the query is, with what else decides about its rows."""
    source_hash = run.context.pipeline.manifest.definition_hash
    more = [
        f"stored {run.dataset.schema!r} {run.dataset.partition_columns} {run.dataset.cluster_columns}",
        f"part {run.flow.replace_where}",
        *(f"rule {rule.name} {rule.constraint} {rule.action}" for rule in run.dataset.expectations),
    ]
    return examine(rows, noted, more, source_hash)


def _failed(error: Exception) -> Issue:
    text = str(error).strip().partition("\n")[0][:300]
    missing = isinstance(error, FilesMissing) or any(
        word in str(error) for word in ("FILE_NOT_EXIST", "FileNotFoundException", "DELTA_FILE_NOT_FOUND")
    )
    if missing:
        return Issue(IssueType.DATA_FILE_MISSING, f"files that changes lie in are gone: {text}")
    return Issue(
        IssueType.PLAN_NOT_INCREMENTALIZABLE,
        f"the incremental refresh failed: {type(error).__name__}: {text}",
        "OPERATOR_NOT_SUPPORTED",
    )
