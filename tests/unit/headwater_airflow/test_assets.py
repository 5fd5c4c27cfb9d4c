"""The asset of a table, for DAGs of others."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from headwater_airflow import assets


def test_whose_asset_there_is(monkeypatch: pytest.MonkeyPatch):
    """Of a table, and of nothing else that an update runs: a sink writes nothing that could be read from here."""
    tasks = [
        SimpleNamespace(dataset=name, is_table=name != "out", location=f"shop/{name}")
        for name in ("daily", "out")
    ]
    monkeypatch.setattr(assets, "pipeline_project", lambda _: SimpleNamespace(pipeline_id="p"))
    monkeypatch.setattr(assets, "known_tables", lambda _: tasks)
    assert assets.table_asset("orders", "daily").uri == "x-delta://p/shop/daily"
    for name in ("out", "none"):
        with pytest.raises(KeyError, match=f"no table '{name}'; it has: daily"):
            assets.table_asset("orders", name)
