"""Both limits of a batch at once: Spark's file source takes either a number of files or of bytes.

Each start reads what is there and ends, so the files that wait are known when it begins. From them the one limit is chosen that
keeps every batch within both. Decision 0176.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from headwater.metrics.file_listing import ListedFile
from headwater_spark.sources.cloud_files.options import CloudFilesOptions


@dataclass(frozen=True)
class BatchLimit:
    """What Spark is told: files or bytes, not both."""

    files: int | None = None
    bytes: int | None = None


def with_one_limit(options: CloudFilesOptions, waiting: Iterable[ListedFile]) -> CloudFilesOptions:
    """The options with at most one limit, for the files that are to be read."""
    if options.max_files is None or options.max_bytes is None:
        return options
    # The order in which Spark's file source takes them.
    sizes = [file.size for file in sorted(waiting, key=lambda file: file.modified_ns // 1_000_000)]
    limit = one_limit(sizes, options.max_files, options.max_bytes)
    return replace(options, max_files=limit.files, max_bytes=limit.bytes)


def one_limit(sizes: Sequence[int], max_files: int, max_bytes: int) -> BatchLimit:
    """The one limit under which each batch has at most ``max_files`` files and ``max_bytes`` bytes, in as few batches as it can.

    Bytes are a soft limit, as on Lakeflow: a file that is larger is a batch of its own.

    Args:
        sizes: of the files in bytes, in the order in which they are read.
    """
    by_files = _largest(
        max_files, lambda files: all(sum(b) <= max_bytes or len(b) == 1 for b in _of_files(sizes, files))
    )
    by_bytes = _largest(max_bytes, lambda size: all(len(b) <= max_files for b in _of_bytes(sizes, size)))
    if by_bytes is None or (
        by_files is not None and len(_of_files(sizes, by_files)) <= len(_of_bytes(sizes, by_bytes))
    ):
        return BatchLimit(files=by_files)
    return BatchLimit(bytes=by_bytes)


def _largest(most: int, fits: Callable[[int], bool]) -> int | None:
    """The limit itself, or the largest of its halves, quarters ... that fits; None where not even 1 does."""
    while most >= 1:
        if fits(most):
            return most
        most //= 2
    return None


def _of_files(sizes: Sequence[int], files: int) -> list[Sequence[int]]:
    return [sizes[start : start + files] for start in range(0, len(sizes), files)]


def _of_bytes(sizes: Sequence[int], most: int) -> list[list[int]]:
    batches: list[list[int]] = []
    total = 0
    for size in sizes:
        # As Spark: the first file of a batch is taken in any case.
        if batches and total + size <= most:
            batches[-1].append(size)
            total += size
        else:
            batches.append([size])
            total = size
    return batches
