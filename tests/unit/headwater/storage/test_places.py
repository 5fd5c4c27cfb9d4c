"""One contract for places: a local folder, a store in memory, and S3 spoken over HTTP (moto answers, and the light store of other tests)."""

from __future__ import annotations

import itertools
import os
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from obstore.store import MemoryStore

from headwater.errors import UsageError
from headwater.files.atomic_files import write_atomically
from headwater.storage.access import ObjectStore
from headwater.storage.atomic import (
    change_text,
    create_text,
    read_tagged,
    refuse_without_conditions,
    store_time,
)
from headwater.storage.conditions import NotOnAStore, StoreRefused, StoreUnreachable
from headwater.storage.listing import looked_over
from headwater.storage.object_path import Bucket, ObjectPath
from headwater.storage.place import near, place_of
from headwater.storage.walking import copy_file, copy_files, files_below, names_in, remove_tree

_NUMBERS = itertools.count()


def memory_place() -> ObjectPath:
    return ObjectPath(Bucket(ObjectStore("s3"), "memory", MemoryStore()), "some/where")


def s3_place(s3) -> ObjectPath:
    return s3.place("places", f"contract-{next(_NUMBERS)}")


@pytest.fixture(params=["moto", "s3"], scope="module")
def server(request):
    """Each server that speaks S3."""
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["local", "memory", "moto", "s3"])
def place(request, tmp_path):
    """An empty folder of each kind."""
    if request.param == "local":
        return tmp_path
    return memory_place() if request.param == "memory" else s3_place(request.getfixturevalue(request.param))


@pytest.fixture(params=["memory", "moto", "s3"])
def stored(request):
    """An empty folder on each kind of store."""
    return memory_place() if request.param == "memory" else s3_place(request.getfixturevalue(request.param))


def fill(place, *names):
    for name in names:
        write_atomically(place / name, name)


@pytest.fixture(params=["as it is", "looked over"])
def filled(request, place):
    """A folder with files at several depths, looked at directly and by one listing."""
    fill(
        place,
        "flow.json",
        "0/offsets/0",
        "0/offsets/11",
        "0/offsets/2",
        "0/commits/0",
        "0/state/0/1.zip",
        "1/metadata",
    )
    if request.param == "as it is":
        yield place
    else:
        with looked_over(place):
            yield place


def test_names_of_a_folder(filled):
    """A folder's names are those directly in it, files and folders alike."""
    assert sorted(path.name for path in filled.iterdir()) == ["0", "1", "flow.json"]
    assert sorted(names_in(filled / "0" / "offsets")) == ["0", "11", "2"]
    assert sorted(names_in(filled / "0")) == ["commits", "offsets", "state"]
    assert sorted(names_in(filled / "0" / "state" / "0")) == ["1.zip"]


def test_files_and_folders_are_told_apart(filled):
    """What is there, what is a file and what is a folder is the same everywhere."""
    file, folder, nothing = filled / "flow.json", filled / "0" / "offsets", filled / "0" / "off"
    assert [p.exists() for p in (file, folder, nothing)] == [True, True, False]
    assert [p.is_file() for p in (file, folder, nothing)] == [True, False, False]
    assert [p.is_dir() for p in (file, folder, nothing)] == [False, True, False]
    assert (filled / "0" / "state" / "0" / "1.zip").is_file()
    assert (filled / "0" / "state").is_dir()


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*/*", ["0/commits", "0/offsets", "0/state", "1/metadata"]),
        ("*/", ["0", "1"]),
        ("0/offsets/[0-9]*", ["0/offsets/0", "0/offsets/11", "0/offsets/2"]),
        ("**/*.zip", ["0/state/0/1.zip"]),
        ("*.json", ["flow.json"]),
        ("0/nowhere/*", []),
    ],
)
def test_patterns_match_as_on_a_disk(filled, pattern, expected):
    """Patterns of the checks find the same on a store."""
    assert sorted(path.relative_to(filled).as_posix() for path in filled.glob(pattern)) == expected


def test_a_tree_is_walked_whole(place):
    """Every file is seen at any depth, with its size, and a tree is removed as a whole."""
    fill(place, "a", "b/c", "b/d/e")
    seen = {file.relative_to(place).as_posix(): state.st_size for file, state in files_below(place)}
    assert seen == {"a": 1, "b/c": 3, "b/d/e": 5}
    remove_tree(place / "b")
    assert sorted(names_in(place)) == ["a"]


def test_what_is_not_there(place):
    """Whatever is missing is a FileNotFoundError, or nothing, never an empty text."""
    nothing = place / "nothing"
    for missing in (
        nothing.read_text,
        nothing.read_bytes,
        nothing.stat,
        nothing.unlink,
        lambda: names_in(nothing),
    ):
        with pytest.raises(FileNotFoundError):
            missing()
    nothing.unlink(missing_ok=True)
    assert not nothing.exists()
    assert not nothing.is_dir()
    assert list(nothing.glob("*")) == []


