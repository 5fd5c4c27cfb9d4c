"""What is accepted and has no effect is said."""

from __future__ import annotations

from types import SimpleNamespace

from headwater.definitions.source_location import SourceLocation
from headwater.graph.registry import IdleClause, Registry
from headwater_spark.linting.setting_rules import idle_clauses


def test_idle_clauses_of_statements():
    """A clause that SQL gives and nothing honours is HW601, at its statement."""
    registry = Registry()
    where = SourceLocation("a.sql", 3)
    registry.idle_clauses.append(IdleClause("t", "PRIMARY KEY", "nothing checks it", where))
    (finding,) = idle_clauses(SimpleNamespace(registry=registry))  # type: ignore[arg-type]
    assert (finding.code, finding.where, finding.dataset) == ("HW601", where, "t")
    assert "PRIMARY KEY has no effect here: nothing checks it" in finding.message
    assert finding.silence.startswith("`-- headwater")
