"""``CREATE FLOW ... INSERT INTO t BY NAME REPLACE WHERE``: the long form of a table's own ``FLOW REPLACE WHERE``.

Such a flow is the only one of its table, and its query is the table's: both statements become one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from headwater.errors import UnsupportedArgument
from headwater.sql_sources.reading import Declaration
from headwater.sql_sources.statements import DatasetStatement, FlowStatement


def with_parts(
    declarations: Iterable[Declaration], named: Callable[[Declaration, str], str]
) -> list[Declaration]:
    """The declarations, in order, with each flow that replaces a part of its table put into the table's statement.

    Args:
        declarations: of one source.
        named: the dataset that a name in a declaration means.

    Raises:
        UnsupportedArgument: the source has no statement of the table, or the table has another query.
    """
    result: list[Declaration] = []
    flows: list[tuple[Declaration, FlowStatement]] = []
    for declaration in declarations:
        statement = declaration.statement
        if isinstance(statement, FlowStatement) and statement.replace_where is not None:
            flows.append((declaration, statement))
        else:
            result.append(declaration)
    for flow, statement in flows:
        place = next((at for at, one in enumerate(result) if _is_target(one, flow, statement, named)), None)
        if place is None:
            raise UnsupportedArgument(
                f"REPLACE WHERE into {statement.target!r} can't be honoured apart from the statement of that table.",
                where=statement.place,
                remedy="Write both as one: CREATE STREAMING TABLE name FLOW REPLACE WHERE condition BY NAME query.",
            )
        result[place] = _filled(result[place], flow, statement)
    return result


def _is_target(
    declaration: Declaration,
    flow: Declaration,
    statement: FlowStatement,
    named: Callable[[Declaration, str], str],
) -> bool:
    """Whether it declares the flow's target, without a query, under the same USE: names in the query mean what they say there."""
    table = declaration.statement
    if not isinstance(table, DatasetStatement) or table.query is not None or table.changes is not None:
        return False
    return declaration.namespace == flow.namespace and (
        named(declaration, table.name).lower() == named(flow, statement.target).lower()
    )


def _filled(table: Declaration, flow: Declaration, statement: FlowStatement) -> Declaration:
    assert isinstance(table.statement, DatasetStatement)
    filled = replace(
        table.statement,
        query=statement.query,
        stored={**table.statement.stored, "replace_where": statement.replace_where},
    )
    return replace(table, statement=filled, settings=flow.settings)
