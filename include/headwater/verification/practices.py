"""The twelve best practices of streaming."""

from __future__ import annotations

from headwater.advice.limits import BY_BYTES, limit_of
from headwater.contract.quantities import size
from headwater.definitions.output_kind import OutputKind
from headwater.definitions.source import SourceKind
from headwater.verification.criteria import FAIL, PASS, UNKNOWN, Answer
from headwater.verification.facts import ProductionFacts


def partitioned_output(facts: ProductionFacts) -> Answer:
    """Tables are laid out for their size: partitions or clustering where they are large, and not too many."""
    findings = facts.findings_of("PARTITIONS_SMALL", "LAYOUT_MISSING")
    if findings:
        return FAIL, "; ".join(f"{finding.subject}: {finding.message}" for finding in findings)
    if not facts.pipeline.tables:
        return UNKNOWN, "no table yet"
    largest = max(facts.pipeline.tables, key=lambda table: table.bytes)
    return PASS, f"the largest table, {largest.dataset}, has {size(largest.bytes)} in {largest.files:,} files"


def limited_input(facts: ProductionFacts) -> Answer:
    """A batch of every source outside is bounded."""
    outside = [
        (f.flow, s) for f in facts.pipeline.flows for s in f.sources if s.kind is not SourceKind.DATASET
    ]
    free = [
        f"{flow} from {source.name}"
        for flow, source in outside
        if source.kind is not SourceKind.OTHER and limit_of(source) is None and BY_BYTES not in source.limits
    ]
    if free:
        return FAIL, f"nothing bounds a batch of {', '.join(free)}"
    other = [f"{flow} from {source.name}" for flow, source in outside if source.kind is SourceKind.OTHER]
    if other:
        return UNKNOWN, f"sources without a known limit: {', '.join(other)}"
    return PASS, f"{len(outside)} sources outside, each with a limit"


def monitored_lag(facts: ProductionFacts) -> Answer:
    """A limit of lag is checked on a schedule."""
    operation = facts.operation
    if operation.lag_seconds is None and operation.lag_records is None:
        return FAIL, "no limit: airflow: {alerts: {lag_seconds: 900}}"
    return (
        (PASS, "a limit of lag, checked on a schedule")
        if operation.checked
        else (FAIL, "airflow.check_schedule is null")
    )


def append_mode(facts: ProductionFacts) -> Answer:
    """Streams append; those that merge by key do so because their rows are changes."""
    rewritten = [flow.flow for flow in facts.pipeline.flows if flow.output.is_aggregation]
    if rewritten:
        return (
            FAIL,
            f"rows are written again with each batch: {', '.join(rewritten)}; with a watermark and a window they are appended",
        )
    merging = [flow.flow for flow in facts.pipeline.flows if flow.output is not OutputKind.APPEND]
    return PASS, f"merged by key on purpose: {', '.join(merging)}" if merging else "every stream appends"


def schema_evolution(facts: ProductionFacts) -> Answer:
    """New columns are taken; no schema has stopped the newest update."""
    if facts.schema_error:
        return FAIL, f"the newest update was stopped: {facts.schema_error}"
    if not facts.updates:
        return UNKNOWN, "no update yet"
    drift = [table.dataset for table in facts.pipeline.tables if table.drift]
    changed = (
        f"columns changed under {', '.join(drift)}, and were taken"
        if drift
        else "no schema has stopped the newest update"
    )
    return PASS, changed


def dead_letters(facts: ProductionFacts) -> Answer:
    """Rows that break a rule are kept, for every table that reads from outside."""
    missing = [name for name in facts.first_tables if name not in facts.quarantined]
    if missing:
        return FAIL, f"bad rows of {', '.join(missing)} are kept nowhere: @dp.expect_or_quarantine(...)"
    return (
        (PASS, f"a quarantine behind {', '.join(facts.first_tables)}")
        if facts.first_tables
        else (UNKNOWN, "no table reads from outside")
    )


def tested(facts: ProductionFacts) -> Answer:
    """There are tests of the pipeline; an update under test ends when it has read all, as with `once`."""
    if facts.operation.tests:
        return PASS, f"tests that name it: {', '.join(facts.operation.tests[:3])}"
    if facts.operation.tests is None:
        return UNKNOWN, "there is no folder tests/ beside or above the pipeline"
    return FAIL, "no file below tests/ names the pipeline: headwater.testing runs it on given rows"


def cleaned_checkpoints(facts: ProductionFacts) -> Answer:
    """Old epochs go, by a schedule."""
    if facts.old_epochs:
        return (
            FAIL,
            f"older than {facts.operation.keep_days:g} days: {', '.join(facts.old_epochs[:5])}; headwater maintenance {facts.pipeline.folder} --only epochs --yes",
        )
    if facts.pipeline.continuous:
        return (
            PASS,
            f"no epoch is older than {facts.operation.keep_days:g} days; maintenance waits for headwater stop {facts.pipeline.folder}",
        )
    if not facts.pipeline.maintained:
        return FAIL, 'nothing cleans up: airflow: {maintenance_schedule: "30 3 * * *"}'
    return PASS, f"maintenance has a schedule, and no epoch is older than {facts.operation.keep_days:g} days"


def declared(facts: ProductionFacts) -> Answer:
    """The tables are declared, and in layers."""
    reading = [f for f in facts.pipeline.flows if any(s.kind is SourceKind.DATASET for s in f.sources)]
    if len(facts.comments) > 1 and not reading and all(table.streaming for table in facts.pipeline.tables):
        return (
            UNKNOWN,
            f"{len(facts.comments)} tables are declared, and none reads another: are there no layers?",
        )
    return (
        PASS,
        f"{len(facts.comments)} tables are declared; {len(reading)} streams read a table of the pipeline",
    )


def quality_checked(facts: ProductionFacts) -> Answer:
    """Rows of every streaming table pass a rule somewhere."""
    bare = [table.dataset for table in facts.pipeline.tables if table.streaming and not table.guarded]
    if bare:
        return FAIL, f"no rule checks {', '.join(bare)}"
    rules = sum(len(table.rules) for table in facts.pipeline.tables)
    return (PASS, f"{rules} rules") if rules else (UNKNOWN, "no table yet, or none that streams")
