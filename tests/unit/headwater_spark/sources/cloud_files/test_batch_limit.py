"""Two limits of a batch become the one that Spark's file source takes, and no batch breaks either."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.metrics.file_listing import ListedFile
from headwater_spark.sources.cloud_files.batch_limit import BatchLimit, one_limit, with_one_limit
from headwater_spark.sources.cloud_files.options import parse_options


def batches(sizes: list[int], limit: BatchLimit) -> list[list[int]]:
    """The batches of Spark's file source, which takes the first file in any case."""
    left, taken = list(sizes), []
    while left:
        count = 1
        while count < len(left):
            if limit.files is not None and count + 1 > limit.files:
                break
            if limit.bytes is not None and sum(left[: count + 1]) > limit.bytes:
                break
            count += 1
        taken.append(left[:count])
        left = left[count:]
    return taken


@given(
    st.lists(st.integers(0, 1000), max_size=60),
    st.integers(1, 20),
    st.integers(1, 3000),
)
def test_no_batch_breaks_a_limit(sizes: list[int], files: int, size: int):
    """Whatever the files are: at most so many, and so many bytes unless it is one file; nothing is left out."""
    limit = one_limit(sizes, files, size)
    assert (limit.files is None) != (limit.bytes is None)
    found = batches(sizes, limit)
    assert [each for batch in found for each in batch] == sizes
    for batch in found:
        assert len(batch) <= files
        assert sum(batch) <= size or len(batch) == 1


@pytest.mark.parametrize(
    ("sizes", "files", "size", "expected"),
    [
        ([], 5, 100, BatchLimit(files=5)),
        ([10] * 20, 5, 100, BatchLimit(files=5)),
        ([10] * 20, 50, 100, BatchLimit(bytes=100)),
        # One large file among many small ones: it is a batch of its own, and the others keep their thousand.
        ([1] * 2000 + [10**9] + [1] * 2000, 1000, 10**6, BatchLimit(bytes=10**6 // 2**10)),
        # Neither by itself: bytes would put all empty files into one batch.
        ([0] * 7 + [60, 60], 3, 100, BatchLimit(files=1)),
    ],
)
def test_the_limit_that_needs_fewer_batches(sizes: list[int], files: int, size: int, expected: BatchLimit):
    """Where one of the two binds in every batch it is taken as it is, else a lower one."""
    assert one_limit(sizes, files, size) == expected


def test_files_are_taken_as_spark_takes_them():
    """By their time of change: the sizes of neighbours in that order decide."""
    options = parse_options(
        {"cloudFiles.format": "json", "cloudFiles.maxFilesPerTrigger": "2", "cloudFiles.maxBytesPerTrigger": "10"},
        schema_given=False,
    )  # fmt: skip
    # By name 9 and 1 come together, by time 9 and 9.
    files = [
        ListedFile("/a", 9, 1_000_000),
        ListedFile("/b", 1, 3_000_000),
        ListedFile("/c", 9, 2_000_000),
        ListedFile("/d", 1, 4_000_000),
    ]
    by_time = with_one_limit(options, files)
    assert (by_time.max_files, by_time.max_bytes) == (None, 10)
    assert with_one_limit(by_time, files) is by_time
