"""From a pipeline on disk to its resolved graph: sources loaded, functions evaluated once over stand-ins."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from headwater import __version__
from headwater.definitions.clock_in_code import may_ask_the_clock
from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.flow import Flow
from headwater.definitions.output_kind import OutputKind
from headwater.definitions.source_location import SourceLocation
from headwater.errors import FlowWithoutTarget
from headwater.graph.change_targets import (
    check_no_rules,
    check_only_changes,
    check_retention,
    check_transactions_are_kept,
)
from headwater.graph.declared_schedule import declared_schedule
from headwater.graph.history_views import declare_history_views, declare_targets
from headwater.graph.manifest import ColumnEntry, DatasetEntry, ExpectationEntry, FlowEntry, Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.registry import Registry
from headwater.graph.table_places import declared_places, refuse_around_sources, refuse_overlaps
from headwater.graph.waiting import beside, check_waits, upstream
from headwater.storage.place import use_in_this_driver
from headwater_spark.facade.action_guard import install_action_guard
from headwater_spark.facade.noted_reads import noting_reads
from headwater_spark.facade.pipeline_session import PipelineSession
from headwater_spark.loader.loader import loaded_sources
from headwater_spark.plans.output_mode import OutputMode
from headwater_spark.plans.plan_walk import reads_the_clock
from headwater_spark.resolution.evaluation import Evaluation
from headwater_spark.resolution.generated_columns import check_generated
from headwater_spark.resolution.numbered_rows import check_numbered
from headwater_spark.resolution.real_time import check_real_time
from headwater_spark.resolution.refresh_policies import check_refresh_policy
from headwater_spark.resolution.settable import check_settable
from headwater_spark.resolution.sinks import public_options
from headwater_spark.resolution.table_properties import check_table_properties
from headwater_spark.sources.plan_sources import TableNames, plan_sources
from headwater_spark.views.clock_in_rules import clock_in_rules

_HIDDEN_OPTIONS = "spark.sql.redaction.options.regex"


@dataclass(frozen=True)
class ResolvedPipeline:
    """A pipeline that can be executed: its declarations, its resolved graph, and how to evaluate it again."""

    project: PipelineProject
    registry: Registry
    session: PipelineSession
    evaluation: Evaluation
    manifest: Manifest

    def dataset(self, name: str) -> Dataset:
        """The declaration of a dataset."""
        return next(dataset for dataset in self.registry.datasets() if dataset.name == name)

    def flow(self, name: str) -> Flow:
        """The declaration of a flow."""
        return next(flow for flow in self.registry.flows() if flow.name == name)


@contextmanager
def resolved_pipeline(project: PipelineProject, spark: SparkSession) -> Iterator[ResolvedPipeline]:
    """Load and resolve a pipeline; inside the block its functions can be evaluated.

    Raises:
        InvalidPipeline: any of its kinds, with the user's line; nothing was written.
    """
    project.check_parameters()
    install_action_guard()
    session = PipelineSession.over(spark)
    use_in_this_driver(project.object_store)
    hide_secret_parameters(project, session)
    for key, value in project.configuration.items():
        session.conf.set(key, value)
    registry = Registry(catalog=project.spec.catalog, schema=project.spec.schema)
    with session_of_sources(session), tempfile.TemporaryDirectory(prefix="headwater-") as folder:
        stubs = Path(folder).resolve()
        evaluation = Evaluation(
            registry, session, project.warehouse, project.configuration, stubs, project.state_folder
        )
        with ExitStack() as stack:
            with noting_reads(project.folder) as reads:
                loaded = stack.enter_context(loaded_sources(project, registry, session))
                evaluation.labels = loaded.labels
                declare_targets(registry)
                views = declare_history_views(registry)
                if session.substitutes is not None:
                    session.substitutes.narrow(registry, evaluation)
                manifest = _resolve(project, registry, evaluation, stubs, views)
            manifest = manifest.model_copy(update={"files_read": reads.files, "rows_read": reads.rows})
            yield ResolvedPipeline(project, registry, session, evaluation, manifest)


def hide_secret_parameters(project: PipelineProject, session: PipelineSession) -> None:
    """Have Spark hide the values of secret parameters where it shows a session's settings (its UI, its event log)."""
    secrets = [name for name, spec in project.spec.parameters.items() if spec.secret]
    if secrets:
        session.conf.set(_HIDDEN_OPTIONS, f"(?i)url|^(?:{'|'.join(secrets)})$")


