"""What a pipeline has not read of the sources that lie outside of it."""

from __future__ import annotations

import os

import pytest
from tests.unit.headwater.metrics.conftest import write_checkpoint, write_rows
from tests.unit.headwater.metrics.test_kafka_backlog import FakeTopics

from headwater.arrivals.unread import FIRST_RUN, Unread, UnreadSource, unread
from headwater.definitions.source import SourceKind
from headwater.graph.manifest import SourceEntry


def reads(done, *sources, flow="bronze"):
    """The pipeline, with other sources of a flow."""
    flows = tuple(
        entry.model_copy(update={"sources": sources}) if entry.name == flow else entry
        for entry in done.manifest.flows
    )
    return done.manifest.model_copy(update={"flows": flows})


def test_nothing_is_unread_after_an_update(done):
    """What the checkpoint has is read; its own tables do not count as arrivals, however far behind a flow is in them."""
    assert unread(done.project, done.manifest) == Unread()
    write_rows(done.table("bronze"), 8)
    write_rows(done.table("silver"), 9)
    assert unread(done.project, done.manifest) == Unread()


def test_new_files_count_by_their_number_and_are_told_apart(done):
    """Each new file counts; the mark changes with a further file, and with a file of the same size in the place of another."""
    done.land("b.json")
    (one,) = unread(done.project, done.manifest).sources
    assert (one.flow, one.measure, one.amount) == ("bronze", "files", 1)
    assert unread(done.project, done.manifest).marks == {one.key: one.mark}
    done.land("c.json")
    (two,) = unread(done.project, done.manifest).sources
    assert (two.amount, two.mark != one.mark) == (2, True)
    (done.landing / "c.json").unlink()
    file = done.land("b.json", '{"id": 2}')
    os.utime(file, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns + 10**9))
    (other,) = unread(done.project, done.manifest).sources
    assert (other.amount, other.mark not in (one.mark, two.mark)) == (1, True)


def test_the_same_amount_from_another_position_is_other_data(done):
    """A file that was read, and one of the same size after it, are two arrivals."""
    done.land("b.json")
    (before,) = unread(done.project, done.manifest).sources
    done.take_in("a.json", "b.json", batch=1)
    assert unread(done.project, done.manifest) == Unread()
    done.land("c.json")
    (after,) = unread(done.project, done.manifest).sources
    assert (before.amount, after.amount, before.mark != after.mark) == (1, 1, True)


def test_commits_of_another_pipelines_table(done):
    """A stream over a table that the pipeline does not write counts its commits."""
    other = done.project.warehouse / "other" / "t"
    write_rows(other, 1)
    write_rows(other, 2)
    table = SourceEntry(
        kind=SourceKind.DELTA, streaming=True, name="other.t", location="other/t", format="delta"
    )
    manifest = reads(done, table)
    write_checkpoint(done.checkpoint("bronze").epoch_folder(0), 0, [{"reservoirVersion": 1, "index": -1}])
    write_rows(other, 3)
    write_rows(other, 4)
    (source,) = unread(done.project, manifest).sources
    assert (source.source, source.measure, source.amount) == ("other.t", "versions", 3)


def test_messages_beyond_the_committed_offsets_and_no_message_is_fetched(done):
    """Kafka: records after the checkpoint; the broker is not asked for times, for which it would send a message."""
    topic = SourceEntry(
        kind=SourceKind.KAFKA,
        streaming=True,
        name="clicks",
        options={"kafka.bootstrap.servers": "b:1", "subscribe": "clicks"},
    )
    manifest = reads(done, topic)
    write_checkpoint(done.checkpoint("bronze").epoch_folder(0), 0, [{"clicks": {"0": 5}}])

    class NoTimes(FakeTopics):
        def first_messages(self, positions):
            raise AssertionError("a message would be fetched")

    (source,) = unread(done.project, manifest, connect=NoTimes({("clicks", 0): (0, 12)})).sources
    assert (source.measure, source.amount) == ("records", 7)
    assert unread(done.project, manifest, connect=NoTimes({("clicks", 0): (0, 5)})) == Unread()


