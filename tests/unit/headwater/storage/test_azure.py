"""Addresses, servers and logins of Azure, as three clients want them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.runtime.conditions import UnsafeStoreSetting, UnsupportedStore
from headwater.runtime.object_store import needs_azure, needs_s3, session_conf
from headwater.storage.access import ObjectStore, client, object_store
from headwater.storage.azure import account_of, hadoop_login
from headwater.storage.conditions import StoreRefused
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import place_of

BUCKET = "lake@company.dfs.core.windows.net"
ROOTS = (f"abfss://{BUCKET}/storage", f"abfss://{BUCKET}/warehouse")
AZURES = ObjectStore("abfss")
LOCAL = object_store("abfss", {"endpoint": "http://127.0.0.1:10000"}, {})


def test_an_address_names_a_container_of_an_account():
    """Container and account are both there, on Azure's own host; all else is refused with the form to write."""
    place = place_of(f"abfss://{BUCKET}/a//b/", store=AZURES)
    assert isinstance(place, ObjectPath)
    assert (str(place), place.key, account_of(place.bucket.name)) == (
        f"abfss://{BUCKET}/a/b",
        "a/b",
        "company",
    )
    assert str(place.parent / "c") == f"abfss://{BUCKET}/a/c"
    wrong = ("lake", "lake@company", "@company.dfs.core.windows.net", "lake@company.blob.core.windows.net")
    for bucket in (*wrong, "lake@company.dfs.core.windows.net:80", "La_ke@company.dfs.core.windows.net"):
        with pytest.raises(StoreRefused, match="names no container") as caught:
            place_of(f"abfss://{bucket}/a")
        assert "abfss://container@account" in caught.value.remedy


@pytest.mark.parametrize(
    ("declared", "environment", "expected"),
    [
        (None, {}, None),
        (None, {"AWS_ENDPOINT_URL": "http://minio:9000"}, None),
        ("http://127.0.0.1:10000", {"AZURE_STORAGE_ENDPOINT": "http://x:1/a"}, "http://127.0.0.1:10000"),
        (None, {"AZURE_STORAGE_ENDPOINT": "http://azurite:10000/company"}, "http://azurite:10000"),
        ("https://azurite.lan", {}, "https://azurite.lan:443"),
    ],
)
def test_the_server(declared, environment, expected):
    """The spec counts before the environment, in which the account may stand behind the host."""
    assert object_store("abfss", {"endpoint": declared}, environment).endpoint == expected


def test_clients_of_one_server():
    """obstore and delta-rs are given the same URL, with the account in it; Azure's own needs nothing."""
    assert LOCAL.delta_options_of(BUCKET) == {
        "azure_storage_endpoint": "http://127.0.0.1:10000/company",
        "allow_http": "true",
    }
    assert AZURES.delta_options_of(BUCKET) == {}
    assert ObjectStore("s3").delta_options_of("b") == ObjectStore("s3").delta_options
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AZURE_STORAGE_ACCOUNT_KEY", "b2YtdGhlLXRlc3Q=")
        chosen = client(LOCAL, BUCKET)
        assert chosen.config["endpoint"] == "http://127.0.0.1:10000/company"
        assert (chosen.config["account_name"], chosen.config["container_name"]) == ("company", "lake")


KEY = {"AZURE_STORAGE_ACCOUNT_KEY": "k3y"}
PRINCIPAL = {"AZURE_CLIENT_ID": "id", "AZURE_CLIENT_SECRET": "s3cret", "AZURE_TENANT_ID": "t"}
WORKLOAD = {"AZURE_CLIENT_ID": "id", "AZURE_TENANT_ID": "t", "AZURE_FEDERATED_TOKEN_FILE": "/token"}
SAS = {"AZURE_STORAGE_SAS_TOKEN": "sv=1"}