@contextmanager
def session_of_sources(session: PipelineSession) -> Iterator[None]:
    """Let ``SparkSession.builder.getOrCreate()`` and ``getActiveSession()`` in a source give the facade."""
    instantiated, active = SparkSession._instantiatedSession, SparkSession.__dict__["getActiveSession"]  # noqa: SLF001
    SparkSession._instantiatedSession = session  # noqa: SLF001
    SparkSession.getActiveSession = staticmethod(lambda: session)  # type: ignore[method-assign]
    try:
        yield
    finally:
        SparkSession._instantiatedSession = instantiated  # noqa: SLF001
        SparkSession.getActiveSession = active  # type: ignore[method-assign]


def _resolve(
    project: PipelineProject, registry: Registry, evaluation: Evaluation, stubs: Path, views: frozenset[str]
) -> Manifest:
    _check_targets(registry)
    evaluation.names.check_reads_at_import()
    datasets = registry.datasets()
    for dataset in datasets:
        evaluation.schema_of(dataset)
        check_table_properties(evaluation.session, dataset)
        check_generated(evaluation.session, dataset)
        for flow in evaluation.flows_of(dataset):
            frame = evaluation.frames[flow.name]
            check_refresh_policy(dataset, frame, stubs)
            check_real_time(frame, flow, dataset, stubs)
            mode = evaluation.output_mode_of(flow)
            check_numbered(dataset, evaluation.kind_of(dataset), flow, mode, frame.columns)
    for flow in registry.flows():
        check_settable(evaluation.session, flow, evaluation.settings_of(flow))
    check_waits(registry.flows(), [dataset.name for dataset in datasets], evaluation.reads_of)
    # Implicit views that nothing reads are not part of the graph.
    read = {name for names in evaluation.reads_of.values() for name in names}
    datasets = [dataset for dataset in datasets if dataset.name not in views - read]
    locations = _locations(project, datasets)
    names = TableNames(stubs, project.warehouse, locations)
    return Manifest(
        headwater_version=__version__,
        pipeline_id=project.pipeline_id,
        pipeline_name=project.spec.name,
        catalog=project.spec.catalog,
        schema_name=project.spec.schema,
        source_hash=project.source_hash(),
        parameters_hash=project.parameters_hash(),
        schedule=declared_schedule(registry, project.spec),
        datasets=tuple(_dataset_entry(dataset, evaluation, project.folder) for dataset in datasets),
        flows=tuple(
            _flow_entry(flow, registry, evaluation, names, project.folder)
            for flow in registry.flows()
            if flow.target not in views - read
        ),
    )


def _locations(project: PipelineProject, datasets: list[Dataset]) -> dict[str, str]:
    """The tables by their folders; raises DuplicateDataset where two would write to one, or one inside the other."""
    places = list(declared_places(project, datasets))
    refuse_overlaps(places)
    refuse_around_sources(project, places)
    return {
        str(dataset.table_location(project.pipeline_id)): dataset.name
        for dataset in datasets
        if dataset.stored
    }


