"""Suggestions for misspelled names."""

from __future__ import annotations

from headwater.suggestions import did_you_mean, nearest


def test_the_most_similar_name_is_suggested():
    """A typo finds its name, a word that resembles nothing finds none."""
    assert nearest("ordrs", ["customers", "orders", "order_lines"]) == "orders"
    assert nearest("zebra", ["customers", "orders"]) is None


def test_the_cutoff_decides_what_is_similar():
    """A stricter cutoff refuses what a laxer one suggests."""
    assert nearest("order", ["orders_clean"], cutoff=0.5) == "orders_clean"
    assert nearest("order", ["orders_clean"], cutoff=0.9) is None


def test_the_remedy_names_the_suggestion_or_the_alternatives():
    """Either question or fallback, never both."""
    assert did_you_mean("orders", "It has: orders.") == "Did you mean 'orders'?"
    assert did_you_mean(None, "It has: orders.") == "It has: orders."
