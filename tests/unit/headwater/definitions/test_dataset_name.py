"""Names of one, two and three parts, as users spell them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.definitions.dataset_name import DatasetName
from headwater.errors import InvalidName

DEFAULTS = {"catalog": None, "schema": "shop"}
IN_CATALOG = {"catalog": "main", "schema": "shop"}


@pytest.mark.parametrize(
    ("text", "location", "shown"),
    [
        ("orders", "shop/orders", "orders"),
        ("shop.orders", "shop/orders", "orders"),
        ("raw.orders", "raw/orders", "raw.orders"),
        ("main.raw.orders", "main/raw/orders", "main.raw.orders"),
        ("`raw`.`orders`", "raw/orders", "raw.orders"),
        ("LIVE.orders", "shop/orders", "orders"),
        ("live.raw.orders", "raw/orders", "raw.orders"),
    ],
)
def test_a_name_without_a_catalog(text: str, location: str, shown: str):
    """The schema's default is filled in; the shortest spelling that means the same is shown."""
    name = DatasetName.parse(text, **DEFAULTS)
    assert (name.location, name.display(**DEFAULTS)) == (location, shown)


@pytest.mark.parametrize(
    ("text", "location", "shown"),
    [
        ("orders", "main/shop/orders", "orders"),
        ("raw.orders", "main/raw/orders", "raw.orders"),
        ("main.shop.orders", "main/shop/orders", "orders"),
        ("other.shop.orders", "other/shop/orders", "other.shop.orders"),
    ],
)
def test_a_name_with_a_catalog(text: str, location: str, shown: str):
    """The catalog's default is filled in as well."""
    name = DatasetName.parse(text, **IN_CATALOG)
    assert (name.location, name.display(**IN_CATALOG)) == (location, shown)


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".a", "a..b", "a.b.c.d", "a b", "a-b", "../a", "a/b", "1a", "LIVE.", "a;b"]
)
def test_not_a_name(text: str):
    """What is not made of plain identifiers is refused: names become folders."""
    with pytest.raises(InvalidName):
        DatasetName.parse(text, **DEFAULTS)


PARTS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,10}", fullmatch=True).filter(
    lambda part: part.upper() != "LIVE"
)


@given(st.lists(PARTS, min_size=1, max_size=3), st.none() | PARTS, PARTS)
def test_what_is_shown_means_the_same(parts: list[str], catalog: str | None, schema: str):
    """Parsing what is shown gives the same dataset, for all names and defaults."""
    name = DatasetName.parse(".".join(parts), catalog=catalog, schema=schema)
    shown = name.display(catalog=catalog, schema=schema)
    assert DatasetName.parse(shown, catalog=catalog, schema=schema) == name
