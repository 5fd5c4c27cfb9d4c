"""The part of a view that is recomputed, read from the files of its sources that may have rows of it, and from no others.

Which values of which columns a source is asked for is what Spark's optimizer makes of the condition: it is optimized once
over tables without files, and planned over those that remain. Delta would look for files by a Spark job for each table, and by
the range that scattered values span.

Decision 0170.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from headwater.delta_log.file_bounds import TableFile, table_files
from headwater_spark.views.leaf_files import as_add, rows_of_files
from headwater_spark.views.plan_surgery import DeltaLeaf, ViewPlan
from headwater_spark.views.pushed_conditions import pushed_conditions
from headwater_spark.views.recipes import over_leaves

# More files than this are left to Delta: each is named to it one by one.
MAX_FILES = 500


@dataclass(frozen=True)
class NeededRows:
    """Rows, and the bytes of the files that they are ``read`` from, of those of all ``sources``."""

    rows: DataFrame
    read: int
    sources: int


@dataclass(frozen=True)
class NeededFiles:
    """The files of one query.

    Args:
        leaves: the tables that it reads, by their number in the plan.
        names: of the result's columns.
    """

    plan: ViewPlan
    leaves: Mapping[int, DeltaLeaf]
    names: Sequence[str]

    def chosen(self, condition: str) -> NeededRows:
        """The rows of the query's result that meet a condition (SQL over its columns), and what is read for them."""
        conditions = pushed_conditions(
            self._over(dict.fromkeys(self.leaves, ()), condition)._jdf.queryExecution().optimizedPlan()  # noqa: SLF001
        )
        needed, read, every = {}, 0, 0
        for number, leaf in self.leaves.items():
            sought = conditions.get(str(number), ())
            there = table_files(leaf.folder, leaf.version, {one.column for one in sought})
            if there is None:
                continue  # Delta looks for them; nothing is known of how many there are
            files = [file for file in there if file.may_have(sought)]
            read, every = read + _bytes(files), every + _bytes(there)
            if len(files) <= MAX_FILES:
                needed[number] = files
        return NeededRows(self._over(needed, condition), read, every)

    def _over(self, files: Mapping[int, Sequence[TableFile]], condition: str) -> DataFrame:
        recipe = over_leaves(self.plan.root, files)
        rows = self.plan.frame_of(
            recipe,
            self.plan.root.output,
            lambda number, _: rows_of_files(
                self.plan.working, self.leaves[number], map(as_add, files[number]), str(number)
            ),
        )
        return rows.toDF(*self.names).where(condition)


def _bytes(files: Sequence[TableFile]) -> int:
    return sum(file.bytes for file in files)
