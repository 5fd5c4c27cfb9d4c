"""The eight criteria and the twelve practices as lines."""

from __future__ import annotations

from collections.abc import Callable

from headwater.verification import criteria, practices
from headwater.verification.criteria import Answer
from headwater.verification.facts import Line, ProductionFacts

CRITERIA, PRACTICES = "success criteria", "best practices"
_Rule = Callable[[ProductionFacts], Answer]
LINES: dict[str, tuple[tuple[str, _Rule], ...]] = {
    CRITERIA: (
        ("Proper checkpointing configured", criteria.checkpointing),
        ("Appropriate watermarking for late data", criteria.watermarking),
        ("Fault tolerance tested and verified", criteria.fault_tolerance),
        ("Processing lag within acceptable limits", criteria.lag_acceptable),
        ("Memory usage sustainable", criteria.memory_sustainable),
        ("Error handling implemented", criteria.errors_handled),
        ("Monitoring and alerting in place", criteria.monitoring),
        ("Documentation complete", criteria.documentation),
    ),
    PRACTICES: (
        ("Always use checkpointing", criteria.checkpointing),
        ("Set appropriate watermarks", criteria.watermarking),
        ("Partition output tables", practices.partitioned_output),
        ("Rate limit input", practices.limited_input),
        ("Monitor query lag", practices.monitored_lag),
        ("Use append mode", practices.append_mode),
        ("Handle schema evolution", practices.schema_evolution),
        ("Keep invalid records (dead letters)", practices.dead_letters),
        ("Test with a run that ends", practices.tested),
        ("Clean old checkpoints", practices.cleaned_checkpoints),
        ("Declare pipelines", practices.declared),
        ("Apply quality checks", practices.quality_checked),
    ),
}


def verify(facts: ProductionFacts) -> list[Line]:
    """All lines, in their order."""
    return [
        Line(group, number, title, *rule(facts))
        for group, rules in LINES.items()
        for number, (title, rule) in enumerate(rules, start=1)
    ]