def _check_targets(registry: Registry) -> None:
    registry.check_expectations()
    datasets = {dataset.name: dataset for dataset in registry.datasets()}
    kinds = {name: dataset.kind for name, dataset in datasets.items()}
    for flow in registry.flows():
        check_only_changes(flow, registry.flows())
        if flow.target in datasets:
            check_no_rules(flow, datasets[flow.target])
            check_retention(flow, datasets[flow.target])
            check_transactions_are_kept(flow, datasets[flow.target])
        if flow.target not in kinds:
            raise FlowWithoutTarget(
                f"The flow {flow.name!r} writes to {flow.target!r}, which nothing declares.",
                where=flow.location,
                remedy=f'Add dp.create_streaming_table("{flow.target}"), or dp.create_sink.',
            )
        if (
            kinds[flow.target] in (DatasetKind.TEMPORARY_VIEW, DatasetKind.MATERIALIZED_VIEW)
            and flow.name != flow.target
        ):
            raise FlowWithoutTarget(
                f"The flow {flow.name!r} can't append to the {kinds[flow.target].value.replace('_', ' ')} {flow.target!r}.",
                where=flow.location,
                remedy="Declare the target with dp.create_streaming_table.",
            )


def _dataset_entry(dataset: Dataset, evaluation: Evaluation, folder: Path) -> DatasetEntry:
    schema = evaluation.schema_of(dataset)
    return DatasetEntry(
        name=dataset.name,
        kind=evaluation.kind_of(dataset),
        location=dataset.table_location(evaluation.pipeline_id),
        quarantine=dataset.quarantine_location(evaluation.pipeline_id),
        comment=dataset.comment,
        columns=tuple(
            ColumnEntry(name=f.name, type=f.dataType.simpleString(), nullable=f.nullable)
            for f in schema.fields
        ),
        expectations=tuple(
            ExpectationEntry(name=rule.name, constraint=rule.constraint, action=rule.action)
            for rule in dataset.expectations
        ),
        table_properties=dict(dataset.table_properties),
        partition_columns=dataset.partition_columns,
        cluster_columns=dataset.cluster_columns,
        private=dataset.private,
        sink_format=dataset.sink.format if dataset.sink else None,
        sink_options=public_options(dataset.sink) if dataset.sink else {},
        defined_at=_relative(dataset.location, folder),
    )


def _flow_entry(
    flow: Flow, registry: Registry, evaluation: Evaluation, names: TableNames, folder: Path
) -> FlowEntry:
    frame = evaluation.frames[flow.name]
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - the plan has no public face in Python
    order = [dataset.name for dataset in registry.datasets()]
    mode = evaluation.output_modes.get(flow.name, OutputMode())
    if flow.snapshots is not None:
        mode = OutputMode(OutputKind.SNAPSHOT, evaluation.changes[flow.name].keys)
    return FlowEntry(
        name=flow.name,
        target=flow.target,
        streaming=frame.isStreaming,
        once=flow.once,
        inputs=tuple(sorted(set(evaluation.reads_of[flow.name]), key=order.index)),
        sources=plan_sources(frame, names),
        depends_on=upstream(flow, registry.flows(), order),
        after_flows=beside(flow, registry.flows()),
        output_mode=mode.kind,
        merge_keys=mode.keys,
        # Only the function knows whether there is another snapshot.
        time_dependent=(flow.snapshots is not None and flow.snapshots.following is not None)
        or (not frame.isStreaming and (reads_the_clock(plan) or _may_differ(flow, registry, evaluation))),
        defined_at=_relative(flow.location, folder),
    )


def _may_differ(flow: Flow, registry: Registry, evaluation: Evaluation) -> bool:
    """Whether a materialized view may have another query, or other rules, at another time, though its plan does not say so."""
    target = next((one for one in registry.datasets() if one.name == flow.target), None)
    if target is None or evaluation.kind_of(target) is not DatasetKind.MATERIALIZED_VIEW:
        return False
    if any(may_ask_the_clock(one.function) for one in (flow, *evaluation.views_in(flow))):
        return True
    return clock_in_rules(evaluation.frames[flow.name], target.expectations) is not None


def _relative(location: SourceLocation | None, folder: Path) -> str | None:
    return str(location.relative_to(folder)) if location is not None else None
