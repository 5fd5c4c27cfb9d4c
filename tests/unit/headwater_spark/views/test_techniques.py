"""Which technique is the least work for what changed, where it is right."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import types as T
from tests.unit.headwater_spark.views import plans as p

from headwater.incremental.costs import Limits
from headwater.incremental.source_changes import ChangeKind, SourceChange
from headwater.incremental.techniques import Issue, Technique
from headwater_spark.views import techniques as module
from headwater_spark.views.appended_rows import Merging
from headwater_spark.views.lossy_sums import with_lossy_sums
from headwater_spark.views.plan_description import Node
from headwater_spark.views.recipes import Rows
from headwater_spark.views.techniques import Techniques

SALES, STORES = p.leaf(1, 2), p.leaf(11, 12)
ROWS = p.where(p.project(SALES, p.column(1), p.column(2)), p.above(2, 0))
PAIRS = p.join(SALES, STORES, "Inner", p.equal(1, 11))
COUNTS = p.group(SALES, (1,), p.column(1), p.named(p.aggregate("Count", 2), 21))
SUMS = p.group(SALES, (1,), p.column(1), p.named(p.aggregate("Sum", 2), 21))
APPENDED, CHANGED = ChangeKind.APPENDED, ChangeKind.CHANGED


def techniques(
    root: Node, *kinds: ChangeKind, stored: dict[str, str] | None = None,
    partitions: tuple[str, ...] = (), names: tuple[str, ...] = (), types: tuple[str, ...] = (),
) -> Techniques:  # fmt: skip
    """What can be done for a query whose sources changed like this."""
    root = p.numbered(root)
    leaves = [leaf.number for leaf in root.leaves]
    tables = {
        number: (f"t{place}", SimpleNamespace(folder=Path(f"t{place}")))
        for place, number in enumerate(leaves)
    }
    columns = names or tuple(f"c{number}" for number in root.output)
    known: dict[str, T.DataType] = {"string": T.StringType(), "bigint": T.LongType()}
    given = types or ("bigint",) * len(columns)
    fields = [T.StructField(name, known[kind]) for name, kind in zip(columns, given, strict=True)]
    session = SimpleNamespace(conf=SimpleNamespace(get=lambda name, default=None: default))
    plan = SimpleNamespace(root=root, session=session, frame=SimpleNamespace(schema=T.StructType(fields)))
    query: Any = SimpleNamespace(plan=plan, tables=tables, columns={number: ["c1"] for number in leaves})
    changes = {key: SourceChange(kind, 1, 2) for (key, _), kind in zip(tables.values(), kinds, strict=True)}
    types_stored = stored or dict(zip(columns, given, strict=True))
    return Techniques(query, changes, Path("view"), types_stored, partitions, (), Limits())


@pytest.mark.parametrize(
    ("root", "kinds", "chosen"),
    [
        (ROWS, (APPENDED,), Technique.APPEND_ONLY),
        (ROWS, (CHANGED,), Technique.ROW_BASED),
        (PAIRS, (APPENDED, ChangeKind.UNCHANGED), Technique.APPEND_ONLY),
        (PAIRS, (APPENDED, APPENDED), Technique.ROW_BASED),  # pairs of new rows would come twice
        (COUNTS, (APPENDED,), Technique.GROUP_AGGREGATE),
        (COUNTS, (CHANGED,), Technique.GENERIC_AGGREGATE),
    ],
)
def test_the_technique_for_what_changed(root: Node, kinds: tuple[ChangeKind, ...], chosen: Technique):
    """New rows of one source are taken in by themselves; whatever else changed is looked for."""
    assert techniques(root, *kinds).choose(judged=False) is chosen


def test_a_view_with_rules():
    """Whole groups are judged, not what is added to them."""
    assert techniques(COUNTS, APPENDED).choose(judged=True) is Technique.GENERIC_AGGREGATE
    assert techniques(ROWS, APPENDED).choose(judged=True) is Technique.APPEND_ONLY


@pytest.mark.parametrize(
    ("root", "more", "merged"),
    [
        (SUMS, {}, True),
        (with_lossy_sums(SUMS), {}, False),
        (SUMS, {"stored": {"c1": "bigint", "c21": "decimal(20,0)"}}, False),
        (SUMS, {"names": ("c1", "c1")}, False),
    ],
)
def test_sums_that_are_added_up(root: Node, more: dict[str, Any], merged: bool):
    """Only where the sum of two sums is the sum of all, or fails as that would, in the type that the table has."""
    chosen = techniques(root, APPENDED, **more).choose(judged=False)
    assert (chosen is Technique.GROUP_AGGREGATE) is merged


def test_groups_of_an_empty_text(monkeypatch: pytest.MonkeyPatch):
    """A partition by a text has the empty one as NULL: where the table has such a partition, two groups could not be told apart."""
    more: Any = {"types": ("string", "bigint"), "partitions": ("C1",)}
    for there, merged in ((False, True), (True, False)):
        monkeypatch.setattr(module, "has_null_partition", lambda *_, there=there: there)
        chosen = techniques(COUNTS, APPENDED, **more).choose(judged=False)
        assert (chosen is Technique.GROUP_AGGREGATE) is merged
    how = techniques(COUNTS, APPENDED)._merging(1)
    assert how == [("c1", Merging.KEY), ("c21", Merging.COUNT)]


def test_a_result_that_says_nothing_of_its_rows():
    """Without a column that changed rows can be followed to, there is only the whole view."""
    lone = p.group(SALES, (), p.named(p.aggregate("Max", 2), 21))
    answer = techniques(lone, CHANGED).choose(judged=False)
    assert isinstance(answer, Issue)
    assert answer.lasting


@pytest.mark.parametrize(
    ("known", "nothing"), [([0, 0], True), ([0, 1], False), ([0, None], False), ([None, None], False)]
)
def test_changes_that_come_to_nothing(
    monkeypatch: pytest.MonkeyPatch, known: list[int | None], nothing: bool
):
    """Only where the rows of every source that changed are known, and are none."""
    one = techniques(PAIRS, CHANGED, CHANGED)
    rows = iter(known)

    def look(_: int) -> Any:
        count = next(rows)
        return None if count is None else [0] * count

    monkeypatch.setattr(one, "_known", look)
    assert one.come_to_nothing() is nothing


def test_whose_look_is_shared(monkeypatch: pytest.MonkeyPatch):
    """Where other views ask the same of every source that changed."""
    one = techniques(PAIRS, CHANGED, CHANGED)
    folders = [one._query.tables[number][1].folder for number in one._changed]
    for shared in (folders, folders[:1], []):
        monkeypatch.setattr(one, "_shared", SimpleNamespace(is_shared=shared.__contains__))
        assert one.shares_look is (shared == folders)


@pytest.mark.parametrize(
    ("known", "chosen"),
    [([3, 0], Technique.APPEND_ONLY), ([3, None], Technique.ROW_BASED), ([None, 0], Technique.APPEND_ONLY), ([3, 1], Technique.ROW_BASED)],
)  # fmt: skip
def test_a_source_that_changed_in_other_columns_is_left_out(
    monkeypatch: pytest.MonkeyPatch, known: list[int | None], chosen: Technique
):
    """New rows are appended though another source changed, where the rows of that are known to be equal in what the view uses."""
    one = techniques(PAIRS, APPENDED, CHANGED)
    counts = dict(zip(sorted(one._query.tables), known, strict=True))
    looks = {number: None if count is None else [0] * count for number, count in counts.items()}
    monkeypatch.setattr(one, "_known", looks.get)
    assert one.leave_out_unchanged() is (chosen is Technique.APPEND_ONLY)
    assert one.choose(judged=False) is chosen
    assert one.changed == ({"t0"} if chosen is Technique.APPEND_ONLY else {"t0", "t1"})


@pytest.mark.parametrize(
    ("partitions", "named", "chosen"),
    [
        (("c1",), ["C1"], Technique.PARTITION_OVERWRITE),
        (("c1", "c21"), ["c1"], Technique.PARTITION_OVERWRITE),
        (("c1",), ["c1", "c21"], Technique.GENERIC_AGGREGATE),
        ((), ["c1"], Technique.GENERIC_AGGREGATE),
    ],
)
def test_whole_partitions(
    monkeypatch: pytest.MonkeyPatch, partitions: tuple[str, ...], named: list[str], chosen: Technique
):
    """Partitions are overwritten only where the condition names nothing but columns that the view is partitioned by."""
    one = techniques(COUNTS, CHANGED, partitions=partitions)
    needed: Any = SimpleNamespace(read=0, sources=1, rows=None)
    monkeypatch.setattr(one, "_touched_keys", lambda places: [(1,) * len(places)])
    monkeypatch.setattr(module, "key_condition", lambda *_: ("c1 = 1", named))
    monkeypatch.setattr(module, "sought_values", lambda *_: [])
    monkeypatch.setattr(module, "table_files", lambda *_: [])
    monkeypatch.setattr(module, "NeededFiles", lambda *_: SimpleNamespace(chosen=lambda _: needed))
    part = one._affected(Technique.GENERIC_AGGREGATE)
    assert not isinstance(part, Issue)
    assert (part.technique, part.condition) == (chosen, "c1 = 1")


def test_too_many_keys(monkeypatch: pytest.MonkeyPatch):
    """One key more than is collected says that there may be more: none of them is taken for all."""
    one = techniques(COUNTS, CHANGED)
    monkeypatch.setattr(module, "MAX_COLLECTED", 2)
    monkeypatch.setattr(one, "_touched_keys", lambda _: [(1,), (2,), (3,)])
    issue = one._affected(Technique.GENERIC_AGGREGATE)
    assert isinstance(issue, Issue)
    assert issue.sub_type == "CHANGESET_SIZE_THRESHOLD_EXCEEDED"


def test_as_many_keys_as_are_collected(monkeypatch: pytest.MonkeyPatch):
    """All of them are there: the condition names them."""
    one = techniques(COUNTS, CHANGED)
    named: list[int] = []
    monkeypatch.setattr(module, "MAX_COLLECTED", 2)
    monkeypatch.setattr(one, "_touched_keys", lambda _: [(1,), (2,)])
    monkeypatch.setattr(module, "key_condition", lambda _, keys, __: named.append(len(keys)))
    one._affected(Technique.GENERIC_AGGREGATE)
    assert named == [2]


def test_keys_are_collected_up_to_one_too_many(monkeypatch: pytest.MonkeyPatch):
    """One more than the limit, or a part of the keys would be taken for all of them."""
    one = techniques(COUNTS, CHANGED)
    taken: list[int] = []

    class Rows:
        def toDF(self, *_: str) -> Rows:  # noqa: N802 - Spark's name
            return self

        select = distinct = union = toDF

        def limit(self, number: int) -> Any:
            taken.append(number)
            column = SimpleNamespace(to_pylist=lambda: list(range(number)))
            return SimpleNamespace(toArrow=lambda: SimpleNamespace(columns=[column]))

    monkeypatch.setattr(module, "MAX_COLLECTED", 2)
    monkeypatch.setattr(module, "DataFrame", Rows)
    monkeypatch.setattr(module.F, "expr", lambda text: text)
    monkeypatch.setattr(one._plan, "frame_of", lambda *_: Rows(), raising=False)
    monkeypatch.setattr(one, "_known", lambda _: None)
    assert one._touched_keys(one._keys.chosen()) == [(0,), (1,), (2,)]
    assert taken == [3]
    assert isinstance(one._affected(Technique.GENERIC_AGGREGATE), Issue)


def test_a_query_that_reads_what_changed_too_often():
    """The plan that finds the affected part grows with each read; the limit is in the reason, and up to it the part is looked for."""
    root = COUNTS
    for number in range(100, 124, 2):
        root = p.join(root, p.leaf(number, number + 1), "Inner", p.equal(1, number))
    rejected = techniques(root, *(CHANGED,) * 13, types=("bigint",) * 26).choose(judged=False)
    assert isinstance(rejected, Issue)
    assert rejected.sub_type == "EXCESSIVE_OPERATOR_NESTING"
    assert "13 times, more than headwater.incremental.maxChangedReads=12" in rejected.reason
    unchanged = (ChangeKind.UNCHANGED,) + (CHANGED,) * 12
    assert techniques(root, *unchanged, types=("bigint",) * 26).choose(judged=False) is Technique.ROW_BASED


def test_the_columns_that_are_read_of_a_leaf(monkeypatch: pytest.MonkeyPatch):
    """Of each table its own, by their ids; of another leaf's columns a leaf that changed has none."""

    class Changed:
        def __init__(self, _session: Any, leaf: Any, change: SourceChange, *_: Any) -> None:
            self._of = (str(leaf.folder), change.kind)

        def touched(self, names: set[str]) -> Any:
            return (*self._of, names)

    monkeypatch.setattr(module, "ChangedRows", Changed)
    one = techniques(PAIRS, APPENDED, CHANGED)
    one._plan.working = None  # type: ignore[misc]
    monkeypatch.setattr(one, "_known", lambda _: None)
    sales, stores = (leaf.number for leaf in one._plan.root.leaves)
    read = frozenset({2, 11, 12})
    assert one._rows(sales, Rows.CHANGED, read) == ("t0", APPENDED, {"c2"})
    assert one._rows(stores, Rows.CHANGED, read) == ("t1", CHANGED, {"c11", "c12"})
