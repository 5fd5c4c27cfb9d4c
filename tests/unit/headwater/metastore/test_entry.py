"""The entry of a table: its name, what it says, and whose it is."""

from __future__ import annotations

import pytest

from headwater.definitions.dataset_name import DatasetName
from headwater.metastore.column_types import Column
from headwater.metastore.entry import Entry, EntryName, Mark, columns_of, mark_of, published, table_of
from headwater.metastore.thrift_binary import Field, Kind, Pairs

ENTRY = Entry(
    EntryName("shop", "sales"), "sales", "orders", "id-1", "/wh/shop/sales", (Column("id", "bigint", "key"),), "all sales",
    {"delta.enableChangeDataFeed": "true", "team": "blue"},
)  # fmt: skip


def changed(**what):
    """The entry with other values."""
    return Entry(**{**{name: getattr(ENTRY, name) for name in ENTRY.__dataclass_fields__}, **what})


def parameters(table):
    """The properties of a table."""
    return table[9].value.values


def with_parameters(table, **more):
    """The table after somebody has set properties."""
    return {**table, 9: Field(Kind.MAP, Pairs(Kind.STRING, Kind.STRING, {**parameters(table), **more}))}


@pytest.mark.parametrize(
    ("catalog", "text", "name"),
    [
        (None, "sales", "shop.sales"),
        (None, "Mart.Sales", "mart.sales"),
        ("main", "sales", "main_shop.sales"),
        ("Main", "mart.sales", "main_mart.sales"),
        (None, "main.mart.sales", "main_mart.sales"),
    ],
)
def test_three_parts_become_two(catalog, text, name):
    """A catalog becomes the beginning of the database's name; a metastore has no capital letters."""
    assert str(EntryName.of(DatasetName.parse(text, catalog=catalog, schema="shop"))) == name


@pytest.mark.parametrize(
    ("place", "location"),
    [
        ("/wh/shop/a b", "file:/wh/shop/a b"),
        ("s3://lake/wh/shop/a", "s3a://lake/wh/shop/a"),
        ("gs://lake/wh", "gs://lake/wh"),
    ],
)
def test_places_are_spelled_for_other_readers(place, location):
    """Hadoop knows `s3a://`, and paths as URIs that are not percent-encoded."""
    assert changed(place=place).location == location


def test_an_entry_is_what_spark_registers():
    """An external table whose provider is Delta, with columns, comment and properties, and whose it is."""
    table = table_of(ENTRY, None, "ada", 1_700_000_000)
    assert (table[1].value, table[2].value, table[3].value, table[12].value) == (
        "sales",
        "shop",
        "ada",
        "EXTERNAL_TABLE",
    )
    assert columns_of(table) == (Column("id", "bigint", "key"),)
    storage = table[7].value
    assert storage[2].value == "file:/wh/shop/sales"
    assert storage[7].value[3].value.values["path"] == "file:/wh/shop/sales"
    expected = {
        "EXTERNAL": "TRUE",
        "spark.sql.sources.provider": "delta",
        "comment": "all sales",
        "team": "blue",
    }
    assert expected.items() <= parameters(table).items()
    assert mark_of(table) == Mark("orders", "id-1")


def test_nothing_changes_where_all_is_said():
    """The same entry again is equal to what is there, however the server spells the place, and with what others have set."""
    table = with_parameters(table_of(ENTRY, None, "ada", 1), grants="kept", transient_lastDdlTime="5")
    table[7] = Field(Kind.STRUCT, {**table[7].value, 2: Field(Kind.STRING, "file:///wh/shop/sales")})
    table[17] = Field(Kind.STRING, "of a later version")
    assert table_of(ENTRY, table, "bob", 2) == table


def test_a_change_keeps_what_others_have_set():
    """Owner, unknown fields and properties of others stay; a property and a comment that the table has lost go."""
    before = with_parameters(table_of(ENTRY, None, "ada", 1), grants="kept")
    after = table_of(changed(comment="", properties={"team": "red"}, table_id="id-2"), before, "bob", 2)
    assert after[3].value == "ada"
    assert parameters(after)["grants"] == "kept"
    assert parameters(after)["team"] == "red"
    assert "delta.enableChangeDataFeed" not in parameters(after)
    assert "comment" not in parameters(after)
    assert mark_of(after) == Mark("orders", "id-2")


def test_a_damaged_list_of_properties_ends_nothing():
    """Somebody has written nonsense into the property that lists ours."""
    for text in ("{", "5", "[5]"):
        before = with_parameters(table_of(ENTRY, None, "ada", 1), **{"headwater.properties": text})
        assert parameters(table_of(ENTRY, before, "ada", 1)) == parameters(table_of(ENTRY, None, "ada", 1))


def test_a_managed_table_is_nobodys():
    """Dropping a managed table removes its files: it is not taken for ours, whatever its properties say."""
    table = table_of(ENTRY, None, "ada", 1)
    assert mark_of({**table, 12: Field(Kind.STRING, "MANAGED_TABLE")}) is None
    assert mark_of({number: value for number, value in table.items() if number != 12}) is None
    assert mark_of(with_parameters(table, **{"headwater.table_id": ""})) is None


def test_no_property_has_power_over_the_metastore(monkeypatch):
    """What a metastore, Spark or Hive would obey is left out; so is a secret, also where its name does not say that it is one."""
    monkeypatch.setenv("HEADWATER_SECRET_KEY", "hush-hush")
    harmful = {
        "external.table.purge": "true", "EXTERNAL": "FALSE", "transactional": "true", "spark.sql.sources.provider": "csv",
        "storage_handler": "x", "headwater.table_id": "other", "api_token": "abc", "long": "x" * 5000,
    }  # fmt: skip
    assert published({**harmful, "team": "blue", "note": "is hush-hush"}) == {
        "team": "blue",
        "note": "is [redacted]",
    }
