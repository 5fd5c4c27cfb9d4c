"""The contract of places, of which S3 is asked the same in ``test_places``, on Azurite."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from tests.azure.azurite import Azurite
from tests.unit.headwater.storage.test_places import (
    fill,
    filled,
    test_a_bucket_that_is_not_there,
    test_a_store_has_no_rename,
    test_a_store_keeps_more_than_a_page,
    test_a_tree_is_walked_whole,
    test_files_and_folders_are_told_apart,
    test_files_are_copied_between_places,
    test_names_of_a_folder,
    test_names_of_places,
    test_of_many_writers_one_wins,
    test_patterns_match_as_on_a_disk,
    test_texts_are_replaced_as_a_whole,
    test_trees_are_copied_by_the_server,
    test_what_is_not_there,
    test_writes_are_conditional,
)

from headwater.errors import UpdateInProgress
from headwater.event_log.reader import events
from headwater.event_log.writer import EventLogWriter
from headwater.leases.conditional_store import StoredObject
from headwater.leases.storage_lease import storage_lease
from headwater.moves.stored_folders import contents
from headwater.storage.listing import looked_over
from headwater.storage.object_path import ObjectPath
from headwater.storage.walking import contents_below, files_below, names_in, remove_files, remove_tree

__all__ = [
    "filled",
    "test_a_bucket_that_is_not_there",
    "test_a_store_has_no_rename",
    "test_a_store_keeps_more_than_a_page",
    "test_a_tree_is_walked_whole",
    "test_files_and_folders_are_told_apart",
    "test_files_are_copied_between_places",
    "test_names_of_a_folder",
    "test_names_of_places",
    "test_of_many_writers_one_wins",
    "test_patterns_match_as_on_a_disk",
    "test_texts_are_replaced_as_a_whole",
    "test_trees_are_copied_by_the_server",
    "test_what_is_not_there",
    "test_writes_are_conditional",
]
_NUMBERS = itertools.count()


@pytest.fixture
def place(server: Azurite) -> ObjectPath:
    """An empty folder."""
    return server.place("places", f"contract-{next(_NUMBERS)}")


@pytest.fixture
def stored(place: ObjectPath) -> ObjectPath:
    """The same, by the name that tests of stores alone have for it."""
    return place


@pytest.fixture
def moto(server: Azurite) -> Azurite:
    """The server that takes its time."""
    return server


@pytest.mark.parametrize("look", [False, True], ids=["as it is", "looked over"])
def test_marks_of_folders_are_no_files(server: Azurite, place: ObjectPath, look: bool):
    """Hadoop's marks have the names of the folders; empty files are files all the same."""
    for mark in ("0", "0/offsets", "0/sources", "0/sources/0"):
        server.put_mark(place / mark)
    fill(place, "0/offsets/0")
    (place / "0" / "offsets" / "1").write_bytes(b"")
    with looked_over(*([place] if look else [])):
        assert names_in(place) == ["0"]
        assert sorted(names_in(place / "0" / "offsets")) == ["0", "1"]
        assert (place / "0" / "offsets" / "1").is_file()
        for folder in ("0/offsets", "0/sources", "0/sources/0"):
            assert not (place / folder).is_file()
        assert (place / "0" / "offsets").is_dir()
    assert sorted(contents(place)) == ["0/offsets/0", "0/offsets/1"]
    assert sorted(f.name for f, _ in contents_below(place)) == ["0", "1"]


def test_a_tree_goes_with_its_marks(server: Azurite, place: ObjectPath):
    """Nothing is left of a removed folder that Hadoop would take for one; what is not there is passed over."""
    for mark in ("t", "t/empty", "t/deep"):
        server.put_mark(place / mark)
    fill(place, "t/deep/a", "t/b", "u")
    remove_files([place / "t" / "gone", place / "t" / "b", place / "t" / "gone too"])
    assert not (place / "t" / "b").exists()
    remove_tree(place / "t")
    assert [file.name for file, _ in files_below(place)] == ["u"]
    assert not (place / "t").exists()


def test_folders_of_states_are_left_out(place: ObjectPath):
    """A look over a folder with several states knows all that is in none of them."""
    fill(place, *(f"f{n}/0/{name}" for n in range(3) for name in ("state/0/1.zip", "offsets/0", "tail")))
    with looked_over(place):
        for n in range(3):
            assert sorted(names_in(place / f"f{n}" / "0")) == ["offsets", "state", "tail"]
            assert names_in(place / f"f{n}" / "0" / "state" / "0") == ["1.zip"]


def test_the_lease_is_an_object(place: ObjectPath, tmp_path, monkeypatch: pytest.MonkeyPatch):
    """One holder at a time, after the store has shown that it honours conditions; its age is by the store's clock."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path))
    with storage_lease(place, "one"):
        with pytest.raises(UpdateInProgress), storage_lease(place, "two"):
            pass
        seen = StoredObject(place / "update.lease").read()
        assert seen is not None
        assert timedelta(seconds=-2) <= seen.age <= timedelta(seconds=20)
    with storage_lease(place, "two"):
        pass


def test_the_event_log_is_a_table(place: ObjectPath, tmp_path, monkeypatch: pytest.MonkeyPatch):
    """delta-rs commits there, and what it has written is read by another look."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path))
    for number in range(3):
        with EventLogWriter(place, "orders", "orders", f"u{number}") as log:
            log.emit("user_action", str(number))
    assert [event["message"] for event in events(place)] == ["0", "1", "2"]
