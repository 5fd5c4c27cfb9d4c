"""Objects are fetched side by side before they are read one by one."""

from __future__ import annotations

import itertools
import threading

import pytest

from headwater.storage.listing import looked_over
from headwater.storage.object_path import ObjectPath
from headwater.storage.reading_ahead import read_ahead

_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def files(s3):
    folder = s3.place("places", f"ahead-{next(_NUMBERS)}")
    for number in range(5):
        (folder / str(number)).write_text(str(number))
    return [folder / str(number) for number in range(5)]


def test_reading_takes_no_request_then(files, s3, monkeypatch):
    """Each object is asked for once, all of them at a time; one that is not there is left to who reads it."""
    together = threading.Barrier(len(files), timeout=20)
    read = ObjectPath.read_bytes

    def read_with_the_others(self):
        together.wait()
        return read(self)

    with looked_over(files[0].parent):
        with s3.counted() as requests, monkeypatch.context() as patch:
            patch.setattr(ObjectPath, "read_bytes", read_with_the_others)
            read_ahead(files)
        assert requests == {"GET": 5}
        with s3.counted() as requests:
            read_ahead([*files, files[0].parent / "none"])
            assert [file.read_text() for file in files] == list("01234")
        assert not requests


def test_nothing_is_fetched_outside_a_look(files, s3, tmp_path):
    """Nobody would remember it; and files of this machine are read where they lie."""
    with s3.counted() as requests:
        read_ahead(files)
        read_ahead([tmp_path / "a", tmp_path / "b"])
    assert not requests
