"""Streams over tables whose rows do not stay."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from headwater.definitions.source import SourceKind
from headwater.graph.manifest import SourceEntry
from headwater.storage.conditions import StoreRefused
from headwater_spark.linting import source_rules
from headwater_spark.linting.flow_case import StreamLeaf
from headwater_spark.linting.source_rules import large_first_loads, streams_of_changing_tables


def reading(warehouse: Path, **options: str) -> Any:
    """A flow that reads the table `raw.shops` as a stream, with options."""
    source = SourceEntry(kind=SourceKind.DELTA, streaming=True, location="raw/shops", options=options)
    lowered = {key.lower(): value for key, value in options.items()}
    return SimpleNamespace(
        pipeline=SimpleNamespace(
            manifest=SimpleNamespace(flow=lambda _: SimpleNamespace(sources=(source,))),
            project=SimpleNamespace(warehouse=warehouse),
            evaluation=SimpleNamespace(output_mode_of=None),
        ),
        flow=SimpleNamespace(name="copy"),
        stream_leaves=[StreamLeaf("delta", {"path": str(warehouse / "raw" / "shops"), **lowered})],
        find=lambda code, message, remedy, calls: (code, message, remedy),
    )


def shops(warehouse: Path, *ids: int, **more: Any) -> str:
    """Write rows of `raw.shops`; returns its folder."""
    path = warehouse / "raw" / "shops"
    path.parent.mkdir(exist_ok=True)
    write_deltalake(str(path), pa.table({"id": pa.array(ids, pa.int64())}), **more)
    return str(path)


@pytest.mark.parametrize("how", [{}, {"predicate": "id = 1"}])
def test_a_table_that_is_written_whole_each_time(tmp_path: Path, how: dict[str, str]):
    """A snapshot that each delivery overwrites stops a stream as an UPDATE does: HW202, and a view is what fits."""
    shops(tmp_path, 1)
    assert list(streams_of_changing_tables(reading(tmp_path))) == []
    shops(tmp_path, 1, mode="overwrite", **how)
    ((code, message, remedy),) = streams_of_changing_tables(reading(tmp_path))
    assert code == "HW202"
    assert "overwrites" in message
    assert "@dp.materialized_view" in remedy
    assert "create_auto_cdc_from_snapshot_flow" in remedy
    assert "skipChangeCommits" not in remedy, "it would pass over every delivery"
    assert list(streams_of_changing_tables(reading(tmp_path, skipChangeCommits="true"))) == []


def test_what_only_moves_rows_or_replaces_none(tmp_path: Path):
    """Compaction, and an overwrite of what had no rows, are nothing to a stream."""
    path = shops(tmp_path, mode="overwrite")
    shops(tmp_path, 1, mode="overwrite")
    shops(tmp_path, 2, mode="append")
    DeltaTable(path).optimize.compact()
    assert list(streams_of_changing_tables(reading(tmp_path))) == []


def test_rows_that_are_corrected(tmp_path: Path):
    """A DELETE among the commits is named; where rows are overwritten as well, both are."""
    path = shops(tmp_path, 1, 2)
    DeltaTable(path).delete("id = 1")
    ((code, message, remedy),) = streams_of_changing_tables(reading(tmp_path))
    assert code == "HW202"
    assert "DELETE" in message
    assert "skipChangeCommits" in remedy
    shops(tmp_path, 3, mode="overwrite")
    assert "DELETE, overwrites" in next(iter(streams_of_changing_tables(reading(tmp_path))))[1]


def test_a_first_load_from_a_large_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Delta's own limit is in files: HW501 where so many of the table's are large, unless the read has a limit or begins behind."""
    for ids in ((1, 2), (3,), (4,), (5,)):
        shops(tmp_path, *ids, mode="append")
    assert list(large_first_loads(reading(tmp_path))) == []
    monkeypatch.setattr(source_rules, "_LARGE", 1000)
    ((code, message, remedy),) = large_first_loads(reading(tmp_path))
    assert (code, "raw/shops" in message, "maxBytesPerTrigger" in remedy) == ("HW501", True, True)
    for option in ("maxFilesPerTrigger", "maxBytesPerTrigger", "startingVersion"):
        assert list(large_first_loads(reading(tmp_path, **{option: "1"}))) == []
    size = sum(file.stat().st_size for file in (tmp_path / "raw" / "shops").glob("*.parquet"))
    monkeypatch.setattr(source_rules, "_FILES_OF_DELTA", 2)
    monkeypatch.setattr(source_rules, "_LARGE", size // 2)
    assert list(large_first_loads(reading(tmp_path))) == []


def test_a_table_that_is_not_there_has_no_first_load(tmp_path: Path):
    """What is missing is for the update's own checks."""
    assert list(large_first_loads(reading(tmp_path))) == []


def test_a_table_that_is_not_to_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where a store denies access to whoever validates, or is away, the rules have nothing to say: executors may have other keys."""

    def denied(*_: object) -> Any:
        raise StoreRefused("The object store denies access.")

    monkeypatch.setattr(source_rules, "delta_table", denied)
    assert list(large_first_loads(reading(tmp_path))) == []
    assert list(streams_of_changing_tables(reading(tmp_path))) == []
