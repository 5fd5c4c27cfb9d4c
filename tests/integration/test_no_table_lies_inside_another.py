"""A table in another one's folder is refused before anything is written."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from headwater.checkpoints.conditions import TableNested
from headwater.errors import DuplicateDataset

INNER = """
@dp.materialized_view(name="shop.orders.items", ARGUMENTS)
def items():
    return spark.range(1)
"""
OUTER = """
@dp.materialized_view
def orders():
    return spark.range(2)
"""


def test_declared_and_on_disk(pipeline):
    """By names of three parts, by a path with `..`, and around or inside another pipeline's table."""
    inner = INNER.replace("ARGUMENTS", "")
    case = pipeline(inner + OUTER)
    with pytest.raises(DuplicateDataset, match="would lie inside the table of 'orders'"):
        case.manifest()
    case.rewrite(INNER.replace("ARGUMENTS", "path='x/../shop/orders'") + OUTER)
    with pytest.raises(DuplicateDataset, match="are one folder"):
        case.manifest()
    assert case.nothing_written()
    theirs = case.warehouse / "shop" / "orders" / "items"
    write_deltalake(str(theirs), pa.table({"id": [1]}))
    case.rewrite(OUTER)
    with pytest.raises(TableNested, match="would lie around a table"):
        case.update()
    assert not (case.table("orders") / "_delta_log").exists()
    shutil.rmtree(theirs)
    assert case.update().state == "COMPLETED"
    case.rewrite(inner)
    with pytest.raises(TableNested, match="lies inside a table"):
        case.update()
    assert not theirs.exists()
