"""What is wrong with a checkpoint has the same name on S3 as on a disk, and the same is mended by a start."""

from __future__ import annotations

import io
import itertools
import json
import zipfile
from dataclasses import replace

import pytest
from tests.unit.headwater.doctor.test_open_epoch import case_of, content
from tests.unit.headwater.doctor.test_reprocessed_rows import batch
from tests.unit.headwater.metrics.conftest import done, pipeline
from tests.unit.headwater.storage.test_killed_repairs import killed_before

from headwater.checkpoints.offsets import read_offsets
from headwater.checkpoints.unused_epoch import unused_epoch
from headwater.delta_log.table_history import table_id
from headwater.doctor.diagnosis import diagnose
from headwater.doctor.snapshots import take_snapshot
from headwater.event_log.details import FlowStatus, flow_progress
from headwater.event_log.writer import EventLogWriter
from headwater.preflight.checks import examine, mended
from headwater.storage.walking import files_below, remove_tree

__all__ = ["done", "pipeline"]
_NUMBERS = itertools.count()


@pytest.fixture(params=["disk", "s3"])
def roots(request, s3, tmp_path):
    """Both roots in folders, then both in one bucket."""
    if request.param == "disk":
        return tmp_path / "storage", tmp_path / "warehouse"
    number = next(_NUMBERS)
    return s3.place("places", f"damages-{number}/storage"), s3.place("places", f"damages-{number}/warehouse")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def three(done):
    """Silver after three batches, with state of two partitions; bronze has read one file."""
    for number in range(3):
        batch(done, number, 2)
    checkpoint = done.checkpoint("silver")
    folder = checkpoint.epoch_folder(0)
    for partition, version in itertools.product((0, 1), (1, 2, 3)):
        put(folder / "state" / "0" / str(partition) / f"{version}.delta", "changes")
    checkpoint.update_state(
        query_id="query-0", sink_id=table_id(done.table("silver")), state_stores=["0/0", "0/1"],
        state_settings={"spark.sql.shuffle.partitions": "2"},
    )  # fmt: skip
    put(done.checkpoint("bronze").epoch_folder(0) / "metadata", '{"id":"query-b"}')
    return done


def put(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def lose(place):
    remove_tree(place) if place.is_dir() else place.unlink()


def cut(file):
    file.write_text(file.read_text()[:20])


def swap(first, second):
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)


