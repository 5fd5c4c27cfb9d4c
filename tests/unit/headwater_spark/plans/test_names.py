"""Names of columns in backticks."""

from __future__ import annotations

from headwater_spark.plans.names import quoted


def test_a_name_is_quoted_whatever_its_characters():
    """Dots stay within a name, backticks are doubled."""
    assert quoted("a.b") == "`a.b`"
    assert quoted("a`b") == "`a``b`"


def test_several_parts_are_a_path():
    """Each part is quoted by itself."""
    assert quoted("address", "zip code") == "`address`.`zip code`"
