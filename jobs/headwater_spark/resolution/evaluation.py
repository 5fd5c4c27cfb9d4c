"""Evaluating dataset functions: over empty stand-ins to learn schemas and edges, then over the real tables.

When a dataset is read that is not known yet, the resolution evaluates it first (a stack of names detects cycles) and
hands out a stand-in with its schema, so one pass resolves a graph in any order of declaration.

Decision 0003.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructType

from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.flow import Flow
from headwater.errors import (
    DatasetCycle,
    InvalidSourceOption,
    NotADataFrame,
    UnknownDataset,
)
from headwater.graph.query_settings import query_settings, views_in
from headwater.graph.registry import Registry, registering
from headwater.storage.place import Place, located
from headwater_spark.auto_cdc.change_columns import ChangeColumns
from headwater_spark.facade.action_guard import no_actions
from headwater_spark.facade.event_log_text import EventLogText
from headwater_spark.facade.pipeline_session import PipelineBatchReader, PipelineSession, PipelineStreamReader
from headwater_spark.facade.sql_text import SqlText
from headwater_spark.messages.user_errors import user_errors
from headwater_spark.plans.cluster_statistics import check_cluster_statistics
from headwater_spark.plans.output_mode import OutputMode
from headwater_spark.plans.schemas import merged_schema, plain_schema, with_change_columns
from headwater_spark.plans.stream_operations import check_stream
from headwater_spark.resolution.dataset_kinds import refuse_sink, resolved_kind
from headwater_spark.resolution.flow_columns import analysed_frames
from headwater_spark.resolution.judged_flows import check_judged
from headwater_spark.resolution.known_names import KnownNames, read_at_import, rows_of_table, unfilled
from headwater_spark.resolution.output_mode import check_alone, output_mode
from headwater_spark.resolution.replaced_slice import in_slice
from headwater_spark.resolution.settings_gate import SettingsGate
from headwater_spark.resolution.sinks import check_sink_rows
from headwater_spark.resolution.wrong_reads import (
    batch_read_as_stream,
    stream_of_recomputed_rows,
    stream_read_as_batch,
)
from headwater_spark.rules.expectations import apply_expectations, check_expectations, view_observation
from headwater_spark.rules.quarantine_schema import empty_quarantine
from headwater_spark.sources.cloud_files.source import CloudFiles, ReadingFlow
from headwater_spark.sources.plan_sources import DELTA_OPTIONS
from headwater_spark.sources.rescued_columns import ALLOWING, OPTION, with_rescued_column
from headwater_spark.sources.source_schemas import streaming_leaves


class Evaluation:
    """The resolution behind a facade, for one pipeline. ``live``: read real tables rather than stand-ins."""

    def __init__(
        self,
        registry: Registry,
        session: PipelineSession,
        warehouse: Place,
        configuration: Mapping[str, str],
        stubs: Place,
        state_folder: Place,
    ) -> None:
        self.live = False
        self.labels: frozenset[str] = frozenset()
        self._registry = registry
        self.session = session
        self._warehouse = warehouse
        self.stubs = stubs
        self.pipeline_id = state_folder.name
        self._lock = threading.RLock()
        self._gate = SettingsGate(session, self._lock)
        self._stack: list[str] = []
        self._reads: list[list[str]] = []
        self.names = KnownNames(registry, warehouse)
        self._flows: list[Flow] = []
        self.state_folder = state_folder
        self.cloud = CloudFiles(session, state_folder)
        self._schemas: dict[str, StructType] = {}
        self._kinds: dict[str, DatasetKind] = {}
        self.reads_of: dict[str, list[str]] = {}
        self.frames: dict[str, DataFrame] = {}
        self.output_modes: dict[str, OutputMode] = {}
        self.changes: dict[str, ChangeColumns] = {}
        self._sql = SqlText(session, configuration, EventLogText(session, state_folder, self.names.dataset))
        session.resolution = self
        registry.reader = self

    # -- for the facade --------------------------------------------------------------------------------------------

    def batch(self, name: str, reader: PipelineBatchReader) -> DataFrame:
        """The rows of ``name`` as they stand."""
        dataset = self.names.dataset(name)
        if dataset is None:
            if (empty := self._empty_quarantine(name)) is not None:
                return empty
            return self.names.external(name, reader.frame_at, reader.catalog_table, at_import=not self._reads)
        refuse_sink(dataset)
        self._record(dataset, name)
        if dataset.kind is DatasetKind.TEMPORARY_VIEW:
            frame = self.view_frame(dataset)
            if frame.isStreaming:
                raise stream_read_as_batch(dataset.name, self._flows[-1])
            return frame
        if self.live:
            return rows_of_table(dataset, lambda: reader.frame_at(str(self.table_path(dataset))))
        schema = self.schema_of(dataset)
        if reader.options_given.get("readchangefeed") == "true":
            schema = with_change_columns(schema)
        return (
            DataFrameReader(self.session).schema(schema).format("parquet").load(self._stub("batch", dataset))
        )

    def stream(self, name: str, reader: PipelineStreamReader) -> DataFrame:
        """The rows of ``name`` as they come."""
        dataset = self.names.dataset(name)
        if dataset is None:
            if self._empty_quarantine(name) is not None:
                raise UnknownDataset(
                    f"{name!r} is not there yet: no row has been kept out.",
                    remedy=f'Read it as a batch, dp.read("{name}"): it is empty until then. A stream can begin once it is there.',
                )
            return self.names.external(name, reader.frame_at, reader.catalog_table, at_import=not self._reads)
        refuse_sink(dataset)
        self._record(dataset, name)
        if dataset.kind is DatasetKind.TEMPORARY_VIEW:
            frame = self.view_frame(dataset)
            if not frame.isStreaming:
                raise batch_read_as_stream(dataset.name, self._flows[-1])
            return frame
        if OPTION in reader.options_given:
            raise InvalidSourceOption(
                f"rescuedDataColumn: {dataset.name!r} is a table of this pipeline, whose columns change with your code alone.",
                remedy="Leave the option out; it is for tables that others write.",
            )
        schema = self.schema_of(dataset)
        changes = reader.options_given.get("readchangefeed") == "true"
        if self.kind_of(dataset) is DatasetKind.MATERIALIZED_VIEW and not changes:
            raise stream_of_recomputed_rows(dataset.name, self._flows[-1])
        if self.live:
            return rows_of_table(dataset, lambda: reader.frame_at(str(self.table_path(dataset))))
        schema = with_change_columns(schema) if changes else schema
        return (
            DataStreamReader(self.session)
            .schema(schema)
            .format("parquet")
            # Parquet knows none of these; the manifest takes them from the plan.
            .options(**{k: v for k, v in reader.options_spelled.items() if k.lower() in DELTA_OPTIONS})
            .load(self._stub("stream", dataset))
        )

    def cloud_files(
        self, path: str, schema: Any, options: dict[str, str], *, streaming: bool = True
    ) -> DataFrame:
        """The stream of a ``cloudFiles`` read; its schema is kept under the flow whose function has the read."""
        flow = ReadingFlow.of(self._flows, self.state_folder)
        return self.cloud.frame(path, schema, options, flow, live=self.live, streaming=streaming)

    def rescued(self, frame: DataFrame, column: str) -> DataFrame:
        """The rows of a Delta stream in the columns that the flow first read from it, the rest as JSON in ``column``."""
        flow = ReadingFlow.of(self._flows, self.state_folder)
        state = flow.checkpoint.read_state()
        recorded = state.source_schemas if state is not None else {}
        # Delta asks the session of the read, while the query runs: in force for this pipeline from here on.
        self.session.conf.set(ALLOWING, "true")
        before = next((recorded[path] for path, *_ in streaming_leaves(frame) if path in recorded), None)
        return with_rescued_column(frame, before, column)

    def sql_text(self, text: str, qualified: Callable[[str], str] | None = None) -> str:
        """``text`` with configuration values put in and names of datasets replaced by views of their frames."""
        return self._sql.rewrite(text, self._knows, qualified)

    def read_dataset(self, name: str) -> DataFrame:
        """``dp.read``."""
        return self.session.read.table(name)

    def read_dataset_stream(self, name: str) -> DataFrame:
        """``dp.read_stream``."""
        return self.session.readStream.table(name)

    # -- evaluation ----------------------------------------------------------------------------------------------

    def flows_of(self, dataset: Dataset) -> list[Flow]:
        """The flows into a dataset."""
        return [flow for flow in self._registry.flows() if flow.target == dataset.name]

    def evaluate(self, flow: Flow, *, whole: bool = False) -> DataFrame:
        """Call a flow's function and check that it gave a DataFrame.

        ``whole``: the query's whole result, even where the flow recomputes only a part of its table.

        Raises:
            NotADataFrame, ActionInDefinition, UnknownDataset, DatasetCycle, QueryFailed, SourceFileFailed: with the
                user's line.
        """
        with self.calling(flow):
            frame = flow.function()
            if not isinstance(frame, DataFrame):
                kind = f"{type(frame).__module__}.{type(frame).__qualname__}".removeprefix("builtins.")
                raise NotADataFrame(
                    f"The function of {flow.name!r} returned {kind}, not a DataFrame of Spark.",
                    where=flow.location,
                    remedy="End it with `return` and a DataFrame; spark.createDataFrame(...) makes one of rows, also of pandas.",
                )
            return frame if flow.replace_where is None or whole else in_slice(frame, flow)

    @contextmanager
    def calling(self, flow: Flow, *, actions: bool = False) -> Iterator[None]:
        """Record inside the block what a flow's function reads, and name what it raises. ``actions``: it may run queries."""
        with (
            self._lock,
            nullcontext() if actions else no_actions(flow.target),
            registering(self._registry),
            user_errors(flow, self.labels, live=self.live),
        ):
            self._reads.append([])
            self._flows.append(flow)
            try:
                yield
            finally:
                self._flows.pop()
                self.reads_of[flow.name] = list(dict.fromkeys(self._reads.pop()))

    def settings(
        self, flow: Flow, overrides: Mapping[str, str] | None = None
    ) -> AbstractContextManager[None]:
        """Apply the Spark settings of a flow and of its views inside the block; no other flow has any in force meanwhile.

        ``overrides``: settings that override the flow's own; for a stream, which takes the settings that are in force
        when it starts, at least an empty dict.
        """
        return self._gate.in_force(self.settings_of(flow), overrides)

    def setting(self, name: str) -> str | None:
        """A setting of the session, whatever flow has settings of its own in it just now."""
        with self._lock:
            return self.session.conf.get(name, None)

    def settings_of(self, flow: Flow) -> Mapping[str, str]:
        """The flow's Spark settings and those of the views that it read; raises UnsupportedArgument where they differ."""
        return query_settings(flow, self._view_flows(), self.reads_of)

    def views_in(self, flow: Flow) -> list[Flow]:
        """The temporary views that are a part of a flow's query."""
        return list(views_in(flow.name, {view.name: view for view in self._view_flows()}, self.reads_of))

    def _view_flows(self) -> list[Flow]:
        kinds = {dataset.name: dataset.kind for dataset in self._registry.datasets()}
        return [f for f in self._registry.flows() if kinds.get(f.name) is DatasetKind.TEMPORARY_VIEW]

    def schema_of(self, dataset: Dataset) -> StructType:
        """The columns of a dataset; evaluates its flows where that was not done yet."""
        cached = self._schemas.get(dataset.name)
        if cached is not None:
            return cached
        with self._entered(dataset):
            frames = analysed_frames(self, dataset)
            self._kinds[dataset.name] = resolved_kind(dataset, frames)
            for flow, frame in frames:
                if frame.isStreaming:
                    check_stream(frame, flow)
                check_expectations(frame, dataset.expectations, dataset.name)
                if frame.isStreaming and dataset.written:
                    mode = self.output_modes[flow.name] = output_mode(frame, flow, dataset)
                    check_alone(flow, mode, dataset, len(frames))
                check_judged(dataset, self._kinds[dataset.name], flow, self.output_mode_of(flow))
                if dataset.sink is not None:
                    check_sink_rows(frame, flow, dataset.sink)
                self.frames[flow.name] = frame
            declared = plain_schema(dataset.schema, dataset.location)
            schema = merged_schema(dataset, [(f, self._written(f, frame)) for f, frame in frames], declared)
            check_cluster_statistics(dataset, schema, self.setting, self.table_path)
            self._schemas[dataset.name] = schema
        return self._schemas[dataset.name]

    def output_mode_of(self, flow: Flow) -> OutputMode:
        """How a flow's rows reach its target: of a stream as its plan decides, else as declared."""
        return self.output_modes.get(flow.name, OutputMode(flow.declared_output))

    def _written(self, flow: Flow, frame: DataFrame) -> StructType:
        """The columns that a flow gives to its target."""
        changes = self.changes.get(flow.name)
        return frame.schema if changes is None else changes.target_schema

    def table_schema(self, dataset: Dataset) -> StructType:
        """The columns as the table is made with them: of a given schema with NOT NULL, comments and computed columns."""
        declared = plain_schema(dataset.schema, dataset.location)
        return self.schema_of(dataset) if declared is None else declared

    def kind_of(self, dataset: Dataset) -> DatasetKind:
        """The kind of the dataset; known after ``schema_of``."""
        return self._kinds.get(dataset.name, dataset.kind)

    def view_frame(self, dataset: Dataset) -> DataFrame:
        """A temporary view's frame, with its expectations, as part of the query that reads it."""
        flow = self.flows_of(dataset)[0]
        with self._entered(dataset):
            frame = self.evaluate(flow)
        if dataset.name not in self._schemas:
            check_expectations(frame, dataset.expectations, dataset.name)
        return apply_expectations(frame, dataset.expectations, view_observation(dataset.name))

    def table_path(self, dataset: Dataset) -> Place:
        """The folder of a dataset's Delta table; raises KeyError where it has none (a view, a sink of another kind)."""
        location = dataset.table_location(self.pipeline_id)
        if location is None:
            raise KeyError(dataset.name)
        return located(self._warehouse, location)

    def find_table(self, name: str) -> Place | None:
        """The folder of a table by its name: of the pipeline's datasets, or else of the warehouse; None for any other."""
        dataset = self.names.dataset(name)
        if dataset is not None and dataset.table_location(self.pipeline_id) is not None:
            return self.table_path(dataset)
        return self.names.in_warehouse(name)

    def forget(self) -> None:
        """Forget what was learned: the registry has changed."""
        for cache in (
            self._schemas,
            self._kinds,
            self.reads_of,
            self.frames,
            self.output_modes,
            self.changes,
        ):
            cache.clear()

    # -- names ---------------------------------------------------------------------------------------------------
    def _knows(self, parts: list[str]) -> bool:
        name = ".".join(parts)
        substitutes = self.session.substitutes
        if substitutes is not None and substitutes.has_table(name):
            return True
        names = self.names
        return any(
            lookup(name) is not None
            for lookup in (names.dataset, names.quarantined_dataset, names.in_warehouse)
        )

    def _empty_quarantine(self, name: str) -> DataFrame | None:
        """An empty quarantine where there is no table yet; its readers run after the table whose rows it keeps."""
        dataset = self.names.quarantined_dataset(name)
        if dataset is None or not self._reads or dataset.name in self._stack:
            return None
        self._record(dataset, name)
        if self.names.in_warehouse(name) is not None:
            return None
        empty = empty_quarantine(self.session, self.schema_of(dataset))
        if self.live:
            return empty
        # Its table represents it among the reader's sources: a view is recomputed when that changes.
        reader = DataFrameReader(self.session).schema(empty.schema)
        return reader.format("parquet").load(self._stub("batch", dataset))

    def _record(self, dataset: Dataset, name: str) -> None:
        if not self._reads:
            raise read_at_import(name, None)
        self._reads[-1].append(dataset.name)

    def _stub(self, kind: str, dataset: Dataset) -> str:
        folder = self.stubs / kind / dataset.name
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    # -- order and errors ----------------------------------------------------------------------------------------

    @contextmanager
    def _entered(self, dataset: Dataset) -> Iterator[None]:
        if dataset.name in self._stack:
            circle = [*self._stack[self._stack.index(dataset.name) :], dataset.name]
            raise DatasetCycle(
                f"Datasets read each other in a circle: {' -> '.join(circle)}.",
                where=dataset.location,
                remedy="Break the circle: let one of them read a source instead.",
            )
        if not self.flows_of(dataset):
            raise unfilled(dataset)
        self._stack.append(dataset.name)
        try:
            yield
        finally:
            self._stack.pop()