OTHER_ID = json.dumps({"id": "another"})
# flow, what happens to its epoch, the first finding, whether the next start makes it good
DAMAGES = {
    "metadata lost": ("silver", lambda f: lose(f / "metadata"), "METADATA_LOST", True),
    "metadata empty": ("silver", lambda f: put(f / "metadata", ""), "METADATA_LOST", True),
    "metadata of another": ("silver", lambda f: put(f / "metadata", OTHER_ID), "QUERY_ID_CHANGED", False),
    "mark empty": ("silver", lambda f: put(f / "commits/2", ""), "COMMITS_DAMAGED", True),
    "mark cut": ("silver", lambda f: cut(f / "commits/2"), "COMMITS_DAMAGED", True),
    "offsets empty": ("silver", lambda f: put(f / "offsets/2", ""), "OFFSETS_DAMAGED", False),
    "offsets cut": ("silver", lambda f: cut(f / "offsets/2"), "OFFSETS_DAMAGED", False),
    "offsets of no version": ("silver", lambda f: put(f / "offsets/2", "hello\n{}\n{}"), "OFFSETS_DAMAGED", False),
    "a plan cut": ("silver", lambda f: put(f / "offsets/3", ""), "OFFSETS_DAMAGED", True),
    "of a newer Spark": ("silver", lambda f: put(f / "offsets/2", "v3\n{}\n{}"), "OFFSETS_TOO_NEW", False),
    "the last offsets lost": ("silver", lambda f: lose(f / "offsets/2"), "OFFSETS_LOST", False),
    "offsets before lost": ("silver", lambda f: lose(f / "offsets/1"), "OFFSETS_LOST", True),
    "offsets all lost": ("silver", lambda f: lose(f / "offsets"), "OFFSETS_LOST", False),
    "offsets swapped": ("silver", lambda f: swap(f / "offsets/1", f / "offsets/2"), "OFFSETS_DAMAGED", False),
    "offsets of the first batch": (
        "silver", lambda f: (f / "offsets/2").write_bytes((f / "offsets/0").read_bytes()), "OFFSETS_DAMAGED", False,
    ),
    "offsets and mark swapped": ("silver", lambda f: swap(f / "offsets/2", f / "commits/2"), "OFFSETS_DAMAGED", False),
    "offsets of another flow": (
        "silver", lambda f: put(f / "offsets/2", 'v1\n{"batchWatermarkMs":0}\n{"logOffset":0}'), "FILE_LOG_LOST", False,
    ),
    "the last batch lost": (
        "silver", lambda f: (lose(f / "offsets/2"), lose(f / "commits/2")), "CHECKPOINT_REWOUND", False,
    ),
    "everything lost": ("silver", lose, "CHECKPOINT_LOST", False),
    "state lost": ("silver", lambda f: lose(f / "state"), "STATE_LOST", False),
    "a partition lost": ("silver", lambda f: lose(f / "state/0/1"), "STATE_LOST", False),
    "a version lost": ("silver", lambda f: lose(f / "state/0/1/3.delta"), "STATE_LOST", False),
    "files' log lost": ("bronze", lambda f: lose(f / "sources"), "FILE_LOG_LOST", False),
    "an entry of files empty": ("bronze", lambda f: put(f / "sources/0/0", ""), "FILE_LOG_LOST", False),
    "an entry of files cut": ("bronze", lambda f: cut(f / "sources/0/0"), "FILE_LOG_LOST", False),
    "an entry of files without a file": ("bronze", lambda f: put(f / "sources/0/0", "v1"), "FILE_LOG_LOST", False),
    "an entry of files of another batch": (
        "bronze", lambda f: put(f / "sources/0/0", (f / "sources/0/0").read_text().replace('"batchId": 0', '"batchId": 1')),
        "FILE_LOG_LOST", False,
    ),
    "compacted files cut": ("bronze", lambda f: put(f / "sources/0/0.compact", (f / "sources/0/0").read_text()[:-2]), "FILE_LOG_LOST", False),
    "compacted files empty": ("bronze", lambda f: put(f / "sources/0/0.compact", ""), "FILE_LOG_LOST", False),
    "an entry of files of no version": ("bronze", lambda f: put(f / "sources/0/0", "hello"), "FILE_LOG_LOST", False),
    "flow.json cut": ("silver", lambda f: put(f.parent / "flow.json", "{"), "FLOW_STATE_DAMAGED", False),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_of_checkpoints(three, damage):
    """It is the first finding, with evidence and a remedy; what a start makes good is good then, and nothing else changes."""
    flow, harm, condition, mends_itself = DAMAGES[damage]
    assert not case_of(three, flow).damages
    harm(three.checkpoint(flow).epoch_folder(0))
    (first, *_) = diagnose(case_of(three, flow))
    assert (first.damage.condition, first.damage.mends_itself) == (condition, mends_itself)
    assert first.damage.error.remedy
    if mends_itself:
        table = sorted(str(path) for path, _ in files_below(three.table(flow)))
        mended(examine(case_of(three, flow).start))
        assert not case_of(three, flow).damages
        assert sorted(str(path) for path, _ in files_below(three.table(flow))) == table


@pytest.mark.parametrize("batches", [(1, 2), (0, 2)], ids=["of neighbours", "of the first"])
def test_swapped_positions_are_written_back(three, batches):
    """Where the event log has the positions, a start writes them back; the entries that were there lie aside."""
    folder = three.checkpoint("silver").epoch_folder(0)
    right = {number: read_offsets(folder, number).sources for number in (1, 2)}
    for number in (1, 2):
        record(three, "silver", number, end_offsets=[json.loads(right[number][0])])
    swap(*(folder / f"offsets/{number}" for number in batches))
    (damage,) = case_of(three, "silver").damages
    assert (damage.condition, damage.mends_itself) == ("OFFSETS_DAMAGED", True)
    mended(examine(case_of(three, "silver").start))
    assert not replace(case_of(three, "silver"), deep=True).damages
    for number in (1, 2):
        there, expected = (
            json.loads(texts[0]) for texts in (read_offsets(folder, number).sources, right[number])
        )
        assert there == expected
    assert (folder / ".aside/offsets/2").is_file()


def rocks(folder, *, size=4, packed="tables"):
    """A partition's RocksDB snapshot of one table; ``size``: of the table as its list says."""
    listed = {"sstFiles": [{"localFileName": "1.sst", "dfsSstFileName": "1-a.sst", "sizeBytes": size}]}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("metadata", f"v1\n{json.dumps(listed)}")
        file.writestr("MANIFEST", packed)
    put(folder / "SSTs" / "1-a.sst", "data")
    (folder / "3.delta").unlink(missing_ok=True)
    (folder / "3.zip").write_bytes(stream.getvalue())


def flip(file):
    file.write_bytes(file.read_bytes().replace(b"tables", b"Tables"))


@pytest.mark.parametrize(
    ("harm", "condition"),
    [
        (lambda f: flip(f / "state/0/1/3.zip"), "STATE_DAMAGED"),
        (lambda f: put(f / "offsets/2", 'v1\n{}\n{"reservoirVersion":9}'), "OFFSETS_DAMAGED"),
    ],
    ids=["a byte", "a position"],
)
@pytest.mark.parametrize("roots", ["s3"], indirect=True)
def test_of_readable_content(three, harm, condition):
    """Where a store has other content that can be read, a start does not look, and ``verify`` says which file it is."""
    folder = three.checkpoint("silver").epoch_folder(0)
    rocks(folder / "state/0/1")
    position = json.loads((folder / "offsets/2").read_text().split("\n")[2])
    record(three, "silver", 2, end_offsets=[position])
    deep = replace(case_of(three, "silver"), deep=True)
    assert not deep.damages
    harm(folder)
    assert not case_of(three, "silver").damages
    (first,) = replace(case_of(three, "silver"), deep=True).damages
    assert first.condition == condition
    assert first.blocks


@pytest.mark.parametrize(
    "harm", [lambda file: put(file, "dat"), lambda file: file.unlink()], ids=["cut", "gone"]
)
def test_of_the_tables_of_a_state(three, harm):
    """A table that a snapshot of RocksDB lists and that is gone or cut stops a start: Spark would fail in the middle of a batch."""
    folder = three.checkpoint("silver").epoch_folder(0)
    rocks(folder / "state/0/1")
    assert not case_of(three, "silver").damages
    harm(folder / "state/0/1/SSTs/1-a.sst")
    (first,) = case_of(three, "silver").damages
    assert (first.condition, first.blocks, first.mends_itself) == ("STATE_LOST", True, False)
    assert "1-a.sst" in first.evidence[0]


def record(three, flow, number, **facts):
    """The event log's record of a batch."""
    state = three.project.state_folder
    with EventLogWriter(state, "orders", "orders", "u-recorded") as events:
        details = flow_progress(FlowStatus.RUNNING, **facts)
        events.emit(
            "flow_progress",
            "a batch",
            level="METRICS",
            flow=flow,
            dataset=flow,
            batch_id=number,
            epoch=0,
            details=details,
        )


def test_copies_are_offered_where_there_are_any(three):
    """A restore is no way on where nothing was ever copied."""
    remove_tree(three.checkpoint("silver").epoch_folder(0) / "state")
    (first, *_) = case_of(three, "silver").damages
    assert first.condition == "STATE_LOST"
    assert "restore" not in first.error.remedy.lower()
    assert first.error.remedy.startswith("Go back")
    take_snapshot(three.project.state_folder, three.checkpoint("silver"), reason="by hand")
    (first, *_) = case_of(three, "silver").damages
    assert first.error.remedy.startswith("Restore a snapshot: ")


@pytest.mark.parametrize("roots", ["s3"], indirect=True)
def test_marks_of_folders_are_no_epoch(three, s3):
    """What Hadoop leaves where a checkpoint was removed is not taken for one that survived, and its number is not used again."""
    checkpoint = three.checkpoint("silver")
    for folder in ("0", "0/state", "0/state/0"):
        s3.put_mark(checkpoint.folder / folder)
    assert checkpoint.surviving_state() is not None
    checkpoint.state_file.unlink()
    assert checkpoint.surviving_state() is not None
    remove_tree(checkpoint.folder)
    assert checkpoint.epochs_begun() == [0]
    assert checkpoint.surviving_state() is None
    start = case_of(three, "silver").start
    assert unused_epoch(checkpoint, "silver", start.identity, None, ()) == 1


def first_plan(folder):
    """The only batch is planned, its entry is cut, and there is state of it."""
    for log in ("offsets", "commits"):
        remove_tree(folder / log)
    remove_tree(folder / "state")
    put(folder / "offsets/0", "v1")
    for partition in (0, 1):
        put(folder / f"state/0/{partition}/1.delta", "changes")


MENDED = {name: harm for name, (flow, harm, _, mends) in DAMAGES.items() if mends and flow == "silver"}


@pytest.mark.parametrize("damage", [*MENDED, "first plan cut"])
@pytest.mark.parametrize("roots", ["s3"], indirect=True)
def test_a_start_that_is_killed_while_it_mends(three, damage):
    """The next start ends what the killed one began: the checkpoint is as after a start that nobody killed."""
    folder = three.checkpoint("silver").epoch_folder(0)
    pristine = content(folder)
    if damage == "first plan cut":
        remove_tree(three.table("silver"))
        batch(three, 0, 2, epoch=7)  # another epoch's: the table has nothing of this one
        three.checkpoint("silver").update_state(
            sink_id=table_id(three.table("silver")), state_settings={}, state_stores=[], query_id=None
        )

    def harmed():
        remove_tree(folder)
        for name, data in pristine.items():
            (folder / name).write_bytes(data)
        MENDED.get(damage, first_plan)(folder)

    def start():
        mended(examine(case_of(three, "silver").start))

    harmed()
    start()
    expected = without_aside(folder)
    for number in itertools.count():
        harmed()
        killed = killed_before(number, start)
        start()
        assert without_aside(folder) == expected
        assert not case_of(three, "silver").damages
        if not killed:
            break
    assert number >= 1


def without_aside(folder):
    return {name: data for name, data in content(folder).items() if not name.startswith(".aside/")}