def test_a_first_run_that_decides_where_it_begins(pipeline):
    """A stream from `latest` that never ran has no position: only a run gives it one."""
    topic = SourceEntry(
        kind=SourceKind.KAFKA, streaming=True, options={"kafka.bootstrap.servers": "b:1", "subscribe": "c"}
    )
    (source,) = unread(
        pipeline.project, reads(pipeline, topic), connect=FakeTopics({("c", 0): (0, 12)})
    ).sources
    assert (source.amount, source.mark) == (None, FIRST_RUN)


def test_what_can_not_be_read_is_said_and_is_no_arrival(done):
    """A folder that is gone is reported with its name; nothing is announced for it."""
    (done.landing / "a.json").unlink()
    done.landing.rmdir()
    arrived = unread(done.project, done.manifest)
    assert arrived.sources == ()
    assert str(done.landing) in arrived.unknown[0]


def test_amounts_count_a_source_once():
    """Two flows that read one folder have its files once; what can't be counted makes its measure uncountable, and no other."""
    sources = (
        UnreadSource("a", "landing", "files", 3, ""),
        UnreadSource("b", "landing", "files", 5, ""),
        UnreadSource("c", "other", "files", 2, ""),
        UnreadSource("c", "t", "versions", None, ""),
    )
    assert Unread(sources).amounts() == {"files": 7, "versions": None}


@pytest.mark.parametrize(
    ("amounts", "files"),
    [([5, 3], 5), ([3, 5], 5), ([0, 2], 2), ([5, None], None), ([None, 5], None), ([], 0)],
)
def test_a_source_that_two_flows_read(amounts: list[int | None], files: int | None):
    """It counts once, as the one that is further behind has it; what one of them can't count is not known."""
    sources = [UnreadSource(f"f{n}", "in", "files", amount, "-") for n, amount in enumerate(amounts)]
    others = (UnreadSource("g", "out", "files", 2, "-"), UnreadSource("g", "in", "records", 7, "-"))
    assert Unread((*sources, *others)).amounts() == {
        "files": None if files is None else files + 2,
        "records": 7,
    }


@pytest.mark.parametrize(("streaming", "news"), [(True, 1), (False, 0)])
def test_a_table_that_a_stream_joins(done, streaming: bool, news: int):
    """Its news wake nobody: a stream sees it as it stands when its own source has some."""
    write_rows(done.project.warehouse / "other" / "t", 1)
    source = SourceEntry(
        kind=SourceKind.DELTA, streaming=streaming, name="other.t", location="other/t", format="delta"
    )
    manifest = reads(done, source)
    write_checkpoint(done.checkpoint("bronze").epoch_folder(0), 0, [{"reservoirVersion": 0, "index": -1}])
    assert len(unread(done.project, manifest).sources) == news


def test_what_only_has_the_name_of_an_own_table(done):
    """A table at another place, or a topic, may be called like a table of the pipeline: its news count all the same."""
    other = done.project.warehouse / "other" / "silver"
    write_rows(other, 1)
    write_rows(other, 2)
    source = SourceEntry(
        kind=SourceKind.DELTA, streaming=True, name="silver", location="other/silver", format="delta"
    )
    write_checkpoint(done.checkpoint("bronze").epoch_folder(0), 0, [{"reservoirVersion": 1, "index": -1}])
    (found,) = unread(done.project, reads(done, source)).sources
    assert (found.source, found.amount) == ("silver", 1)


def test_a_table_that_a_view_reads(done):
    """A view is computed anew for it: its news count."""
    other = done.project.warehouse / "other" / "t"
    write_rows(other, 1)
    source = SourceEntry(
        kind=SourceKind.DELTA, streaming=False, name="other.t", location="other/t", format="delta"
    )
    (found,) = unread(done.project, reads(done, source, flow="gold")).sources
    assert (found.flow, found.source) == ("gold", "other.t")
