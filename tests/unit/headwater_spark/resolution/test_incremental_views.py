"""What is said of the next refresh before anything is read: by which technique it would follow what changed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import types as T
from tests.unit.headwater_spark.views import plans as p

from headwater.graph.manifest import SourceTechniques
from headwater.incremental.costs import Limits
from headwater.incremental.source_changes import ChangeKind
from headwater.incremental.techniques import Issue, Technique
from headwater_spark.resolution.incremental_views import (
    FollowedTable,
    as_written,
    table_techniques,
    technique_for,
)
from headwater_spark.views.eligibility import leaf_techniques
from headwater_spark.views.plan_description import Node

SALES, STORES = p.leaf(1, 2), p.leaf(11, 12)
COUNTS = p.group(SALES, (1,), p.column(1), p.named(p.aggregate("Count", 2), 21))
# A column of each side, and none that the rows of both can be followed to.
PAIRS = p.project(p.join(SALES, STORES, "Inner", p.above(1, 1)), p.column(2), p.column(12))
ROWS = p.join(SALES, STORES, "Inner", p.equal(1, 11))
APPENDED, CHANGED = ChangeKind.APPENDED, ChangeKind.CHANGED


def foreseen(
    root: Node, changes: dict[str, ChangeKind], *, rules: int = 0, reads: int = 12, separable: bool = True
) -> Any:
    """What is said of a view of whole numbers over tables ``t0``, ``t1``."""
    root = p.numbered(root)
    types = ["bigint"] * len(root.output)
    leaves = tuple(leaf_techniques(root, types))
    tables = [FollowedTable(f"t{place}", (one,)) for place, one in enumerate(leaves)]
    schema = T.StructType([T.StructField(f"c{number}", T.LongType()) for number in root.output])
    dataset: Any = SimpleNamespace(expectations=[object()] * rules)
    limits = Limits(max_changed_reads=reads)
    return technique_for(dataset, root, tables, schema, changes, limits, separable=separable)


@pytest.mark.parametrize(
    ("root", "changes", "rules", "technique"),
    [
        (ROWS, {"t0": APPENDED}, 0, Technique.APPEND_ONLY),
        (ROWS, {"t0": APPENDED, "t1": APPENDED}, 0, Technique.ROW_BASED),
        (COUNTS, {"t0": APPENDED}, 0, Technique.GROUP_AGGREGATE),
        (COUNTS, {"t0": APPENDED}, 1, Technique.GENERIC_AGGREGATE),
        (COUNTS, {"t0": CHANGED}, 0, Technique.GENERIC_AGGREGATE),
        (COUNTS, {"another": CHANGED}, 0, None),
    ],
)
def test_technique(root: Node, changes: dict[str, ChangeKind], rules: int, technique: Technique | None):
    """It is the one that the refresh chooses, which judges whole groups where there are rules."""
    assert foreseen(root, changes, rules=rules) is technique


def test_groups_that_their_partitions_do_not_tell_apart():
    """They are not merged, since the empty text and NULL are one there; new rows are appended all the same."""
    assert foreseen(COUNTS, {"t0": APPENDED}, separable=False) is Technique.GENERIC_AGGREGATE
    assert foreseen(ROWS, {"t0": APPENDED}, separable=False) is Technique.APPEND_ONLY


def test_parts_that_are_whole_partitions():
    """A part found by a partition column that each changed source names is said to be overwritten; what is added is no part."""
    both = [
        SourceTechniques(source=name, rows_added="", rows_changed="", found_by=by)
        for name, by in (("t0", ("k", "d")), ("t1", ("d",)))
    ]

    def name(technique: str, partitions: tuple[str, ...], *changed: str) -> str:
        return as_written(technique, partitions, both, changed)

    assert name("ROW_BASED", ("D",), "t0", "t1") == name("ROW_BASED", ("K",), "t0") == "PARTITION_OVERWRITE"
    assert name("ROW_BASED", ("K",), "t0", "t1") == name("ROW_BASED", (), "t0") == "ROW_BASED"
    assert name("ROW_BASED", ("K",)) == "ROW_BASED"
    assert name("GROUP_AGGREGATE", ("D",), "t0") == "GROUP_AGGREGATE"


def test_sources_that_changed_together():
    """Each alone is followed by its own column; no column follows both."""
    assert foreseen(PAIRS, {"t0": CHANGED}) is Technique.ROW_BASED
    assert foreseen(PAIRS, {"t1": CHANGED}) is Technique.ROW_BASED
    assert isinstance(foreseen(PAIRS, {"t0": CHANGED, "t1": CHANGED}), Issue)


def test_limit_of_reads():
    """A query that reads what changed more often than the limit is said to be recomputed, with the setting's name."""
    assert foreseen(ROWS, {"t0": CHANGED, "t1": CHANGED}, reads=2) is Technique.ROW_BASED
    issue = foreseen(ROWS, {"t0": CHANGED, "t1": CHANGED}, reads=1)
    assert isinstance(issue, Issue)
    assert "2 times, more than headwater.incremental.maxChangedReads=1" in issue.reason


def test_a_table_that_is_read_twice():
    """New rows of it come to both reads: they are not followed as those of one read alone, and it is shown once."""
    root = p.numbered(p.project(ROWS, p.column(1), p.column(2), p.column(12)))
    leaves = tuple(leaf_techniques(root, ["bigint"] * 3))
    schema = T.StructType([T.StructField(name, T.LongType()) for name in "abc"])
    assert [one.grown for one in leaves] == [Technique.APPEND_ONLY] * 2
    shown = table_techniques(root, FollowedTable("t", leaves), schema, Limits())
    assert (shown.rows_added, shown.rows_changed, shown.reads) == ("ROW_BASED", "ROW_BASED", 2)
    assert shown.found_by == ("a", "b", "c")
    over = table_techniques(root, FollowedTable("t", leaves), schema, Limits(max_changed_reads=1))
    assert (over.rows_added, over.rows_changed, over.found_by) == ("recomputed", "recomputed", ())