def test_texts_are_replaced_as_a_whole(place):
    """The last text counts, and its size and time are known."""
    file = place / "a" / "b.json"
    write_atomically(file, "one, and more")
    write_atomically(file, "zwei\u2028€")
    assert file.read_text(encoding="utf-8") == "zwei\u2028€"
    assert file.stat().st_size == len("zwei\u2028€".encode())
    assert file.stat().st_mtime_ns == pytest.approx(file.stat().st_mtime * 1e9, rel=1e-9)
    with file.open("rb") as stream:
        assert stream.read(4) == b"zwei"


def test_names_of_places(place):
    """Names, suffixes and parents follow pathlib."""
    file = place / "a" / "b.json"
    assert (file.name, file.stem, file.suffix, file.parent.name) == ("b.json", "b", ".json", "a")
    assert file.with_name("c").parent == file.parent
    assert file.parents[1] == place
    assert file.is_relative_to(place)
    assert not (place / "ab").is_relative_to(place / "a")
    assert file.relative_to(place).as_posix() == "a/b.json"
    with pytest.raises(ValueError):
        file.relative_to(place / "x")
    assert sorted([place / "b", place / "a" / "c", place / "a"]) == [
        place / "a",
        place / "a" / "c",
        place / "b",
    ]


def test_files_are_copied_between_places(place, tmp_path):
    """A file goes from a disk to a store and back."""
    (tmp_path / "from").write_bytes(b"\x00\xff")
    place.mkdir(exist_ok=True)
    copy_file(tmp_path / "from", place / "there")
    copy_file(place / "there", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"\x00\xff"


def test_a_store_keeps_more_than_a_page(request, stored):
    """A listing goes on behind its first thousand names, and leaves out what a stateful stream keeps."""
    # moto takes its time for each.
    slow = stored.bucket.store.endpoint == request.getfixturevalue("moto").endpoint
    many = {"offsets": 1010 if slow else 1100, "state": 10 if slow else 1100}
    with ThreadPoolExecutor(8) as pool:
        keys = [f"0/{folder}/{n}" for folder, count in many.items() for n in range(count)]
        list(pool.map(lambda key: (stored / key).write_text("x"), keys))
    (stored / "0" / "metadata").write_text("x")
    (stored / "1" / "offsets" / "0").write_text("x")
    assert len(names_in(stored / "0" / "offsets")) == many["offsets"]
    with looked_over(stored):
        assert len(names_in(stored / "0" / "offsets")) == many["offsets"]
        assert sorted(names_in(stored / "0")) == ["metadata", "offsets", "state"]
        assert sorted(names_in(stored)) == ["0", "1"]
        assert len(names_in(stored / "0" / "state")) == many["state"]


def test_one_listing_answers_for_a_folder(server):
    """Looking a whole folder over costs one request, however often it is looked at."""
    place = s3_place(server)
    fill(place, *(f"flow{n}/0/offsets/{batch}" for n in range(5) for batch in range(10)))
    with server.counted() as requests, looked_over(place):
        for n in range(5):
            assert (place / f"flow{n}" / "0").is_dir()
            assert not (place / f"flow{n}" / "flow.json").exists()
            assert len(names_in(place / f"flow{n}" / "0" / "offsets")) == 10
            with pytest.raises(FileNotFoundError):
                (place / f"flow{n}" / "flow.json").read_text()
    assert requests == {"LIST": 1}


def test_marks_of_folders_are_no_files(server):
    """Hadoop marks each folder by an object that ends in a slash; neither kind of look shows it."""
    place = s3_place(server)
    for mark in ("", "0/", "0/offsets/", "0/sources/0/"):
        server.put("places", f"{place.key}/{mark}")
    fill(place, "0/offsets/0")
    (place / "0" / "offsets" / "1").write_bytes(b"")  # a damaged entry is none of them
    for context in (looked_over(), looked_over(place)):
        with context:
            assert names_in(place) == ["0"]
            assert sorted(names_in(place / "0" / "offsets")) == ["0", "1"]
            assert (place / "0" / "offsets" / "1").is_file()
            assert not (place / "0" / "offsets").is_file()
            assert not (place / "0" / "sources" / "0").is_file()
    assert sorted(f.name for f, _ in files_below(place / "0" / "offsets")) == ["0", "1"]


def test_writes_are_conditional(stored):
    """An object is made once, and changed only by who has seen what is there."""
    file = stored / "lease"
    assert read_tagged(file) is None
    first = create_text(file, "one")
    assert first is not None
    assert create_text(file, "two") is None
    second = change_text(file, "two", first)
    assert second is not None
    assert change_text(file, "three", first) is None
    assert change_text(stored / "other", "x", first) is None
    seen = read_tagged(file)
    assert seen is not None
    assert seen[:2] == ("two", second)
    assert abs((store_time(stored / "clock") - seen[2]).total_seconds()) < 5
    refuse_without_conditions(stored)
    assert sorted(names_in(stored)) == ["clock", "lease"]


def test_of_many_writers_one_wins(stored):
    """Eight write one object at once, ten times: each time one has written it, and the others know."""
    for round_number in range(10):
        made = stored / f"made-{round_number}"
        with ThreadPoolExecutor(8) as pool:
            tags = list(pool.map(lambda n, made=made: create_text(made, str(n)), range(8)))
        assert sum(tag is not None for tag in tags) == 1
        won = next(n for n, tag in enumerate(tags) if tag is not None)
        assert made.read_text() == str(won)
        with ThreadPoolExecutor(8) as pool:
            changes = list(
                pool.map(lambda n, made=made, tag=tags[won]: change_text(made, f"c{n}", tag), range(8))
            )
        assert sum(tag is not None for tag in changes) == 1


class Careless:
    """A store that forgets the conditions of its writes."""

    def __init__(self, mode):
        self.mode = mode

    def put(self, client, key, data, *, mode="overwrite", **more):
        kept = mode if mode == "create" and self.mode == "changes" else "overwrite"
        return self.real_put(client, key, data, mode=kept, **more)


@pytest.mark.parametrize("ignores", ["both", "changes"])
def test_a_store_without_conditions_is_refused(ignores, monkeypatch):
    """A store that overwrites in spite of the condition is found out, and the probe is taken away."""
    import obstore

    place, careless = memory_place(), Careless(ignores)
    careless.real_put = obstore.put
    monkeypatch.setattr(obstore, "put", careless.put)
    with pytest.raises(StoreRefused, match="ignores conditional writes"):
        refuse_without_conditions(place)
    assert not place.is_dir()


def test_trees_are_copied_by_the_server(stored):
    """A copy has the same names and contents."""
    fill(stored, "a/b", "a/c/d")
    copy_files(stored / "a", stored / "copy")
    assert (stored / "copy" / "c" / "d").read_text() == "a/c/d"
    assert {f.relative_to(stored / "copy").as_posix() for f, _ in files_below(stored / "copy")} == {
        "b",
        "c/d",
    }


def test_a_store_has_no_rename(stored):
    """What can't be done in one step is refused, and no call of the operating system takes the place for a file."""
    fill(stored, "a")
    with pytest.raises(NotOnAStore):
        (stored / "a").rename(stored / "b")
    with pytest.raises(NotOnAStore):
        (stored / "a").open("w")
    with pytest.raises(TypeError):
        os.listdir(stored)  # noqa: PTH208 - what must not work
    with pytest.raises(TypeError):
        open(stored / "a")  # noqa: PTH123, SIM115 - what must not work
    assert (stored / "a").read_text() == "a"


def test_texts_name_places(tmp_path):
    """An address is a place on a store, anything else a path of this machine."""
    place = place_of("s3://bucket/a//b/", store=ObjectStore("s3", "http://h"))
    assert str(place) == "s3://bucket/a/b"
    assert near(place, "s3://other/x").bucket.store == place.bucket.store
    assert place_of(str(tmp_path)) == tmp_path
    assert place_of(place) is place
    for wrong in ("s3:///a", "s3://b/../c", "s3://b?x/c", "s3://AKIA:wJ/al@b/c", "s3://b/c\n", "s3://b/c\td"):
        with pytest.raises(UsageError) as caught:
            place_of(wrong)
        assert "wJ" not in str(caught.value)
    with pytest.raises(NotOnAStore):
        place / "/absolute"


def test_a_bucket_that_is_not_there(server):
    """Reading, listing and writing say that the bucket is missing, and what to look at."""
    place = server.place(f"none-{uuid.uuid4()}", "x")
    for call in (
        place.read_text,
        place.is_dir,
        lambda: place.write_text("x"),
        lambda: create_text(place, "x"),
    ):
        with pytest.raises(StoreRefused, match="bucket is not there"):
            call()


def test_a_server_that_is_not_there():
    """No answer is a passing error that names the place."""
    place = ObjectPath(Bucket(ObjectStore("s3", "http://127.0.0.1:9"), "b"), "x")
    for call in (lambda: read_tagged(place, quick=True), lambda: create_text(place, "x", quick=True)):
        with pytest.raises(StoreUnreachable, match="does not answer") as caught:
            call()
        assert caught.value.transient
        assert caught.value.where == "s3://b/x"
