"""A new epoch is there whole or not at all, and what was there before stays."""

from __future__ import annotations

import pytest

from headwater.checkpoints.layout import FlowCheckpoint
from headwater.checkpoints.offsets import committed_offsets, files_seen, query_id, read_offsets
from headwater.doctor.flow_case import FlowCase
from headwater.doctor.open_epoch import open_at, open_empty
from headwater.doctor.snapshots import snapshots_of, take_snapshot
from headwater.doctor.synthetic_checkpoint import copy_up_to
from headwater.errors import LeaseLost
from headwater.graph.pipeline_project import open_project
from headwater.runtime.submit import default_partitions
from headwater.storage.place import Place, parts_below
from headwater.storage.walking import files_below, remove_tree


def case_of(done, flow: str) -> FlowCase:
    """A flow of the pipeline."""
    return FlowCase(done.project, done.manifest, done.flow(flow))


def content(folder: Place) -> dict[str, bytes]:
    """Every file below a folder."""
    return {"/".join(parts_below(file, folder)): file.read_bytes() for file, _ in files_below(folder)}


def ours() -> None:
    """The check of a lease that nobody takes."""


def test_a_position_is_laid_down(done):
    """The new epoch stands where it should, under an id of its own; the old one is as it was."""
    before = content(done.checkpoint("silver").epoch_folder(0))
    position = ('{"reservoirVersion":7}',)
    open_at(case_of(done, "silver"), position, {}, ours)
    checkpoint = done.checkpoint("silver")
    state = checkpoint.read_state()
    assert state is not None
    assert (state.epoch, state.completed, state.first_batch) == (1, False, 2)
    offsets = committed_offsets(checkpoint.live_folder())
    assert offsets is not None
    assert (offsets.batch_id, offsets.sources) == (1, position)
    assert query_id(checkpoint.live_folder()) == state.query_id
    assert content(checkpoint.epoch_folder(0)) == before
    assert not case_of(done, "silver").damages


@pytest.mark.parametrize("lost", [False, True])
def test_each_entry_names_a_number_of_partitions(done, lost):
    """Also where no entry of before can be read: without one Spark 4.2 could not repeat a batch after it that was not ended."""
    checkpoint = done.checkpoint("silver")
    (checkpoint.epoch_folder(0) / "metadata").write_text('{"id":"first"}')
    if lost:
        remove_tree(checkpoint.epoch_folder(0) / "offsets")
    open_at(case_of(done, "silver"), ('{"reservoirVersion":7}',), {}, ours)
    for batch in (0, 1):
        metadata = read_offsets(checkpoint.live_folder(), batch).metadata
        assert metadata["conf"]["spark.sql.shuffle.partitions"] == default_partitions("")


def test_files_count_as_read(done):
    """A file source's new log has one entry with every file."""
    file = done.landing / "a.json"
    lines = [{"path": file.as_uri(), "timestamp": 5}]
    open_at(case_of(done, "bronze"), ('{"logOffset":0}',), {0: lines}, ours)
    folder = done.checkpoint("bronze").live_folder()
    assert [(seen.path, seen.batch_id) for seen in files_seen(folder)] == [(str(file), 0)]


def test_a_crash_before_the_switch(done, monkeypatch: pytest.MonkeyPatch):
    """Where the driver dies before ``flow.json`` is replaced, the old epoch is live; the next try takes another number."""
    monkeypatch.setattr(
        FlowCheckpoint, "replace_state", lambda *_: (_ for _ in ()).throw(OSError("no space left"))
    )
    with pytest.raises(OSError, match="no space"):
        open_at(case_of(done, "silver"), ('{"reservoirVersion":7}',), {}, ours)
    monkeypatch.undo()
    assert done.checkpoint("silver").live_folder().name == "0"
    open_at(case_of(done, "silver"), ('{"reservoirVersion":7}',), {}, ours)
    assert done.checkpoint("silver").live_folder().name == "2"


@pytest.mark.parametrize(
    "opens",
    [
        lambda case, check: open_at(case, ('{"reservoirVersion":7}',), {}, check),
        lambda case, check: open_empty(case, check),
    ],
)
def test_without_the_lease_no_epoch_becomes_live(done, opens):
    """Another process may have opened one meanwhile: the state is as it was."""

    def lost() -> None:
        raise LeaseLost("another one has it")

    before = done.checkpoint("silver").read_state()
    with pytest.raises(LeaseLost):
        opens(case_of(done, "silver"), lost)
    assert done.checkpoint("silver").read_state() == before


