"""What this machine has read of a store is not asked for again, and counts only while it is there as it was."""

from __future__ import annotations

import itertools

import pytest

from headwater.storage import known_contents
from headwater.storage.listing import looked_over

_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    folder = tmp_path / "cache"
    monkeypatch.setenv("HEADWATER_CACHE", str(folder))
    return folder


@pytest.fixture
def place(s3):
    place = s3.place("places", f"known-{next(_NUMBERS)}")
    for name in ("one", "two"):
        (place / "folder" / name).write_text(name)
    return place


def texts(place, *names):
    with looked_over(place):
        return [(place / "folder" / name).read_text() for name in names or ("one", "two")]


def test_what_was_read_is_known(place, s3):
    """The second look is one listing; a folder that no look has listed is read each time."""
    assert texts(place) == ["one", "two"]
    with s3.counted() as requests:
        assert texts(place) == ["one", "two"]
    assert requests == {"LIST": 1}
    with s3.counted() as requests, looked_over(place / "other"):
        assert (place / "folder" / "one").read_text() == "one"
    assert requests == {"LIST": 1, "GET": 1}


def test_what_was_replaced_is_read(place, s3):
    """Of the same length, of another one, and by the same content again: only what is new is asked for."""
    texts(place)
    (place / "folder" / "one").write_text("eno")
    with s3.counted() as requests:
        assert texts(place) == ["eno", "two"]
    assert requests == {"LIST": 1, "GET": 1}
    (place / "folder" / "two").write_text("more than two")
    assert texts(place) == ["eno", "more than two"]
    (place / "folder" / "two").unlink()
    with pytest.raises(FileNotFoundError):
        texts(place)


def test_what_is_replaced_while_it_is_read_is_not_kept(place):
    """The content is that of another object than the one that was listed."""
    with looked_over(place):
        (place / "folder" / "one").write_text("eno")
        assert (place / "folder" / "one").read_text() == "eno"
    (place / "folder" / "one").write_text("one")
    assert texts(place, "one") == ["one"]


def test_names_that_are_gone_are_forgotten(place, cache):
    """The file of a folder has what is there: a checkpoint that runs for years does not fill this machine."""
    texts(place)
    (place / "folder" / "two").unlink()
    (place / "folder" / "three").write_text("three")
    texts(place, "one", "three")
    (file,) = (cache / "objects").iterdir()
    assert '"two"' not in file.read_text()
    assert '"three"' in file.read_text()


@pytest.mark.parametrize("content", ["", "[1]", '{"one": 3}', '{"one": [[3, 0, "t"], "%"]}'])
def test_a_damaged_cache_knows_nothing(place, cache, content):
    """The store is asked, and the cache is written again."""
    texts(place)
    (file,) = (cache / "objects").iterdir()
    file.write_text(content)
    assert texts(place) == ["one", "two"]
    assert "two" in file.read_text()


def test_a_cache_that_cant_be_written_to_is_done_without(place, cache):
    """It costs requests, and nothing else."""
    cache.write_text("a file where the folder should be")
    assert texts(place) == texts(place) == ["one", "two"]


def test_large_objects_are_not_kept(place, monkeypatch, s3):
    """They would fill the machine's disk."""
    monkeypatch.setattr(known_contents, "MOST_BYTES", 2)
    texts(place)
    with s3.counted() as requests:
        texts(place)
    assert requests["GET"] == 2
