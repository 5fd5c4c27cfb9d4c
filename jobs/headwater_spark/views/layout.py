"""How a view that is recomputed lies in its files, so that later refreshes find its parts in few of them.

Groups and windows come out of a shuffle: each file has rows of all days. Sorted within each task by the column that changes are
followed by, and cut into files of so many rows, a part lies in one file of each task. Sorting within tasks needs no shuffle.
Rows that come out one by one, as their source has them, are only cut into files: what lay together stays together.

Decision 0171, decision 0199.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from headwater.incremental.techniques import Technique
from headwater_spark.views.key_columns import KeyColumns
from headwater_spark.views.plan_description import Node
from headwater_spark.views.plan_shape import anchor

# Files this small are still read and written at a gain, and a part takes few of them.
ROWS_PER_FILE = 100_000
# Of rows that are as many as their source's, the more of them lie in a file the larger the source is: some hundred files in all.
BYTES_OF_SOURCE_PER_ROW = 1_000
# A query that says itself how its rows lie.
_PLACED = ("Repartition", "RepartitionByExpression", "RebalancePartitions")
# Below them a query's own order is kept: rows come out as their source has them, or as ORDER BY says.
_SHUFFLED = (Technique.GENERIC_AGGREGATE, Technique.WINDOW_FUNCTION)


@dataclass(frozen=True)
class Layout:
    """How rows are written.

    Args:
        sorted_by: the column that they are sorted by within each task, None: as they come.
        rows_per_file: how many rows a file has at most, None: as many as a task has.
    """

    sorted_by: str | None = None
    rows_per_file: int | None = None


def view_layout(
    root: Node, types: Sequence[str], names: Sequence[str], sizes: Mapping[int, int], chosen: Collection[str]
) -> Layout:
    """How the rows of a recomputed view are written; arguments as of ``sorting_column``."""
    column = sorting_column(root, types, names, sizes, chosen)
    if column is not None:
        return Layout(column, ROWS_PER_FILE)
    as_they_come = anchor(root) is Technique.ROW_BASED and not any(
        node.kind in _PLACED for node in root.walk()
    )
    if chosen or not sizes or not as_they_come:
        return Layout()
    return Layout(None, max(ROWS_PER_FILE, max(sizes.values()) // BYTES_OF_SOURCE_PER_ROW))


def sorting_column(
    root: Node, types: Sequence[str], names: Sequence[str], sizes: Mapping[int, int], chosen: Collection[str]
) -> str | None:
    """The column that the rows of a recomputed view are sorted by, None where they are left as they come.

    Args:
        root: the query's plan.
        types: of the result's columns, as Spark prints them; ``names``: theirs.
        sizes: of each leaf that is a table, in bytes, by its number.
        chosen: the columns that the view is declared to be partitioned or clustered by.
    """
    if (
        chosen
        or not sizes
        or anchor(root) not in _SHUFFLED
        or any(node.kind == "Sort" for node in root.walk())
    ):
        return None
    largest = max(sizes, key=lambda number: (sizes[number], -number))
    places = KeyColumns(root, [largest], types, names).chosen()
    return names[places[0]] if places else None
