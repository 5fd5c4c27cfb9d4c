"""Tables opened from copies of their logs are the tables that are there now."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from headwater.storage.conditions import StoreRefused
from headwater.storage.delta_tables import append, delta_table, small_table, table_log
from headwater.storage.walking import remove_tree

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def s3(moto):
    """Copies are compared with what delta-rs reads of a server that others have written."""
    return moto


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    folder = tmp_path / "cache"
    monkeypatch.setenv("HEADWATER_CACHE", str(folder))
    return folder


@pytest.fixture
def table(s3):
    return s3.place("places", f"mirror-{next(_NUMBERS)}/t")


def write(table, *values, **how):
    append(table, pa.table({"id": pa.array(values, pa.int64())}), **{"mode": "append", **how})


def same(table):
    """The table as its copy has it, and as it is."""
    copy, own = table_log(table), delta_table(table)
    assert (copy.version(), copy.metadata().id) == (own.version(), own.metadata().id)
    assert (
        pa.table(copy.get_add_actions())["path"].to_pylist()
        == pa.table(own.get_add_actions())["path"].to_pylist()
    )
    return copy


def test_a_copy_follows_its_table(table):
    """Appends, a checkpoint, a clean-up of the log and a table made anew are all seen by the next look."""
    with pytest.raises(TableNotFoundError):
        table_log(table)
    write(table, 1)
    assert same(table).version() == 0
    for value in range(5):
        write(table, value)
    assert same(table).version() == 5
    delta_table(table).create_checkpoint()
    assert same(table).version() == 5
    write(table, 9)
    for version in range(4):
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    assert same(table).version() == 6
    remove_tree(table)
    write(table, 1)
    assert same(table).version() == 0


def test_a_table_that_was_put_back_is_the_older_one(table, s3):
    """Copies of commits that are not there any more are no part of it, also once it has new ones; another process's newer copies stay."""
    for value in range(4):
        write(table, value)
    assert same(table).version() == 3
    for version in (2, 3):
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    assert same(table).version() == 1
    write(table, 8)
    assert same(table).version() == 2
    write(table, 9)
    assert same(table).version() == 3
    listed = (table / "_delta_log").listed()
    del listed[f"{3:020d}.json"]
    with s3.counted() as requests, pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(table), "listed", lambda _: listed)
        assert table_log(table).version() == 3
    assert requests == {"HEAD": 1}


def test_what_is_known_is_not_read_again(table, s3):
    """A second look is one listing; a new commit is one request more, and its rows another one."""
    for value in range(3):
        write(table, value)
    small_table(table)
    with s3.counted() as requests:
        table_log(table)
    assert requests == {"LIST": 1}
    write(table, 7)
    with s3.counted() as requests:
        assert sorted(small_table(table).to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2, 7]
    assert requests == {"LIST": 1, "GET": 2}


@pytest.mark.parametrize("name", ["a b", "a%b", "wä=1", "a?b", "a#b", "a+&:@b", "a\\b"])
def test_names_are_no_parts_of_urls(s3, name):
    """A table is written and read at the very key that its place has, whatever the name would mean in a URL."""
    table = s3.place("places", f"named-{next(_NUMBERS)}/{name}/t")
    write(table, 1)
    write(table, 2)
    assert (table / "_delta_log").is_dir()
    assert same(table).version() == 1
    assert sorted(delta_table(table).to_pyarrow_table()["id"].to_pylist()) == [1, 2]


def test_an_escape_in_a_name_is_refused(s3):
    """delta-rs would write another table than Spark reads."""
    with pytest.raises(StoreRefused, match="two ways"):
        write(s3.place("places", "a%20b/t"), 1)
    assert not s3.place("places", "a b").is_dir()


def test_without_a_cache_the_store_is_read(table, cache):
    """A cache that can't be written to costs requests, and nothing else."""
    write(table, 1)
    cache.write_text("a file where the folder should be")
    assert same(table).version() == 0
    assert isinstance(small_table(table), DeltaTable)
