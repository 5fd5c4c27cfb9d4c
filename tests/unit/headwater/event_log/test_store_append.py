"""Appends to the event log on a store: two requests, and no record lost or doubled."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import obstore
import pytest
from tests.object_stores import leading_to

from headwater.event_log import store_append
from headwater.event_log.event import event_table
from headwater.event_log.reader import events
from headwater.event_log.store_append import COMMITS_KEPT, append_next
from headwater.event_log.writer import EventLogWriter
from headwater.storage.conditions import StoreUnreachable
from headwater.storage.delta_tables import delta_table
from headwater.storage.walking import files_below, remove_tree

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def s3(moto_store):
    """An S3 server that others have written."""
    with leading_to(moto_store):
        moto_store.make_bucket("places")
        yield moto_store


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def state(s3):
    return s3.place("places", f"events-{next(_NUMBERS)}")


def write(state, update, *texts):
    with EventLogWriter(state, "orders", "orders", update) as log:
        for text in texts:
            log.emit("user_action", text)
            log.flush()


def messages(state):
    return [record["message"] for record in events(state)]


def test_a_log_that_was_put_back_is_read_and_goes_on(state):
    """A bucket restored from a backup: what this machine has kept of later records, and of their checkpoint, counts for nothing."""
    texts = [f"m{number}" for number in range(COMMITS_KEPT + 2)]
    for text in texts:
        write(state, f"of {text}", text)
    kept = {path: path.read_bytes() for path, _ in files_below(state)}
    for number in range(COMMITS_KEPT):
        write(state, f"lost{number}", "lost")
    assert len(messages(state)) == len(texts) + COMMITS_KEPT
    remove_tree(state)
    for path, data in kept.items():
        path.write_bytes(data)
    assert messages(state) == texts
    write(state, "u4", "more")
    assert messages(state) == [*texts, "more"]


def test_many_appends_and_a_short_log(state):
    """Records come back in order over several checkpoints, which delta-rs reads as its own."""
    texts = [f"m{number}" for number in range(3 * COMMITS_KEPT)]
    for start in range(0, len(texts), COMMITS_KEPT):
        write(state, f"u{start}", *texts[start : start + COMMITS_KEPT])
    assert messages(state) == texts
    own = delta_table(event_table(state))
    assert sorted(own.to_pyarrow_table()["message"].to_pylist()) == sorted(texts)
    assert any(".checkpoint." in path.name for path in (event_table(state) / "_delta_log").iterdir())


def test_writers_at_once(state):
    """Four writers at once: every record is there once."""
    write(state, "first", "there")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: write(state, f"u{n}", *(f"{n}-{i}" for i in range(5))), range(4)))
    assert sorted(messages(state)) == sorted(["there", *(f"{n}-{i}" for n in range(4) for i in range(5))])


def test_another_writer_that_changes_columns(state, monkeypatch):
    """Where the commit that came first has other columns than ours, nothing is committed behind it."""
    write(state, "first", "there")
    table = event_table(state)
    monkeypatch.setattr(store_append, "_next_version", lambda *_: 0)  # the commit that made the table
    assert append_next(table, delta_table(table).to_pyarrow_table()) is False
    assert messages(state) == ["there"]


@pytest.mark.parametrize("before", [["there"], []])
def test_an_answer_that_was_lost(state, monkeypatch, before):
    """A commit that was written though its answer got lost is not written twice; nor is the one that makes the table."""
    write(state, "first", *before)
    put, lost = obstore.put, []

    def losing(client, key, data, **how):
        answer = put(client, key, data, **how)
        if key.endswith(".json") and how.get("mode") == "create" and not lost:
            lost.append(key)
            raise obstore.exceptions.GenericError("connection closed")
        return answer

    monkeypatch.setattr(obstore, "put", losing)
    write(state, "second", "once")
    assert lost
    assert messages(state) == [*before, "once"]
    assert delta_table(event_table(state)).version() == len(before)


def test_a_store_that_is_away(state, monkeypatch):
    """Records wait while the store does not answer."""
    write(state, "first", "there")
    put = obstore.put

    def away(*_, **__):
        raise obstore.exceptions.GenericError("no route")

    with EventLogWriter(state, "orders", "orders", "second") as log:
        monkeypatch.setattr(obstore, "put", away)
        log.emit("user_action", "later")
        with pytest.raises(Exception, match="could not be written"):
            log.flush()
        monkeypatch.setattr(obstore, "put", put)
    assert messages(state) == ["there", "later"]
    assert StoreUnreachable.transient


@pytest.mark.parametrize(("commits", "due"), [(COMMITS_KEPT - 1, False), (COMMITS_KEPT, True)])
def test_a_checkpoint_is_due_after_so_many_commits(monkeypatch, commits, due):
    """With the last of the commits that may lie behind a checkpoint, not one later."""
    names = [f"{3:020d}.checkpoint.parquet", *(f"{number:020d}.json" for number in range(4 + commits))]

    class Table:
        def __truediv__(self, _):
            return self

        def listed(self):
            return names

    asked = []
    monkeypatch.setattr(store_append, "mirrored_log", asked.append)
    store_append.keep_short(Table(), compact=False)
    assert len(asked) == due
