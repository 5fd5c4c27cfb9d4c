"""Whether an update would find anything to do, decided before a JVM is started.

Decision 0007.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headwater.checkpoints.flow_identity import flow_identity
from headwater.checkpoints.layout import FlowState, flow_checkpoint
from headwater.checkpoints.pending_replacement import pending_replacements
from headwater.contract.arguments import RunArguments
from headwater.definitions.dataset import DatasetKind
from headwater.definitions.trigger import AvailableNow
from headwater.delta_log.table_history import head_version
from headwater.delta_log.versions import table_head
from headwater.errors import HeadwaterError, SourceUnreachable
from headwater.event_log.redaction import quoted
from headwater.graph.files_read import changed_files
from headwater.graph.manifest import FILE_NAME, FlowEntry, Manifest, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.update_plan import Selection
from headwater.incremental.refresh_record import view_log
from headwater.kafka.offsets import Connect
from headwater.metrics.lag import flow_lag
from headwater.storage.listing import looked_over
from headwater.updates.failed_tables import with_failed


@dataclass(frozen=True)
class NewsVerdict:
    """``moved`` is False only where it is certain that nothing would change; ``reasons`` say why it is not, or why it is.

    ``unexpected``: the check failed with an unforeseen error, which belongs into a log.
    """

    moved: bool
    reasons: tuple[str, ...] = ()
    manifest: Manifest | None = None
    unexpected: bool = False


def has_news(project: PipelineProject, *, connect: Connect | None = None) -> NewsVerdict:
    """Whether an update could change anything; the first reason that is found ends the search.

    An unforeseen error is a reason to run, too: if something is wrong, the update itself will report it.

    Raises:
        InvalidPipeline: where the definition, or the manifest in storage, can't be read by this version.
    """
    manifest = None
    try:
        manifest = read_manifest(project.state_folder / FILE_NAME)
        with looked_over(project.state_folder / "checkpoints"):
            reason = next(_reasons(project, manifest, connect), None)
    except SourceUnreachable as error:
        reason = error.what
    except HeadwaterError:
        raise
    except Exception as error:
        reason = f"whether anything has moved is not known: {quoted(error)}"
        return NewsVerdict(moved=True, reasons=(reason,), manifest=manifest, unexpected=True)
    return NewsVerdict(reason is not None, (reason,) if reason else (), manifest)


def news_for(project: PipelineProject, arguments: RunArguments) -> NewsVerdict | None:
    """Whether the update would find anything; None where it has to run in any case."""
    if arguments.refresh_failed and not arguments.dry_run:
        return _failures(project)
    # A long-running update is started to wait for what is to come.
    waits = not isinstance(project.spec.trigger, AvailableNow)
    if arguments.selective or arguments.no_skip or waits:
        return None
    return has_news(project)


def _failures(project: PipelineProject) -> NewsVerdict | None:
    """Whether the last update left anything undone."""
    manifest = read_manifest(project.state_folder / FILE_NAME)
    if manifest is None or with_failed(project, manifest, Selection(refresh_failed=True)).tables:
        return None
    return NewsVerdict(
        moved=False, reasons=("nothing was left undone by the last update",), manifest=manifest
    )


def _reasons(project: PipelineProject, manifest: Manifest | None, connect: Connect | None) -> Iterator[str]:
    if manifest is None:
        yield "the pipeline has not run yet"
        return
    if manifest.source_hash != project.source_hash():
        yield "the pipeline's definition has changed"
    if manifest.parameters_hash != project.parameters_hash():
        yield "the parameters are not those of the last update"
    for name in changed_files(manifest.files_read, project.folder):
        yield f"{name}, which the sources read while they are loaded, has changed"
    if manifest.rows_read:
        yield "the sources query tables while they are loaded"
    stored = {entry.name for entry in manifest.outputs}
    tables = {entry.name for entry in manifest.tables}
    yield from _replacement_reasons(project, manifest, tables)
    views = {entry.name for entry in manifest.datasets if entry.kind is DatasetKind.TEMPORARY_VIEW}
    flows = [flow for flow in manifest.flows if flow.target not in views]
    for dataset in sorted(tables - {flow.target for flow in flows}):
        if table_head(manifest.table_path(project.warehouse, dataset)) is None:
            yield f"the table of {dataset} is not there"
    # The cheapest checks come first: states and heads of every flow, then sources.
    for flow in flows:
        yield from _state_reasons(project, manifest, flow, stored)
    for flow in flows:
        yield from _source_reasons(project, flow, connect)


def _replacement_reasons(project: PipelineProject, manifest: Manifest, tables: set[str]) -> Iterator[str]:
    for pending in pending_replacements(project.state_folder):
        if pending.dataset not in tables:
            continue  # a table that is gone needs no cleanup
        table = manifest.table_path(project.warehouse, pending.dataset)
        if pending.needs_an_update(project.state_folder, table):
            yield f"a backfill of {pending.dataset} was not finished"


def _state_reasons(
    project: PipelineProject, manifest: Manifest, flow: FlowEntry, stored: set[str]
) -> Iterator[str]:
    if flow.target not in stored:
        yield f"{flow.name} writes to {flow.target}, which is neither a table nor a sink"
        return
    if flow.time_dependent:
        yield f"the result of {flow.name} changes with time"
    try:
        state = flow_checkpoint(project.state_folder, flow.target, flow.name).read_state()
    except HeadwaterError as error:
        yield error.what  # the update refuses this flow, and the others go on
        return
    if state is None or not state.completed:
        yield f"the last run of {flow.name} did not complete"
        return
    if state.definition_hash != manifest.definition_hash:
        yield f"{flow.name} has not run since the definition changed"
    if state.pending_epoch is not None:
        yield f"a reset of {flow.name} is not finished"
    if manifest.dataset(flow.target).location is not None:  # a sink without an id has none
        yield from _table_reasons(project, manifest, flow, state)


def _table_reasons(
    project: PipelineProject, manifest: Manifest, flow: FlowEntry, state: FlowState
) -> Iterator[str]:
    quarantine = manifest.quarantine_path(project.warehouse, flow.target)
    if state.has_quarantine and quarantine is not None:
        kept = head_version(quarantine)
        if kept < (state.quarantine_version or 0):
            yield f"the quarantine of {flow.target} is {'gone' if kept < 0 else 'an older copy'}"
    table = manifest.table_path(project.warehouse, flow.target)
    head = table_head(table)
    if head is None or head.table_id != state.sink_id:
        yield f"the table of {flow.target} is not the one that {flow.name} last wrote to"
    elif head.version < (state.sink_version or 0):
        yield f"the table of {flow.target} is an older copy of the one that {flow.name} last wrote to"
    elif manifest.dataset(flow.target).kind is DatasetKind.MATERIALIZED_VIEW:
        identity = flow_identity(project.state_folder, project.pipeline_id, flow.target, flow.name)
        log = view_log(table, *identity.names)
        if log.foreign is not None:
            yield f"rows of {flow.target} were changed by something else than its refresh (version {log.foreign})"
        elif not log.stands_at(state.refresh):
            yield f"the table of {flow.target} is not as its last refresh left it"


def _source_reasons(project: PipelineProject, flow: FlowEntry, connect: Connect | None) -> Iterator[str]:
    if not flow.sources and not flow.once and flow.streaming:
        yield f"the sources of {flow.name} are not known"
    for part in flow_lag(project, flow, connect=connect).sources:
        if part.backlog.unknown:
            yield f"{flow.name}: {part.backlog.unknown}"
        elif part.backlog.moved is not False:
            yield f"{part.name} has moved since {flow.name} read it"
