"""Of a view that is partitioned by a text, rows with the empty text and with NULL are one part."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from headwater_spark.views.partition_texts import has_null_partition, stored_alike


def test_the_empty_text_and_null_go_together() -> None:
    """Whichever of them was touched; in other columns they are two values."""
    assert stored_alike([("", "a")], [True, False]) == [("", "a"), (None, "a")]
    assert stored_alike([("b", None), (None, "")], [True, False]) == [("b", None), (None, ""), ("", "")]
    assert stored_alike([("", None), (0, None)], [False, False]) == [("", None), (0, None)]


def test_whether_there_is_such_a_partition(tmp_path: Path) -> None:
    """By the table's log."""
    for name, values in (("some", ["a", None]), ("none", ["a", "b"])):
        rows = pa.table({"K": pa.array(values, pa.string()), "n": pa.array([1, 2], pa.int64())})
        write_deltalake(str(tmp_path / name), rows, partition_by=["K"])
    assert has_null_partition(tmp_path / "some", ["k"])
    assert not has_null_partition(tmp_path / "none", ["k"])
