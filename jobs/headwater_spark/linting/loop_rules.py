"""Definitions in a loop: HW403."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.definitions.finding import Finding
from headwater_spark.linting.flow_case import FlowCase


def changed_variables(case: FlowCase) -> Iterator[Finding]:
    """HW403."""
    changed = case.pipeline.registry.changed_variables(case.flow)
    if changed:
        names = ", ".join(f"`{name}`" for name in changed)
        yield case.find(
            "HW403",
            f"The function reads {names}, which had another value when {case.dataset.name!r} was declared: functions are called "
            "after all sources were run, and see the last value. In a loop, all tables would be made of the last one.",
            f"Give the value to the function where it is declared: def {case.flow.function.__name__}({changed[0]}={changed[0]}): ...",
        )
