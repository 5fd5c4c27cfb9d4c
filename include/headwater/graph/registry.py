"""Where the decorators of a pipeline's sources record what they declare. Recording runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Protocol

from headwater.definitions.bound_names import changed_names, outer_values
from headwater.definitions.dataset import Dataset
from headwater.definitions.dataset_name import DatasetName
from headwater.definitions.event_hook import EventHook
from headwater.definitions.expectation import Expectation
from headwater.definitions.flow import Flow
from headwater.definitions.names import check_dotted_name
from headwater.definitions.platform_settings import IDLE_PROPERTIES
from headwater.definitions.source_location import SourceLocation
from headwater.errors import DuplicateDataset, InvalidExpectation
from headwater.graph.change_targets import apart_from_changes, check_only_changes, hydrated

CHANGE_FEED = "delta.enableChangeDataFeed"


class PipelineReader(Protocol):
    """What ``dp.read`` and ``dp.read_stream`` need of the engine."""

    def read_dataset(self, name: str) -> Any:
        """A batch DataFrame of a dataset or table."""

    def read_dataset_stream(self, name: str) -> Any:
        """A streaming DataFrame of a dataset or table."""


@dataclass(frozen=True)
class IdleClause:
    """A part of a declaration that is accepted and has no effect here."""

    dataset: str
    clause: str
    reason: str
    location: SourceLocation


@dataclass(frozen=True)
class DeclaredSchedule:
    """When a statement wants its dataset updated: a cron text in UTC."""

    dataset: str
    cron: str
    location: SourceLocation


class WaitingDeclaration:
    """One that is made when all sources are loaded, unless it is taken back before."""

    def __init__(self, declare: Callable[[], None]) -> None:
        self.declare: Callable[[], None] | None = declare

    def cancel(self) -> None:
        """Take it back."""
        self.declare = None


class Registry:
    """The datasets and flows of one pipeline, in the order they were declared."""

    def __init__(self, *, catalog: str | None = None, schema: str = "default") -> None:
        self.catalog = catalog
        self.schema = schema
        self.reader: PipelineReader | None = None
        self.idle_clauses: list[IdleClause] = []
        self.schedules: list[DeclaredSchedule] = []
        self._datasets: dict[str, Dataset] = {}
        self._functions: dict[str, Callable[[], Any]] = {}
        self._flows: dict[str, Flow] = {}
        self._expectations: dict[int, list[Expectation]] = {}
        self._hooks: dict[str, EventHook] = {}
        self._outer_values: dict[str, dict[str, object]] = {}
        self._waiting: list[WaitingDeclaration] = []
        self._kept: list[Callable[..., Any]] = []

    def dataset_name(self, text: str, where: SourceLocation | None = None) -> DatasetName:
        """Read a name with the pipeline's defaults; raises InvalidName."""
        return DatasetName.parse(text, catalog=self.catalog, schema=self.schema, where=where)

    def canonical(self, text: str, where: SourceLocation | None = None) -> str:
        """The one spelling under which a dataset is known in the graph."""
        return self.dataset_name(text, where).display(catalog=self.catalog, schema=self.schema)

    def add_dataset(
        self,
        dataset: Dataset,
        function: Callable[[], Any] | None = None,
        *,
        idle: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Record a dataset; raises DuplicateDataset where the name is taken (names are case-insensitive).

        ``idle``: what its declaration says without effect here, with the reason.
        """
        taken = next(
            (other for name, other in self._datasets.items() if name.lower() == dataset.name.lower()), None
        )
        if taken is not None:
            raise _defined_twice(dataset, taken)
        self._datasets[dataset.name] = self._without_idle_properties(dataset)
        self._note_idle(dataset, idle)
        if function is not None:
            self._functions[dataset.name] = function

    def _without_idle_properties(self, dataset: Dataset) -> Dataset:
        """The dataset without table properties that Delta would refuse and that have no effect; they are noted."""
        reasons = {key: IDLE_PROPERTIES.get(key.lower()) for key in dataset.table_properties}
        idle = {key: reason for key, reason in reasons.items() if reason is not None}
        self._note_idle(dataset, idle)
        kept = {key: value for key, value in dataset.table_properties.items() if key not in idle}
        return replace(dataset, table_properties=kept) if idle else dataset

    def _note_idle(self, dataset: Dataset, idle: Mapping[str, str]) -> None:
        if dataset.location is not None:
            for clause, reason in idle.items():
                self.idle_clauses.append(IdleClause(dataset.name, clause, reason, dataset.location))

    def add_flow(self, flow: Flow) -> None:
        """Record a flow; raises DuplicateDataset where another flow has its name."""
        check_dotted_name(flow.name, "flow", flow.location)
        self._outer_values.setdefault(flow.name, outer_values(flow.function))
        taken = self._flows.get(flow.name)
        if taken is not None:
            apart = apart_from_changes(flow, taken)
            if apart is not None:
                self._flows[flow.name] = taken if flow.function is apart.function else flow
                self._flows[apart.name] = apart
                return
            for one, other in ((flow, taken), (taken, flow)):
                check_only_changes(one, [other])
            raise DuplicateDataset(
                f"The flow {flow.name!r} is defined twice.",
                where=f"{flow.location}, and before at {taken.location}",
                remedy=f"Give each flow its own name: {_named(flow)}.",
            )
        self._flows[flow.name] = flow

    def declare_later(self, declare: Callable[[], None]) -> WaitingDeclaration:
        """Have ``declare`` called when all sources are loaded, with this registry as the active one."""
        self._waiting.append(WaitingDeclaration(declare))
        return self._waiting[-1]

    def declare_waiting(self) -> None:
        """All sources are loaded: make the declarations that waited for it and were not taken back."""
        waiting, self._waiting = self._waiting, []
        with registering(self):
            for one in waiting:
                if one.declare is not None:
                    one.declare()

    def add_schedule(self, dataset: str, cron: str, where: SourceLocation) -> None:
        """Record when a dataset wants its updates."""
        self.schedules.append(DeclaredSchedule(dataset, cron, where))

    def add_hook(self, hook: EventHook) -> None:
        """Record an event hook; raises DuplicateDataset where another has its name."""
        taken = self._hooks.get(hook.name)
        if taken is not None:
            raise DuplicateDataset(
                f"The event hook {hook.name!r} is defined twice.",
                where=f"{hook.location}, and before at {taken.location}",
                remedy="Rename one of the functions: the event log identifies hooks by their names.",
            )
        self._hooks[hook.name] = hook

    def hooks(self) -> list[EventHook]:
        """All event hooks, in the order they were declared."""
        return list(self._hooks.values())

    def add_expectation(self, function: Callable[..., Any], expectation: Expectation) -> None:
        """Record an expectation on the dataset that ``function`` defines, declared before or after it."""
        rules = self._expectations.setdefault(id(function), [])
        if any(rule.name == expectation.name for rule in rules):
            raise InvalidExpectation(
                f"The expectation {expectation.name!r} is given twice on one dataset.",
                where=expectation.location,
                remedy="Give each rule its own name: its counts are kept under it.",
            )
        # Decorators are applied from the bottom up; a reader counts from the top.
        rules.insert(0, expectation)
        self._kept.append(function)

    def datasets(self) -> list[Dataset]:
        """All datasets with their expectations."""
        changing = {flow.target for flow in self._flows.values() if flow.changes or flow.snapshots}
        return [
            _with_change_feed(dataset) if dataset.name in changing else dataset
            for dataset in map(self._with_rules, self._datasets.values())
        ]

    def flows(self) -> list[Flow]:
        """All flows, with the Spark settings that their targets have for them."""
        return [self._with_settings(flow) for flow in hydrated(self._flows.values())]

    def changed_variables(self, flow: Flow) -> list[str]:
        """The variables that a flow's function reads and that have another value now than when it was declared."""
        return changed_names(flow.function, self._outer_values.get(flow.name, {}))

    def keep(self, datasets: Collection[Dataset]) -> None:
        """Forget every dataset but these, and every flow into another one; their declarations are replaced by those given here."""
        self._datasets = {dataset.name: dataset for dataset in datasets}
        self._functions, self._expectations = {}, {}
        self._flows = {name: flow for name, flow in self._flows.items() if flow.target in self._datasets}

    def check_expectations(self) -> None:
        """Raise InvalidExpectation for one on anything but a table or view: it would have no effect."""
        owners = {id(function) for function in self._functions.values()}
        targets = {id(flow.function): flow.target for flow in self._flows.values()}
        for function in self._kept:
            if id(function) in owners or id(function) not in self._expectations:
                continue
            rule = self._expectations[id(function)][0]
            target = targets.get(id(function))
            table = self._datasets.get(target) if target else None
            remedy = f'Give it to the table: dp.create_streaming_table("{target}", expect_all={{...}}).'
            if table is None or table.sink is not None:
                remedy = "Put it on the table or view that the flow reads; sinks take no expectations."
            raise InvalidExpectation(
                f"The expectation {rule.name!r} stands on {function.__name__!r}, which is neither a table nor a view.",
                where=rule.location,
                remedy=remedy,
            )

    def _with_settings(self, flow: Flow) -> Flow:
        target = self._datasets.get(flow.target)
        if target is None or not target.spark_conf:
            return flow
        return replace(flow, spark_conf={**target.spark_conf, **flow.spark_conf})

    def _with_rules(self, dataset: Dataset) -> Dataset:
        function = self._functions.get(dataset.name)
        rules = self._expectations.get(id(function), []) if function is not None else []
        return replace(dataset, expectations=(*dataset.expectations, *rules)) if rules else dataset


def _with_change_feed(dataset: Dataset) -> Dataset:
    # Rows of a target of AUTO CDC change; readers follow its change feed, unless the user turned that off.
    return replace(dataset, table_properties={CHANGE_FEED: "true", **dataset.table_properties})


_ACTIVE: ContextVar[Registry | None] = ContextVar("headwater_registry", default=None)


def active_registry() -> Registry | None:
    """The registry that declarations go to; None outside a pipeline, where declaring does nothing."""
    return _ACTIVE.get()


@contextmanager
def registering(registry: Registry) -> Iterator[Registry]:
    """Send declarations made inside the block to ``registry``."""
    token = _ACTIVE.set(registry)
    try:
        yield registry
    finally:
        _ACTIVE.reset(token)


def _named(flow: Flow) -> str:
    """How a flow like this one is given a name, in its language."""
    if flow.location is not None and flow.location.in_sql:
        return f"CREATE FLOW name AS {'INSERT INTO' if flow.changes is None else 'AUTO CDC INTO'} ..."
    if flow.changes is not None:
        return "dp.create_auto_cdc_flow(..., name=...)"
    return "dp.append_flow(target=..., name=...)"


def _defined_twice(dataset: Dataset, taken: Dataset) -> DuplicateDataset:
    what = f"The dataset {dataset.name!r} is defined twice"
    if dataset.location == taken.location:
        return DuplicateDataset(
            f"{what}: its line is run twice.",
            where=dataset.location,
            remedy="In a loop give each turn's dataset a name of its own. A source that another one imports is run as a source and as "
            "a module: put what both need into a module that `libraries` leaves out, outside of their folder.",
        )
    return DuplicateDataset(
        f"{what}.",
        where=f"{dataset.location}, and before at {taken.location}",
        remedy="Rename one of them; to fill one table from several queries use dp.append_flow.",
    )
