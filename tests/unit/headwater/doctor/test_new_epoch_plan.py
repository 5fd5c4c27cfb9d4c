"""Where a new epoch may begin, and what that costs: decided from the table's log and the checkpoint alone."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.unit.headwater.metrics.conftest import Pipeline, delta_offset, write_rows

from headwater.definitions.source import SourceKind
from headwater.doctor import new_epoch_plan as module
from headwater.doctor.flow_case import FlowCase
from headwater.doctor.new_epoch_plan import plan_new_epoch
from headwater.doctor.repair_plan import RepairNotPossible, RepairOptions, RepairPlan
from headwater.errors import UsageError
from headwater.storage.walking import remove_tree


@pytest.fixture
def grown(done: Pipeline) -> Pipeline:
    """``silver`` stands at version 1 of ``bronze``, which has three versions: of two rows, one and two."""
    for rows in ((3,), (4, 5)):
        time.sleep(0.005)  # no two commits in one millisecond
        write_rows(done.table("bronze"), *rows)
    return done


def plan(grown: Pipeline, **options: Any) -> RepairPlan:
    """The plan for ``silver``."""
    case = FlowCase(grown.project, grown.manifest, grown.flow("silver"))
    return plan_new_epoch(case, RepairOptions(**options))


def begins(repair: RepairPlan) -> int:
    """The version at which the plan begins."""
    position = json.loads(repair.steps[0].partition(" at ")[2])
    return int(position["reservoirVersion"])


@pytest.mark.parametrize(
    ("version", "lost", "doubled"),
    [
        (0, "no rows", "what 2 rows of the source give (its versions 0 to 0)"),
        (1, "no rows", "no rows"),
        (2, "what 1 rows of the source give (its versions 1 to 1)", "no rows"),
        (3, "what 3 rows of the source give (its versions 1 to 2)", "no rows"),
    ],
)
def test_what_a_version_costs(grown: Pipeline, version: int, lost: str, doubled: str):
    """Rows between the live position and the new one are left out, or come again; the plan counts them."""
    repair = plan(grown, from_version=version)
    assert (begins(repair), repair.lost, repair.doubled) == (version, lost, doubled)


@pytest.mark.parametrize("version", [-1, 4])
def test_a_version_that_is_not_there(grown: Pipeline, version: int):
    """One beyond the next is none."""
    with pytest.raises(UsageError, match="versions 0 to 2"):
        plan(grown, from_version=version)


def test_a_moment_begins_with_what_came_from_then_on(grown: Pipeline):
    """The first commit that is not before the moment is the first that is read."""
    times = [commit["timestamp"] for commit in reversed(DeltaTable(str(grown.table("bronze"))).history())]
    assert times == sorted(set(times))
    assert [begins(plan(grown, from_time=moment)) for moment in times] == [0, 1, 2]
    assert [begins(plan(grown, from_time=moment + 1)) for moment in times] == [1, 2, 3]


def test_a_flow_with_state_begins_at_the_start_only(grown: Pipeline):
    """In the middle its state would be empty: every such beginning is refused, with what can be done."""
    grown.complete("silver", state_settings={"spark.sql.shuffle.partitions": "2"})
    offsets = (delta_offset(grown.table("bronze"), 1),)
    for options in ({"from_version": 1}, {"from_offsets": offsets}, {"from_time": 0}):
        with pytest.raises(RepairNotPossible, match="keeps state") as caught:
            plan(grown, **options)
        assert "begin at the start" in caught.value.remedy
    assert "the table keeps its rows" in plan(grown, from_start=True).steps[0]


@pytest.mark.parametrize("options", [{}, {"from_start": True, "from_version": 1}])
def test_exactly_one_beginning(grown: Pipeline, options: dict[str, Any]):
    """None, or two, are refused."""
    with pytest.raises(UsageError, match="exactly one"):
        plan(grown, **options)


@pytest.mark.parametrize(
    ("kinds", "stateful", "oldest"),
    [
        ((SourceKind.KAFKA, SourceKind.FILES), False, ('{"t":{"0":5}}', None)),
        ((SourceKind.FILES,), False, None),
        ((SourceKind.KAFKA,), True, None),
    ],
)
def test_the_oldest_messages(
    monkeypatch: pytest.MonkeyPatch, kinds: tuple[SourceKind, ...], stateful: bool, oldest: Any
):
    """A start is seeded with them, since a stream left alone would begin at the end; but for state, whose batches count from 0."""
    monkeypatch.setattr(module, "_offsets_at", lambda _, __, millis: {"t": {"0": 5 + millis}})
    sources = tuple(SimpleNamespace(kind=kind) for kind in kinds)
    case: Any = SimpleNamespace(stateful=stateful, start=SimpleNamespace(sources=sources))
    assert module._oldest(case) == oldest


VERSION = {"reservoirVersion": 1, "index": -1}


@pytest.mark.parametrize(
    "offsets",
    [
        (), ("1",), (None,), ([1],), ({"logOffset": 3},), ("a", "b"), ({"t": {"0": 1}},), (VERSION,),
        ({**VERSION, "reservoirVersion": "1", "reservoirId": "i"},),
    ],
)  # fmt: skip
def test_offsets_that_are_none(grown: Pipeline, offsets: tuple[Any, ...]):
    """One too few or too many, a text, a number of files, which says nothing about which files these are, and one of another kind."""
    with pytest.raises(UsageError, match="offset"):
        plan(grown, from_offsets=offsets)


@pytest.mark.parametrize(("offset", "fits"), [({"t": {"0": 1}}, True), ({"t": 1}, False), (VERSION, False)])
def test_offsets_of_topics(offset: dict[str, Any], fits: bool):
    """Each topic has its partitions."""
    source: Any = SimpleNamespace(table=None, kind=SourceKind.KAFKA, name="t")
    if fits:
        assert module._requested_offsets((source,), (offset,)) == (json.dumps(offset, separators=(",", ":")),)
        return
    with pytest.raises(UsageError, match="is not an offset of"):
        module._requested_offsets((source,), (offset,))


def test_a_source_that_was_made_anew(grown: Pipeline):
    """Versions of the table that is there now say nothing of the one that was read: no plan says that no row is lost, or comes again."""
    before = delta_offset(grown.table("bronze"), 1)
    remove_tree(grown.table("bronze"))
    for rows in ((1,), (2, 3)):
        write_rows(grown.table("bronze"), *rows)
    for version in (0, 1, 2):
        repair = plan(grown, from_version=version)
        assert repair.lost.startswith("can't be known")
        assert repair.doubled.startswith("can't be known")
    with pytest.raises(UsageError, match="in another table than") as refused:
        plan(grown, from_offsets=(before,))
    assert "--from-version" in refused.value.remedy


def test_a_flow_that_reads_no_table_any_more(grown: Pipeline):
    """Where its new source is no table, what the step costs is not counted in versions of the old one."""
    source = SimpleNamespace(table=None)
    case: Any = SimpleNamespace(start=SimpleNamespace(sources=(source,)), by_key=False)
    lost, doubled = module._cost(case, ('{"t":{"0":5}}',))
    assert lost == doubled
    assert lost.startswith("can't be known")


def test_offsets_that_were_given(grown: Pipeline):
    """The new epoch begins where they say, and what that leaves out is counted."""
    repair = plan(grown, from_offsets=(delta_offset(grown.table("bronze"), 2),))
    assert (begins(repair), repair.lost) == (2, "what 1 rows of the source give (its versions 1 to 1)")


def test_a_moment_of_each_kind_of_source(monkeypatch: pytest.MonkeyPatch, grown: Pipeline):
    """Every stream has its own position, in the order of the query: a version, a list of files, the offsets of that moment."""
    monkeypatch.setattr(module, "_offsets_at", lambda _, __, millis: {"t": {"0": millis}})
    monkeypatch.setattr(module, "_version_at", lambda _, millis: 1 if millis == 7 else 0)
    monkeypatch.setattr(module, "lines_by_age", lambda source, millis: [source.name, millis])
    table = SimpleNamespace(table=grown.table("bronze"), kind=SourceKind.DELTA, name="bronze")
    files, topic, other = (
        SimpleNamespace(table=None, kind=kind, name=str(kind)) for kind in (SourceKind.FILES, SourceKind.KAFKA, SourceKind.OTHER)
    )  # fmt: skip

    def position(*sources: Any) -> Any:
        case: Any = SimpleNamespace(start=SimpleNamespace(sources=sources))
        return module._position(case, RepairOptions(from_time=7))

    ends, lines = position(topic, table, files)
    assert ends == ('{"t":{"0":7}}', json.dumps(delta_offset(grown.table("bronze"), 1), separators=(",", ":")), '{"logOffset":0}')  # fmt: skip
    assert lines == {2: [str(SourceKind.FILES), 7]}
    with pytest.raises(RepairNotPossible, match="can't be begun at a time"):
        position(topic, other)
