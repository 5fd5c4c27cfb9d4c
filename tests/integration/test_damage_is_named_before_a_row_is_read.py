"""Each kind of damage to a checkpoint, its table or its source has a name of ours, found without Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.counted_work import Work, counted_work
from tests.prepared_pipeline import FLOWS, Prepared, copy, cut, empty, flip, lose, put, swap

from headwater.preflight.checks import examine, mended
from headwater.preflight.delta_source_checks import delta_sources
from headwater.preflight.state_checks import plan_was_changed
from headwater.storage.walking import remove_tree

ANOTHER_ID = '{"id":"00000000-0000-0000-0000-000000000000"}'

ANOTHER_FLOWS = 'v1\n{"path":"file:///of/another/flow/1.json","timestamp":1,"batchId":2}'

# flow, what happens to its checkpoint, the condition, whether the next start makes it good
_FLIPPED = flip("offsets/{last}")
# The same holds on a store (test_repairs_on_s3), but for what only a checksum beside the file shows.
NEED_CHECKSUMS = [("silver", _FLIPPED)]
CHECKPOINTS = [
    ("silver", lose("metadata"), "METADATA_LOST", True),
    ("running", lose("metadata"), "METADATA_LOST", True),
    ("silver", empty("metadata"), "METADATA_LOST", True),
    ("silver", put("metadata", ANOTHER_ID), "QUERY_ID_CHANGED", False),
    ("silver", empty("commits/{last}"), "COMMITS_DAMAGED", True),
    ("running", cut("commits/{last}"), "COMMITS_DAMAGED", True),
    ("silver", empty("offsets/{last}"), "OFFSETS_DAMAGED", True),
    ("running", cut("offsets/{last}"), "OFFSETS_DAMAGED", True),
    ("silver", put("offsets/{last}", "hello\n{}\n{}"), "OFFSETS_DAMAGED", True),
    ("silver", _FLIPPED, "OFFSETS_DAMAGED", True),
    ("silver", put("offsets/{next}", ""), "OFFSETS_DAMAGED", True),
    ("silver", put("offsets/{last}", "v3\n{}\n{}"), "OFFSETS_TOO_NEW", False),
    ("silver", lose("offsets/{last}"), "OFFSETS_LOST", True),
    ("running", lose("offsets/{last}"), "OFFSETS_LOST", True),
    ("bronze", lose("offsets/{last}"), "OFFSETS_LOST", True),
    ("silver", lose("offsets/{before}"), "OFFSETS_LOST", True),
    ("running", lose("offsets/{before}"), "OFFSETS_LOST", True),
    ("silver", lose("offsets"), "OFFSETS_LOST", True),
    ("silver", swap("offsets/{before}", "offsets/{last}"), "OFFSETS_DAMAGED", True),
    ("bronze", swap("offsets/{before}", "offsets/{last}"), "OFFSETS_DAMAGED", True),
    ("silver", copy("offsets/{before}", "offsets/{last}"), "OFFSETS_DAMAGED", True),
    ("bronze", copy("offsets/{before}", "offsets/{last}"), "OFFSETS_DAMAGED", True),
    ("running", copy("offsets/{before}", "offsets/{last}"), "OFFSETS_DAMAGED", True),
    ("silver", swap("offsets/{last}", "commits/{last}"), "OFFSETS_DAMAGED", True),
    ("silver", lose("offsets", "commits"), "CHECKPOINT_REWOUND", False),
    ("silver", lose("offsets/{last}", "commits/{last}"), "CHECKPOINT_REWOUND", False),
    ("silver", remove_tree, "CHECKPOINT_LOST", False),
    ("running", lose("state"), "STATE_LOST", False),
    ("running", lose("state/0/1/{next}*.zip"), "STATE_LOST", False),
    ("running", lose("state/0/1"), "STATE_LOST", False),
    ("running", lose("state/0/0/SSTs"), "STATE_LOST", False),
    ("running", cut("state/0/0/_metadata/schema"), "STATE_DAMAGED", False),
    ("bronze", cut("sources/0/{before}"), "FILE_LOG_LOST", False),
    ("bronze", put("sources/0/{before}", "v1"), "FILE_LOG_LOST", False),
    ("bronze", put("sources/0/{last}", ANOTHER_FLOWS), "FILE_LOG_LOST", False),
    ("bronze", lose("sources"), "FILE_LOG_LOST", False),
    ("bronze", lose("sources/0/{before}"), "FILE_LOG_LOST", False),
]


def test_of_checkpoints(done: Prepared, tmp_path: Path):
    """The first finding has our name and says whether the next start makes it good; other flows are fine."""
    assert [done.conditions(name) for name in FLOWS] == [[], [], []]
    for name in FLOWS:
        shutil.copytree(done.folder(name), tmp_path / name)
    found = []
    for flow, damage, *_ in CHECKPOINTS:
        folder, others = done.folder(flow), [name for name in FLOWS if name != flow]
        damage(folder)
        found.append([done.conditions(name)[:1] for name in (flow, *others)])
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / flow, folder)
    expected = [[[(condition, mends)], [], []] for _, _, condition, mends in CHECKPOINTS]
    wrong = [(number, got) for number, got in enumerate(found) if got != expected[number]]
    assert wrong == []


def test_of_a_checksum_that_is_left(done: Prepared):
    """Where a mark is gone and its checksum is not, Spark could not write it again: the next start takes it away."""
    folder = done.folder("silver")
    (folder / "commits" / "2").unlink()
    assert done.conditions("silver") == [("COMMITS_DAMAGED", True)]
    ((_, repair),) = mended(examine(done.flow_case("silver").start))
    assert ".2.crc" in repair
    assert done.conditions("silver") == []


def test_of_state_by_its_checksums(done: Prepared):
    """A byte of the state that is another one is found by ``verify``, which compares all checksums."""
    flip("state/0/0/SSTs/*.sst")(done.folder("running"))
    assert done.conditions("running") == []
    assert done.conditions("running", deep=True) == [("STATE_DAMAGED", False)]
    code, answer, _ = done.call("checkpoints", "verify")
    assert (code, [finding["condition"] for finding in answer["findings"]]) == (3, ["STATE_DAMAGED"])


def append(table: Path) -> None:
    """One more version, which nothing has read."""
    rows = pa.table({"id": pa.array([99], pa.int32()), "team": ["z"], "points": pa.array([1], pa.int32())})
    write_deltalake(str(table), rows, mode="append")


def drop(table: Path) -> None:
    """The table is gone."""
    shutil.rmtree(table)


def make_anew(table: Path) -> None:
    """Another table is there."""
    drop(table)
    append(table)


def cut_log(table: Path) -> None:
    """Retention took a version that was not read."""
    append(table)
    append(table)
    DeltaTable(str(table)).create_checkpoint()
    for version in range(4):
        (table / "_delta_log" / f"{version:020d}.json").unlink()


def punch_log(table: Path) -> None:
    """A version in the middle is gone."""
    append(table)
    append(table)
    (table / "_delta_log" / f"{3:020d}.json").unlink()


def vacuum_unread(table: Path) -> None:
    """A file that was not read is gone."""
    before = set(table.glob("*.parquet"))
    append(table)
    (file,) = set(table.glob("*.parquet")) - before
    file.unlink()


def delete_rows(table: Path) -> None:
    """Rows were deleted where only new ones are expected."""
    DeltaTable(str(table)).delete("id = 0")


def put_back_older(table: Path) -> None:
    """An older copy of the table is put in its place."""
    for file in (table / "_delta_log").glob(f"*{2:020d}.*"):
        file.unlink()


@pytest.mark.parametrize(
    ("damage", "writer", "readers"),
    [
        (append, [], []),
        (drop, ["TABLE_GONE"], ["SOURCE_GONE"]),
        (make_anew, ["TABLE_REPLACED"], ["SOURCE_REPLACED"]),
        (put_back_older, ["TABLE_ROLLED_BACK"], ["SOURCE_REPLACED"]),
        (cut_log, [], ["SOURCE_LOG_CUT"]),
        (punch_log, ["TABLE_LOG_HOLE"], ["SOURCE_LOG_HOLE"]),
        (vacuum_unread, ["TABLE_FILES_GONE"], ["SOURCE_FILES_GONE"]),
        (delete_rows, [], ["SOURCE_ROWS_CHANGED"]),
    ],
)
def test_of_tables(done: Prepared, damage: Callable[[Path], None], writer: list[str], readers: list[str]):
    """What happens to a table is named for the flow that writes it, and for the streams that read it."""
    damage(done.case.table("bronze"))
    assert [condition for condition, _ in done.conditions("bronze")] == writer
    assert [condition for condition, _ in done.conditions("silver")] == readers
    assert [condition for condition, _ in done.conditions("running")] == readers


def test_of_a_change_feed(done: Prepared):
    """Commits that recorded no changes are named for a stream that shall read them, also the last that it has read;
    those that did are not.
    """
    start = done.flow_case("silver").start
    assert start.sources is not None
    source = replace(start.sources[0], options={"readChangeFeed": "true"})
    table = done.case.table("bronze")

    def found() -> list[str]:
        return [damage.condition for damage in delta_sources(replace(start, sources=(source,)))]

    def feed(on: str) -> None:
        DeltaTable(str(table)).alter.set_table_properties({"delta.enableChangeDataFeed": on})

    # What the stream read last had no feed, and Spark plans that batch once more.
    assert found() == ["CHANGE_FEED_MISSING"]
    folder = done.folder("silver")
    text = (folder / "offsets" / "2").read_text()
    for batch in ("1", "2"):  # as after a new epoch at its position
        put(f"offsets/{batch}", text)(folder)
    feed("true")
    append(table)
    assert found() == []
    feed("false")
    assert found() == []
    append(table)
    assert found() == ["CHANGE_FEED_MISSING"]


def test_of_the_query(done: Prepared):
    """Other keys, and other numbers of sources, are seen; the same are not."""
    case = done.flow_case("running")
    plan = case.start.state.plan
    assert plan == ("Aggregate(team: string) count(1)",)
    assert not list(plan_was_changed(replace(case.start, plan=plan)))
    changed = replace(case.start, plan=("Aggregate(city: string) count(1)",))
    assert [damage.condition for damage in plan_was_changed(changed)] == ["PLAN_CHANGED"]
    assert case.start.sources is not None
    doubled = replace(case.start, sources=case.start.sources * 2)
    assert [damage.condition for damage in examine(doubled)] == ["SOURCES_CHANGED"]


def test_a_damaged_state_file_is_refused_and_listed(done: Prepared):
    """A ``flow.json`` that is no JSON is named, and the other flows are shown all the same."""
    done.case.checkpoint("silver").state_file.write_text("{")
    code, answer, _ = done.call("checkpoints", "verify")
    assert (code, [finding["condition"] for finding in answer["findings"]]) == (3, ["FLOW_STATE_DAMAGED"])
    code, answer, _ = done.call("checkpoints", "list")
    assert (code, [entry["flow"] for entry in answer["checkpoints"]]) == (0, ["bronze", "running", "silver"])


def test_what_another_version_keeps_stays(done: Prepared):
    """A state file of another version is read, and what only that version knows is written back."""
    checkpoint = done.case.checkpoint("silver")
    file = checkpoint.state_file
    file.write_text('{"epoch": 0, "of_tomorrow": {"a": 1}}')
    assert checkpoint.update_state(completed=True).epoch == 0
    assert '"of_tomorrow"' in file.read_text()
    assert done.conditions("silver") == []


def work_of_checks(done: Prepared, flow: str) -> Work:
    """What all checks of a flow do where nothing is wrong."""

    def checks() -> None:
        assert done.conditions(flow) == []

    return counted_work(checks)


def test_it_costs_little(done: Prepared):
    """All checks of a flow open a few files, with 100 batches behind it, too, and two of each of 200 partitions of state."""
    for flow in FLOWS:
        work = work_of_checks(done, flow)
        assert max(work.opened, work.listed) < 80
        assert work.calls < 10_000
    folder = done.folder("running")
    for batch in range(3, 100):
        for log in ("offsets", "commits"):
            (folder / log / str(batch)).hardlink_to(folder / log / "2")
    operator = folder / "state" / "0"
    for partition in range(2, 200):
        shutil.copytree(operator / "0", operator / str(partition))
    for partition in range(200):
        for version in range(4, 101):
            (operator / str(partition) / f"{version}.zip").hardlink_to(operator / str(partition) / "3.zip")
    done.case.checkpoint("running").update_state(state_stores=[f"0/{number}" for number in range(200)])
    work = work_of_checks(done, "running")
    assert work.opened < 80 + 200 * 2
    assert work.listed < 80 + 200 * 3
    assert work.calls < 80_000
