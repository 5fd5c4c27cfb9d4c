"""How a view that is recomputed lies in its files, so that later refreshes find its parts in few of them.

Groups and windows come out of a shuffle: each file has rows of all days. Sorted within each task by the column that changes are
followed by, and cut into files of so many rows, a part lies in one file of each task. Sorting within tasks needs no shuffle.

Decision 0171.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from headwater.incremental.techniques import Technique
from headwater_spark.views.key_columns import KeyColumns
from headwater_spark.views.plan_description import Node
from headwater_spark.views.plan_shape import anchor

# Files this small are still read and written at a gain, and a part takes few of them.
ROWS_PER_FILE = 100_000
# Below them a query's own order is kept: rows come out as their source has them, or as ORDER BY says.
_SHUFFLED = (Technique.GENERIC_AGGREGATE, Technique.WINDOW_FUNCTION)


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
