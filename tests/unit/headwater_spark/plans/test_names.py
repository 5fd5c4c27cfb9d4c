"""Names of columns in backticks."""

from __future__ import annotations

from headwater_spark.plans.names import column_path, quoted


def test_a_name_is_quoted_whatever_its_characters():
    """Dots stay within a name, backticks are doubled."""
    assert quoted("a.b") == "`a.b`"
    assert quoted("a`b") == "`a``b`"


def test_several_parts_are_a_path():
    """Each part is quoted by itself."""
    assert quoted("address", "zip code") == "`address`.`zip code`"


def test_a_declared_name_is_a_column_before_it_is_a_path():
    """Blanks and dots belong to a column that is there; else dots lead into a struct."""
    assert column_path("a b", set()) == "`a b`"
    assert column_path("A.b", {"a.b"}) == "`A.b`"
    assert column_path("st.x", {"st"}) == "`st`.`x`"
