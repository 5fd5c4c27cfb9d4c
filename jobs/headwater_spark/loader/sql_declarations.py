"""From the statements of a SQL source to the same declarations that the functions of ``headwater.pipelines`` make.

Decision 0159.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException

from headwater import pipelines as dp
from headwater.declarations.datasets import empty_streaming_table
from headwater.definitions.dataset import DatasetKind
from headwater.definitions.expectation import ViolationAction
from headwater.definitions.platform_settings import is_platform_setting
from headwater.definitions.source_location import declared_at
from headwater.errors import InvalidExpectation
from headwater.graph.registry import IdleClause, Registry
from headwater.sql_sources.reading import Declaration, read_source
from headwater.sql_sources.replaced_parts import with_parts
from headwater.sql_sources.source import Fragment, SqlSource
from headwater.sql_sources.statements import Changes, DatasetStatement, FlowStatement, Rule
from headwater.sql_sources.values import Value, Values
from headwater_spark.facade.pipeline_session import PipelineSession
from headwater_spark.loader.sql_query import SqlQuery

_EXPECT = {
    ViolationAction.WARN: dp.expect,
    ViolationAction.DROP: dp.expect_or_drop,
    ViolationAction.QUARANTINE: dp.expect_or_quarantine,
    ViolationAction.FAIL: dp.expect_or_fail,
}
_EXPECT_ALL = {
    ViolationAction.WARN: "expect_all",
    ViolationAction.DROP: "expect_all_or_drop",
    ViolationAction.QUARANTINE: "expect_all_or_quarantine",
    ViolationAction.FAIL: "expect_all_or_fail",
}


def declare_source(
    source: SqlSource, registry: Registry, session: PipelineSession, configuration: Mapping[str, str]
) -> None:
    """Declare what a SQL source declares; ``registry`` must be the active one.

    Raises:
        InvalidPipeline: any of its kinds, with the user's place; nothing was run.
    """
    declarations = read_source(source, values_of(session, configuration))

    def named(declaration: Declaration, name: str) -> str:
        return registry.canonical(declaration.namespace.qualified(name, registry.schema))

    for declaration in with_parts(declarations, named):
        _Declaring(declaration, registry, session).declare()


def values_of(session: PipelineSession, configuration: Mapping[str, str]) -> Values:
    """The values of ``${name}`` and ``:name``: the pipeline's configuration and parameters, then what sources set."""

    def lookup(name: str) -> Value:
        if name in configuration:
            return configuration[name]
        try:
            return str(session.conf.get(name))
        except PySparkException:
            raise KeyError(name) from None

    return Values(lookup, tuple(configuration))


@dataclass(frozen=True)
class _Declaring:
    """One statement on its way into the registry."""

    declaration: Declaration
    registry: Registry
    session: PipelineSession

    def declare(self) -> None:
        statement = self.declaration.statement
        with declared_at(statement.place.location):
            if isinstance(statement, FlowStatement):
                self._flow(statement)
                return
            name = self.registry.canonical(self._named(statement.name))
            for clause, reason in statement.idle.items():
                self.registry.idle_clauses.append(IdleClause(name, clause, reason, statement.place.location))
            if statement.schedule is not None:
                self.registry.add_schedule(name, statement.schedule, statement.place.location)
            if statement.query is None or statement.once:
                self._empty_table(statement)
            else:
                self._dataset(statement, statement.query)

    def _dataset(self, statement: DatasetStatement, query: Fragment) -> None:
        name = self._named(statement.name)
        function = SqlQuery(self.session, name, query, self._named, statement.labels)
        for rule in reversed(statement.rules):
            with declared_at(rule.place.location):
                _EXPECT[rule.action](rule.name, rule.condition)(function)
        if statement.kind is DatasetKind.TEMPORARY_VIEW:
            settings = {key: value for key, value in self._settings.items() if not is_platform_setting(key)}
            dp.temporary_view(function, name=name, comment=statement.comment, spark_conf=settings)
            return
        by_rows = {"replace_where", "replace_using"} & set(statement.stored)
        is_table = bool(by_rows) and statement.kind is DatasetKind.STREAMING_TABLE
        face: Any = dp.table if is_table else getattr(dp, statement.kind.value)
        face(
            function, name=name, comment=statement.comment, schema=statement.schema, spark_conf=self._settings,
            **statement.stored,
        )  # fmt: skip

    def _empty_table(self, statement: DatasetStatement) -> None:
        name = self._named(statement.name)
        rules: dict[str, dict[str, str]] = {}
        for rule in _named_once(statement.rules):
            rules.setdefault(_EXPECT_ALL[rule.action], {})[rule.name] = rule.condition
        clauses: dict[str, Any] = {**statement.stored, **rules}
        empty_streaming_table(name, comment=statement.comment, schema=statement.schema, **clauses)
        if statement.changes is not None:
            self._changes(statement.changes, name, None)
        if statement.query is not None:
            function = SqlQuery(self.session, name, statement.query, self._named, statement.labels)
            dp.append_flow(function, target=name, name=name, once=True, spark_conf=self._settings)

    def _flow(self, statement: FlowStatement) -> None:
        target = self._named(statement.target)
        if statement.changes is not None:
            self._changes(statement.changes, target, statement.name)
            return
        assert statement.query is not None
        name = statement.name or target
        function = SqlQuery(self.session, name, statement.query, self._named)
        if statement.replace_using:
            dp.replace_flow(
                function, target=target, name=name, comment=statement.comment, spark_conf=self._settings,
                replace_using=statement.replace_using, sequence_by=statement.sequence_by,
            )  # fmt: skip
            return
        dp.append_flow(
            function, target=target, name=name, once=statement.once, comment=statement.comment, spark_conf=self._settings
        )  # fmt: skip

    def _changes(self, changes: Changes, target: str, flow: str | None) -> None:
        source = changes.source
        if isinstance(source, Fragment):
            # AUTO CDC reads by name; a query gets one.
            view = f"{flow or target}_changes"
            dp.temporary_view(SqlQuery(self.session, view, source, self._named), name=view)
        else:
            view = self._named(source)
        arguments: dict[str, Any] = dict(changes.arguments)
        dp.create_auto_cdc_flow(
            target,
            view,
            list(changes.keys),
            name=flow,
            once=changes.batch,
            spark_conf=self._settings,
            **arguments,
        )

    def _named(self, name: str) -> str:
        return self.declaration.namespace.qualified(name, self.registry.schema)

    @property
    def _settings(self) -> Mapping[str, str]:
        return self.declaration.settings


def _named_once(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    for position, rule in enumerate(rules):
        if any(rule.name == other.name for other in rules[:position]):
            raise InvalidExpectation(
                f"The expectation {rule.name!r} is given twice on one dataset.",
                where=rule.place,
                remedy="Give each rule its own name: its counts are kept under it.",
            )
    return rules
