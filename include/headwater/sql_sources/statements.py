"""What the statements of SQL sources say, each as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.expectation import ViolationAction
from headwater.sql_sources.source import Fragment, Place


@dataclass(frozen=True)
class Rule:
    """``CONSTRAINT name EXPECT (condition) [ON VIOLATION ...]``."""

    name: str
    condition: str
    action: ViolationAction
    place: Place


@dataclass(frozen=True)
class ColumnLabel:
    """A column that is only named: the query's column at its position, with a description."""

    name: str
    comment: str | None = None


@dataclass(frozen=True)
class Changes:
    """The clauses of AUTO CDC. ``source``: a dataset's or table's name, or a query. ``batch``: it is read once, whole."""

    source: str | Fragment
    keys: tuple[str, ...] = ()
    batch: bool = False
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class DatasetStatement:
    """``CREATE ... STREAMING TABLE``, ``MATERIALIZED VIEW``, ``TEMPORARY VIEW`` and their older spellings.

    ``schema``: DDL text of columns with types. ``labels``: columns without. ``once``: the query is a batch that is appended one
    time. ``idle``: clauses without effect here, with the reason. ``schedule``: a cron text. ``stored``: the clauses of a table by the names that the Python face has for them.
    """

    name: str
    kind: DatasetKind
    place: Place
    query: Fragment | None = None
    schema: str | None = None
    labels: tuple[ColumnLabel, ...] = ()
    rules: tuple[Rule, ...] = ()
    comment: str | None = None
    stored: Mapping[str, object] = field(default_factory=dict)
    once: bool = False
    changes: Changes | None = None
    idle: Mapping[str, str] = field(default_factory=dict)
    schedule: str | None = None


@dataclass(frozen=True)
class FlowStatement:
    """``CREATE FLOW ... AS INSERT INTO`` (with a query) or ``AS AUTO CDC INTO``; ``name`` is None where none is given.

    ``replace_where``: a condition. ``replace_using``: the columns of a key, with ``sequence_by``.
    """

    name: str | None
    target: str
    place: Place
    query: Fragment | None = None
    once: bool = False
    comment: str | None = None
    changes: Changes | None = None
    replace_where: str | None = None
    replace_using: Sequence[str] = ()
    sequence_by: str | None = None


@dataclass(frozen=True)
class SetStatement:
    """``SET key = value``; the value as it is written, None where the statement only shows it."""

    key: str
    value: str | None
    place: Place


@dataclass(frozen=True)
class UseStatement:
    """``USE CATALOG``, ``USE SCHEMA`` or ``USE catalog.schema``; what is None stays."""

    catalog: str | None
    schema: str | None


Statement = DatasetStatement | FlowStatement | SetStatement | UseStatement
