"""Which addresses of files can be read, decided before Spark looks for them (decision 0193)."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from tests.object_stores import StoreServer, leading_to

from headwater.errors import UnsupportedSource
from headwater.storage.conditions import StoreRefused
from headwater_spark.sources.file_addresses import addresses, check_address, check_cloud_address

STARTED: dict[str, str] = {"spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}


@pytest.fixture(scope="module")
def s3(light_store: StoreServer) -> Iterator[StoreServer]:
    """A server with a bucket ``raw``."""
    with leading_to(light_store):
        light_store.make_bucket("raw")
        yield light_store


def session(**settings: str):
    """A session as far as its settings go."""
    return SimpleNamespace(conf=SimpleNamespace(get=lambda name, default: settings.get(name, default)))


@pytest.mark.parametrize(
    "path", ["/data", "data", "file:/data", "file:///data", "data/a:b", "hdfs://name/data"]
)
def test_what_is_no_store_is_left_to_spark(path: str):
    """No look, and no refusal."""
    check_address(session(), path)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("s3a://raw/x", "Write s3://"),
        ("s3n://raw/x", "Write s3://"),
        ("S3://raw/x", "Write s3://"),
        ("gs://raw/x", "only s3://"),
        ("abfss://c@a.dfs.core.windows.net/x", "only s3://"),
        ("wasbs://c@a/x", "only s3://"),
        ("s3://AKIA:Hunter2Canary@raw/x", "login"),
    ],
)
@pytest.mark.parametrize("check", [check_address, check_cloud_address])
def test_what_is_refused_by_name(path: str, words: str, check):
    """Other stores, other spellings, and a login in the address, which is not shown."""
    with pytest.raises(UnsupportedSource) as caught:
        check(session(**STARTED), path)
    assert words in str(caught.value)
    assert "Hunter2Canary" not in str(caught.value)


def test_a_session_without_s3():
    """The jars were not fetched; the message says by which line they are."""
    with pytest.raises(UnsupportedSource, match=r"object_store: \{sources: true\}"):
        check_address(session(), "s3://raw/x")


@pytest.mark.parametrize("path", ["hdfs://name/data", "hdfs:/data", "https://host/x"])
def test_cloud_files_lists_by_itself(path: str):
    """What it can't list it can't read."""
    with pytest.raises(UnsupportedSource, match="neither"):
        check_cloud_address(session(), path)


@pytest.mark.parametrize("path", ["s3://gone/x", "s3://gone/*/x", "s3://{raw,gone}/x"])
def test_a_bucket_that_is_not_there(s3: StoreServer, path: str):
    """Refused before Spark retries for minutes; a prefix without objects is left to the read."""
    with pytest.raises(StoreRefused, match="bucket is not there"):
        check_address(session(**STARTED), path)
    with s3.counted() as requests:
        check_address(session(**STARTED), "s3://raw/nothing/*.json")
    assert requests.total() <= 2, requests


def test_what_a_reader_is_given():
    """One path, several, or something else."""
    assert addresses("s3://a") == ["s3://a"]
    assert addresses(["s3://a", "/b"]) == ["s3://a", "/b"]
    assert addresses(None) == addresses(object()) == []
