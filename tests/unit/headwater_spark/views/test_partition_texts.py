"""Of a view that is partitioned by a text, rows with NULL and with the texts that are stored as NULL are one part."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from headwater_spark.views.partition_texts import has_null_partition, stored_alike

FOLDER = "__HIVE_DEFAULT_PARTITION__"


def test_what_is_stored_as_null_goes_together() -> None:
    """Whichever of them was touched, in each column by itself; in other columns they are values of their own."""
    assert stored_alike([("", "a")], [True, False]) == [("", "a"), (None, "a"), (FOLDER, "a")]
    assert set(stored_alike([(None, "")], [True, True])) == set(product((None, "", FOLDER), repeat=2))
    assert stored_alike([("b", None), (FOLDER, "")], [True, False]) == [
        ("b", None), (FOLDER, ""), (None, ""), ("", ""),
    ]  # fmt: skip
    assert stored_alike([("", FOLDER), (0, None)], [False, False]) == [("", FOLDER), (0, None)]


def test_whether_there_is_such_a_partition(tmp_path: Path) -> None:
    """By the table's log."""
    for name, values in (("some", ["a", None]), ("none", ["a", "b"])):
        rows = pa.table({"K": pa.array(values, pa.string()), "n": pa.array([1, 2], pa.int64())})
        write_deltalake(str(tmp_path / name), rows, partition_by=["K"])
    assert has_null_partition(tmp_path / "some", ["k"])
    assert not has_null_partition(tmp_path / "none", ["k"])
