"""From the text of a SQL source to what it declares, with the settings and the names that are in force at each statement."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headwater.definitions.flow_settings import wrong_setting
from headwater.definitions.platform_settings import SettingPlace, is_platform_setting, wrong_place
from headwater.errors import MissingValue, UnsupportedArgument
from headwater.sql_sources.grammar import read_statement
from headwater.sql_sources.source import SqlSource
from headwater.sql_sources.splitting import StatementText, statements_in
from headwater.sql_sources.statements import (
    DatasetStatement,
    FlowStatement,
    SetStatement,
    UseStatement,
)
from headwater.sql_sources.values import FilledStatement, Value, Values, filled

_QUOTED = re.compile(r"(['\"])(.*)\1", re.DOTALL)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][\w.]*)\}")


@dataclass(frozen=True)
class Namespace:
    """What USE says of names that lack a part; None: as the pipeline has it."""

    catalog: str | None = None
    schema: str | None = None

    def qualified(self, name: str, schema: str) -> str:
        """A name with the parts that USE gives it. ``schema``: the pipeline's own."""
        parts = name.split(".")
        if len(parts) > 1 and parts[0].upper() == "LIVE":
            parts = parts[1:]
        if len(parts) == 1 and (self.schema or self.catalog):
            parts = [self.schema or schema, *parts]
        if len(parts) == 2 and self.catalog:
            parts = [self.catalog, *parts]
        return ".".join(parts)


@dataclass(frozen=True)
class Declaration:
    """A statement that declares something. ``settings``: those that SET gives to the flows of all that follow it."""

    statement: DatasetStatement | FlowStatement
    settings: Mapping[str, str]
    namespace: Namespace


def read_source(source: SqlSource, values: Values) -> Iterator[Declaration]:
    """The declarations of a SQL source, in order.

    Args:
        source: the text.
        values: for ``${name}`` and ``:name``; ``SET name = value`` in the source comes first.

    Raises:
        SqlNotUnderstood, StatementNotAllowed, UnsupportedArgument, MissingValue: with file, line and column.
    """
    reading = _Reading(values)
    for statement in statements_in(source):
        declaration = reading.read(statement)
        if declaration is not None:
            yield declaration


class _Reading:
    def __init__(self, values: Values) -> None:
        self._variables: dict[str, str] = {}
        self._settings: dict[str, str] = {}
        self._namespace = Namespace()
        self._outer = values
        self._values = Values(self._lookup, values.names)

    def _lookup(self, name: str) -> Value:
        return self._variables[name] if name in self._variables else self._outer.lookup(name)

    def read(self, text: StatementText) -> Declaration | None:
        if text.tokens[0].text.upper() == "SET":
            # Its value is text to its end, and no SQL.
            statement = read_statement(FilledStatement(text, text.text, ()))
        else:
            statement = read_statement(filled(text, self._values))
        if isinstance(statement, SetStatement):
            self._set(statement)
        elif isinstance(statement, UseStatement):
            # Another catalog has schemas of its own: USE CATALOG takes a former USE SCHEMA back.
            self._namespace = Namespace(statement.catalog or self._namespace.catalog, statement.schema)
        else:
            return Declaration(statement, dict(self._settings), self._namespace)
        return None

    def _set(self, statement: SetStatement) -> None:
        if statement.value is None:
            return
        value = _VARIABLE.sub(lambda match: self._text(match[1], statement), statement.value)
        self._variables[statement.key] = value
        if not (is_platform_setting(statement.key) or statement.key.startswith("spark.")):
            return
        quoted = _QUOTED.fullmatch(value)
        setting = {statement.key: quoted[2] if quoted else value}
        wrong = wrong_setting(setting, of_flow=True)
        place = wrong_place(setting, SettingPlace.FLOW)
        if wrong is not None or place is not None:
            raise UnsupportedArgument(
                f"SET: {wrong or (place.what if place else '')}.",
                where=statement.place,
                remedy=place.remedy if place else "Correct its value, or leave it out.",
            )
        self._settings.update(setting)

    def _text(self, name: str, statement: SetStatement) -> str:
        try:
            return str(self._lookup(name))
        except KeyError:
            raise MissingValue(
                f"SET names ${{{name}}}, and {name} has no value.",
                where=statement.place,
                remedy=f"Give it one: `{name}: ...` under `configuration` in pipeline.yml, or --param {name}=...",
            ) from None
