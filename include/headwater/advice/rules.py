"""All rules, in the order in which their findings are shown.

Decision 0166.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headwater.advice.facts import PipelineFacts
from headwater.advice.finding import Advice
from headwater.advice.output import output_partitions, schema_drift, small_files
from headwater.advice.pace import (
    falling_behind,
    limits_too_low,
    slow_against_interval,
    slow_batch,
    uneven_batches,
)
from headwater.advice.quality import no_quarantine, no_rules
from headwater.advice.state import large_state, scattered_state, state_in_the_heap, unbounded_state
from headwater.definitions.finding import Severity

RULES: tuple[Callable[[PipelineFacts], Iterator[Advice]], ...] = (
    falling_behind,
    limits_too_low,
    slow_against_interval,
    slow_batch,
    uneven_batches,
    unbounded_state,
    state_in_the_heap,
    large_state,
    scattered_state,
    small_files,
    output_partitions,
    schema_drift,
    no_quarantine,
    no_rules,
)
# Every code that a finding may have; docs/advice.md has a section on each.
CODES = (
    "LAG_GROWS", "LIMIT_TOO_LOW", "BATCH_OVER_INTERVAL", "SLOW_BATCH", "SKEWED_BATCHES", "STATE_UNBOUNDED", "STATE_IN_HEAP",
    "STATE_LARGE", "STATE_SCATTERED", "SMALL_FILES", "PARTITIONS_SMALL", "LAYOUT_MISSING", "SCHEMA_DRIFT", "NO_QUARANTINE", "NO_RULES",
)  # fmt: skip


def advise(facts: PipelineFacts) -> list[Advice]:
    """The findings about a pipeline: warnings first, then what is good to know."""
    findings = [finding for rule in RULES for finding in rule(facts)]
    return sorted(findings, key=lambda finding: finding.severity is not Severity.WARNING)
