"""Tables that Airflow's tasks and triggers know by their names, where the warehouse is on an object store."""

from __future__ import annotations

import pytest

from headwater.runtime.conditions import UnsupportedStore
from headwater.storage.object_path import ObjectPath
from headwater_airflow.roots import storage_folder, warehouse_table


def test_by_the_environment():
    """The environment says where the roots are and how their store is reached."""
    environment = {
        "HEADWATER_WAREHOUSE": "s3://lake/warehouse",
        "HEADWATER_STORAGE": "s3://lake/storage",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    }
    table = warehouse_table("shop.orders", environment)
    assert str(table) == "s3://lake/warehouse/shop/orders"
    assert isinstance(table, ObjectPath)
    assert (table.bucket.store.endpoint, table.bucket.store.path_style) == ("http://127.0.0.1:9", True)
    assert str(storage_folder(environment)) == "s3://lake/storage"


def test_other_stores_are_refused():
    """What Headwater can't write to holds no position either."""
    with pytest.raises(UnsupportedStore):
        storage_folder({"HEADWATER_STORAGE": "gs://lake/storage"})


def test_storage_on_azure():
    """The variables of Azure lead there; a connection for S3 in the same environment is not looked up."""
    address = "abfss://lake@company.dfs.core.windows.net/storage"
    environment = {"HEADWATER_STORAGE": address, "HEADWATER_STORE_CONNECTION": "my_s3"}
    storage = storage_folder({**environment, "AZURE_STORAGE_ENDPOINT": "http://127.0.0.1:10000/company"})
    assert isinstance(storage, ObjectPath)
    assert (str(storage), storage.bucket.access.endpoint) == (address, "http://127.0.0.1:10000")
