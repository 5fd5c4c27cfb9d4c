"""No table lies inside another one: not by its declaration, not by what is on disk."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from headwater.checkpoints.conditions import TableNested
from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.dataset_name import DatasetName
from headwater.definitions.expectation import Expectation, ViolationAction
from headwater.definitions.source_location import SourceLocation
from headwater.errors import DuplicateDataset
from headwater.graph.manifest import DatasetEntry, Manifest
from headwater.graph.pipeline_project import PipelineProject, open_project
from headwater.graph.table_places import (
    Place,
    declared_places,
    refuse_around_sources,
    refuse_around_tables,
    refuse_nested_on_disk,
    refuse_overlaps,
)

RULE = Expectation("positive", "id > 0", ViolationAction.QUARANTINE)


@pytest.fixture
def project(tmp_path: Path) -> PipelineProject:
    """A pipeline of the schema ``shop``."""
    folder = tmp_path / "sources" / "mine"
    folder.mkdir(parents=True)
    (folder / "pipeline.yml").write_text("name: mine\nschema: shop\n")
    return open_project(
        folder, storage=tmp_path / "storage", warehouse=tmp_path / "warehouse", environment={}
    )


def dataset(name: str, path: str | None = None, *, rules: bool = False, private: bool = False) -> Dataset:
    """A declared table."""
    return Dataset(
        name,
        DatasetName.parse(name, catalog=None, schema="shop"),
        DatasetKind.STREAMING_TABLE,
        location=SourceLocation("tables.py", 3),
        path=path,
        expectations=(RULE,) if rules else (),
        private=private,
    )


def check(project: PipelineProject, *datasets: Dataset) -> None:
    """What the resolution of a graph does."""
    places = list(declared_places(project, datasets))
    refuse_overlaps(places)
    refuse_around_sources(project, places)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (dataset("orders"), dataset("shop.orders.items")),
        (dataset("shop.orders.items"), dataset("orders")),
        (dataset("orders"), dataset("a", "shop/orders")),
        (dataset("orders"), dataset("a", "x/../shop/orders")),
        (dataset("orders"), dataset("a", "x/../shop/orders/deep/er")),
        (dataset("orders"), dataset("a", "shop")),
        (dataset("orders"), dataset("a", ".")),
        (dataset("orders"), dataset("a", "link")),
        (dataset("orders"), dataset("a", "link/below")),
        (dataset("orders", "link"), dataset("shop.orders.items")),
        (dataset("orders", rules=True), dataset("orders_quarantine")),
        (dataset("orders", rules=True), dataset("shop.orders_quarantine.items")),
        (dataset("a", "deep/orders/"), dataset("b", "deep/orders")),
        (dataset("a", "../storage/pipelines/mine/system/auto_cdc/a"), dataset("b")),
        (dataset("a", "../storage"), dataset("b")),
        (dataset("a", "../sources/mine"), dataset("b")),
        (dataset("a", "../sources"), dataset("b")),
    ],
)
def test_one_folder_or_one_inside_the_other(project: PipelineProject, first: Dataset, second: Dataset):
    """Names of three parts, paths, links, quarantines, Headwater's own folders, the sources."""
    (project.warehouse / "shop" / "orders").mkdir(parents=True)
    (project.warehouse / "link").symlink_to("shop/orders")
    with pytest.raises(DuplicateDataset) as caught:
        check(project, first, second)
    assert "tables.py:3" in caught.value.where
    assert caught.value.remedy


def test_tables_beside_each_other(project: PipelineProject):
    """Names that only begin alike are no trouble, nor are tables in other trees."""
    check(
        project,
        *(dataset(name) for name in ("orders", "orders_items", "shop.orders2", "main.shop.orders", "a.orders.items")),
        dataset("kept", rules=True),
        dataset("own", private=True),
        dataset("elsewhere", "../elsewhere/orders"),
    )  # fmt: skip


def test_many_tables_are_compared_quickly(tmp_path: Path):
    """Each folder is looked at once, not with every other."""
    refuse_overlaps(Place(tmp_path / f"s{n % 7}" / f"t{n}", f"t{n}", n) for n in range(3000))


def table(path: Path) -> Path:
    """A Delta table with a row."""
    write_deltalake(str(path), pa.table({"id": [1]}))
    return path


def graph(location: str, quarantine: str | None = None) -> Manifest:
    """A graph with one table."""
    entry = DatasetEntry(
        name="orders", kind=DatasetKind.STREAMING_TABLE, location=location, quarantine=quarantine
    )
    return Manifest(
        headwater_version="0",
        pipeline_id="mine",
        pipeline_name="mine",
        schema_name="shop",
        source_hash="-",
        datasets=(entry,),
        flows=(),
    )


@pytest.mark.parametrize(
    ("there", "location", "quarantine"),
    [
        ("shop/orders/items", "shop/orders", None),
        ("shop/orders/x/y/z", "shop/orders", None),
        ("shop", "shop/orders", None),
        (".", "shop/orders", None),
        ("shop/orders_quarantine/items", "shop/orders", "shop/orders_quarantine"),
        ("shop/orders", "link/items", None),
    ],
)
def test_tables_of_others(project: PipelineProject, there: str, location: str, quarantine: str | None):
    """Of another pipeline, of an older version, of anybody: who comes second is refused, with the folder."""
    (project.warehouse / "shop" / "orders").mkdir(parents=True)
    (project.warehouse / "link").symlink_to("shop/orders")
    table(project.warehouse / there)
    with pytest.raises(TableNested) as caught:
        refuse_nested_on_disk(project, graph(location, quarantine))
    assert str((project.warehouse / there).resolve()) in caught.value.what
    refuse_nested_on_disk(project, graph(location, quarantine), ["other"])


def test_what_is_no_table(project: PipelineProject):
    """The own table with its own files, a log without a commit above, tables beside it."""
    own = table(project.warehouse / "shop" / "orders")
    (own / "part=1").mkdir()
    table(project.warehouse / "shop" / "items")
    (project.warehouse / "_delta_log").mkdir()
    refuse_nested_on_disk(project, graph("shop/orders", "shop/orders_quarantine"))
    refuse_around_tables(own)
    refuse_around_tables(project.warehouse / "nothing")


def test_a_folder_around_a_table_stays(project: PipelineProject):
    """What is about to be renamed or removed is looked through."""
    outer = table(project.warehouse / "shop" / "orders")
    inner = table(outer / "day=1" / "items")
    with pytest.raises(TableNested, match="would go with it") as caught:
        refuse_around_tables(outer)
    assert caught.value.where == str(inner)