@pytest.mark.parametrize(
    ("environment", "kind", "has"),
    [
        ({**KEY, **PRINCIPAL, **WORKLOAD, **SAS}, "SharedKey", ("fs.azure.account.key", "k3y")),
        ({**PRINCIPAL, **WORKLOAD, **SAS}, "OAuth", ("fs.azure.account.oauth2.client.secret", "s3cret")),
        ({**WORKLOAD, **SAS}, "OAuth", ("fs.azure.account.oauth2.token.file", "/token")),
        (SAS, "SAS", ("fs.azure.sas.fixed.token", "sv=1")),
        (
            {},
            "OAuth",
            (
                "fs.azure.account.oauth.provider.type",
                "org.apache.hadoop.fs.azurebfs.oauth2.MsiTokenProvider",
            ),
        ),
    ],
)
def test_hadoop_finds_the_login_that_obstore_finds(environment, kind, has):
    """The same variables in the same order; where there are none, the machine's identity."""
    login = hadoop_login(environment)
    assert login["fs.azure.account.auth.type"] == kind
    assert login[has[0]] == has[1]


def test_a_session_writes_by_renames_that_fail():
    """Delta's and Spark's writers of Azure, over TLS; no settings that only an emulator needs."""
    conf = session_conf(ROOTS, AZURES, {"spark.master": "local[2]"})
    assert needs_azure(conf)
    assert not needs_s3(conf)
    assert conf["spark.delta.logStore.abfss.impl"] == "io.delta.storage.AzureLogStore"
    assert conf["spark.hadoop.fs.abfss.impl"].endswith(".SecureAzureBlobFileSystem")
    assert conf["spark.hadoop.fs.AbstractFileSystem.abfss.impl"].endswith(".Abfss")
    assert not [name for name in conf if "hns" in name or "endpoint" in name or "https" in name]


def test_an_emulator_has_no_hierarchy():
    """It is reached by the API of blobs, and without TLS only where its URL says so."""
    conf = session_conf(ROOTS, LOCAL, {})
    assert conf["spark.hadoop.fs.azure.abfs.endpoint"] == "127.0.0.1:10000"
    assert conf["spark.hadoop.fs.azure.fns.account.service.type"] == "BLOB"
    assert conf["spark.hadoop.fs.azure.always.use.https"] == "false"
    assert conf["spark.hadoop.fs.AbstractFileSystem.abfss.impl"] == "headwater.store.PlainAzure"
    secure = session_conf(ROOTS, object_store("abfss", {"endpoint": "https://azurite:10000"}, {}), {})
    assert secure["spark.hadoop.fs.azure.always.use.https"] == "true"
    assert secure["spark.hadoop.fs.abfss.impl"].endswith(".SecureAzureBlobFileSystem")


@pytest.mark.parametrize(
    "name",
    [
        "spark.delta.logStore.class",
        "spark.delta.logStore.abfss.impl",
        "spark.sql.streaming.checkpointFileManagerClass",
        "spark.hadoop.fs.abfss.impl",
    ],
)
def test_writers_are_not_replaced(name: str):
    """Others could overwrite."""
    with pytest.raises(UnsafeStoreSetting, match=name):
        session_conf(ROOTS, AZURES, {name: "io.delta.storage.LocalLogStore"})


def test_one_kind_of_store_for_a_session():
    """A root in S3 beside one in Azure, and sources in S3, are refused instead of being reached by the wrong settings."""
    with pytest.raises(UnsupportedStore, match="s3"):
        session_conf((ROOTS[0], "s3://bucket/warehouse"), AZURES, {})
    with pytest.raises(UnsupportedStore, match="Sources"):
        session_conf(ROOTS, AZURES, {}, sources=True)


@given(st.sampled_from([*KEY, *PRINCIPAL, *SAS]), st.uuids())
def test_no_credential_becomes_a_setting(variable: str, secret: object):
    """Settings end up on a command line, and options in errors."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(variable, str(secret))
        store = object_store("abfss", {}, {variable: str(secret)})
        shown = (session_conf(ROOTS, store, {}), store, store.delta_options_of(BUCKET), place_of(ROOTS[0]))
        assert str(secret) not in repr(shown)
