"""By which columns of its result a view's changed part is named: those that changed rows can be followed to.

Decision 0169.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from headwater_spark.views.key_conditions import usable
from headwater_spark.views.plan_description import Node
from headwater_spark.views.recipes import rows_read
from headwater_spark.views.touched_rows import Tracing
from headwater_spark.views.traced_answers import Answer, NotTraceable

# More columns than this narrow the part hardly further.
MAX_COLUMNS = 4
# Types of which a part has few values, first; then all others in the order of the result.
_RANKS = {"date": 2, "boolean": 4}


@dataclass(frozen=True)
class KeyColumns:
    """The columns of one refresh.

    Args:
        root: the query's plan.
        changed: the numbers of the leaves whose rows changed.
        types: of the result's columns, as Spark prints them; ``names``: theirs.
        partitions: the columns that the view is partitioned by, in lower case; ``sorted_by``: those that its files are sorted by.
    """

    root: Node
    changed: Sequence[int]
    types: Sequence[str]
    names: Sequence[str]
    partitions: Collection[str] = ()
    sorted_by: Collection[str] = ()

    def possible(self) -> list[int]:
        """The places of the columns by which each changed source's rows can be followed to the result."""
        return [place for place, kind in enumerate(self.types) if usable(kind) and self.traced([place])]

    def traced(self, places: Sequence[int]) -> list[Answer]:
        """For each changed leaf the rows that it touches, with these columns together; empty where one can't be followed."""
        wanted = frozenset(self.root.output[place] for place in places)
        try:
            return [self._tracing.touched(self.root, leaf, wanted, frozenset()) for leaf in self.changed]
        except NotTraceable:
            return []

    def chosen(self) -> list[int]:
        """The columns to go by: those that files are sorted by first, then those that few values are likely in.

        Another column is taken only where it can be followed together with the others, and no more rows are read for it.
        """
        ordered = sorted(self.possible(), key=self._rank)
        inside = [place for place in ordered if self.names[place].lower() in self.partitions]
        chosen = ordered[:1]
        answers = self.traced(chosen)
        for place in (inside or ordered)[1:]:
            more = self.traced([*chosen, place])
            if more and len(chosen) < MAX_COLUMNS and _reads(more) <= _reads(answers):
                chosen.append(place)
        return chosen

    @cached_property
    def _tracing(self) -> Tracing:
        return Tracing(frozenset(self.changed))

    @property
    def _rank(self) -> Callable[[int], tuple[int, int]]:
        def rank(place: int) -> tuple[int, int]:
            name = self.names[place].lower()
            if name in self.partitions:
                return 0, place
            return 1 if name in self.sorted_by else _RANKS.get(self.types[place], 3), place

        return rank


def _reads(answers: Sequence[Answer]) -> int:
    return sum(rows_read(answer.recipe) for answer in answers)