def test_a_copy_up_to_a_batch(tmp_path):
    """It has the plans and marks up to the batch, the state that it wrote, and the files that it had read; nothing later."""
    source, target = tmp_path / "0", tmp_path / "1"
    texts = {f"offsets/{n}": f'v1\n{{}}\n{{"logOffset":{n}}}' for n in range(4)}
    texts |= {f"commits/{n}": "v1\n{}" for n in range(4)}
    # A batch writes the version of its state that is one above its number.
    texts |= {f"state/0/0/{n}.delta": "s" for n in range(1, 5)} | {"state/0/_metadata/schema": "s"}
    texts |= {f"sources/0/{n}": "v1" for n in range(4)} | {"metadata": '{"id": "before"}'}
    for name, text in texts.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    copy_up_to(source, target, "after", 1)
    kept = {name for name in content(target) if name != "state/0/_metadata/schema"}
    assert kept == {
        *(f"{folder}/{n}" for folder in ("offsets", "commits", "sources/0") for n in (0, 1)),
        *("state/0/0/1.delta", "state/0/0/2.delta", "metadata"),
    }
    assert query_id(target) == "after"


def test_a_crash_in_the_middle(done, monkeypatch: pytest.MonkeyPatch):
    """A folder that was begun and not finished is neither an epoch nor a snapshot."""
    monkeypatch.setattr(
        "headwater.doctor.synthetic_checkpoint.write_identity",
        lambda *_: (_ for _ in ()).throw(OSError("full")),
    )
    with pytest.raises(OSError, match="full"):
        open_at(case_of(done, "silver"), ('{"reservoirVersion":7}',), {}, ours)
    assert done.checkpoint("silver").epochs() == [0]
    monkeypatch.setattr(
        "headwater.doctor.snapshots.copy_durably", lambda *_, **__: (_ for _ in ()).throw(OSError("full"))
    )
    with pytest.raises(OSError, match="full"):
        take_snapshot(done.project.state_folder, done.checkpoint("silver"), reason="test")
    assert snapshots_of(done.project.state_folder, "silver", "silver") == []


def test_a_snapshot_is_a_copy(done):
    """It has every file of the epoch, and says which batch it is of."""
    snapshot = take_snapshot(done.project.state_folder, done.checkpoint("silver"), reason="test")
    assert snapshot is not None
    assert snapshots_of(done.project.state_folder, "silver", "silver") == [snapshot]
    assert (snapshot.epoch, snapshot.last_batch, snapshot.state().completed) == (0, 0, True)
    assert content(snapshot.checkpoint) == content(done.checkpoint("silver").epoch_folder(0))


def test_a_position_without_a_checkpoint_before_it_has_its_partitions(done):
    """Spark fails at the entry before a batch that it repeats where that says no number of partitions: it is the spec's."""
    spec = done.project.folder / "pipeline.yml"
    spec.write_text(spec.read_text() + "spark:\n  spark.sql.shuffle.partitions: 7\n")
    project = open_project(
        done.project.folder, storage=done.project.storage, warehouse=done.project.warehouse
    )
    remove_tree(done.checkpoint("silver").folder)
    open_at(
        FlowCase(project, done.manifest, done.flow("silver")), ('{"reservoirVersion":7}',), {}, lambda: None
    )
    offsets = read_offsets(done.checkpoint("silver").live_folder(), 1)
    assert offsets.metadata["conf"] == {"spark.sql.shuffle.partitions": "7"}


def test_an_epoch_that_begins_anew(done):
    """It is the live one as soon as its state is written, with nothing of what the old one had come to; the old one stays."""
    before = content(done.checkpoint("silver").epoch_folder(0))
    assert open_empty(case_of(done, "silver"), ours) == "epoch 1 is live, at the beginning of its sources"
    state = done.checkpoint("silver").read_state()
    assert (state.epoch, state.completed, state.query_id, state.first_batch) == (1, False, None, 0)
    assert done.checkpoint("silver").epochs() == [0]
    assert content(done.checkpoint("silver").epoch_folder(0)) == before
