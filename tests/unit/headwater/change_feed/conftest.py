from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from headwater.storage.place import Place


class Orders:
    """A real Delta table of orders, written by delta-rs."""

    def __init__(self, path: Place, *, feed: bool) -> None:
        self.path = path
        self.configuration = {"delta.enableChangeDataFeed": "true"} if feed else None

    @staticmethod
    def rows(ids: Any, amount: int = 1) -> pa.Table:
        ids = list(ids)
        return pa.table({"id": ids, "amount": [amount] * len(ids), "note": ["-"] * len(ids)})

    def append(self, ids: Any, amount: int = 1) -> None:
        rows = self.rows(ids, amount)
        write_deltalake(str(self.path), rows, mode="append", configuration=self.configuration)

    def overwrite(self, ids: Any) -> None:
        write_deltalake(str(self.path), self.rows(ids), mode="overwrite")

    @property
    def delta(self) -> DeltaTable:
        return DeltaTable(str(self.path))

    @property
    def version(self) -> int:
        return self.delta.version()

    def merge(self, ids: Any, amount: int = 5) -> None:
        merge = self.delta.merge(self.rows(ids, amount), "t.id = s.id", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()


@pytest.fixture
def home(tmp_path):
    """Where the table and the positions of its readers lie."""
    return tmp_path


@pytest.fixture
def orders(home):
    """A table with a change feed; nothing is written yet."""
    return Orders(home / "shop" / "orders", feed=True)


@pytest.fixture
def orders_without_feed(tmp_path):
    """A table that keeps no change feed; nothing is written yet."""
    return Orders(tmp_path / "shop" / "orders", feed=False)
