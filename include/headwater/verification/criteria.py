"""The eight criteria by which a streaming table is a success."""

from __future__ import annotations

from headwater.contract.quantities import age, size
from headwater.metrics.checkpoint_health import Health
from headwater.verification.facts import ProductionFacts, Verdict

Answer = tuple[Verdict, str]
PASS, FAIL, UNKNOWN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
_INTERRUPTED = ("FAILED", "CANCELED")
_ENDED = ("COMPLETED", *_INTERRUPTED)


def checkpointing(facts: ProductionFacts) -> Answer:
    """Every stream has a checkpoint from which it can go on."""
    sick = [f"{flow}: {problem}" for flow, health, problem in facts.checkpoints if health is Health.SICK]
    new = _not_run(facts)
    if sick:
        return FAIL, "; ".join(sick)
    if new or not facts.checkpoints:
        return UNKNOWN, f"without a batch yet: {', '.join(new)}" if new else "no flow streams"
    return PASS, f"the checkpoints of {_count(len(facts.checkpoints), 'flow')} are healthy"


def watermarking(facts: ProductionFacts) -> Answer:
    """Every query with state has a watermark, or state that stays as it is."""
    new = _not_run(facts)
    if not facts.stateful:
        return (
            (UNKNOWN, f"not known before a first batch of {', '.join(new)}")
            if new
            else (PASS, "no flow keeps state")
        )
    without, open_ = [], []
    for flow in facts.stateful:
        rows = [batch.state_rows for batch in flow.working if batch.states]
        marked = any(batch.watermark is not None for batch in flow.batches)
        if not flow.working:
            open_.append(flow.flow)
        elif not marked and (len(rows) < 3 or rows[-1] > rows[0]):
            without.append(flow.flow)
    if without:
        return FAIL, f"state and no watermark: {', '.join(without)}"
    if open_:
        return UNKNOWN, f"no batch with the present definition: {', '.join(open_)}"
    return (
        PASS,
        f"{_count(len(facts.stateful), 'flow')} with state, each with a watermark or state of one size",
    )


def fault_tolerance(facts: ProductionFacts) -> Answer:
    """An update was interrupted, and a later one went on: to its end, or, of a continuous pipeline, for as long as it was let."""
    continuous = facts.pipeline.continuous
    # One that runs just now has not shown anything yet, unless it is one that does not end.
    updates = facts.updates if continuous else tuple(state for state in facts.updates if state in _ENDED)
    broken = [state for state in (updates[:-1] if continuous else updates) if state in _INTERRUPTED]
    if updates and updates[-1] == "FAILED":
        return FAIL, "the newest update is FAILED"
    if not broken:
        return (
            UNKNOWN,
            f"none of the newest {len(updates)} updates was interrupted: kill the driver of one, on a copy",
        )
    if not continuous and updates[-1] != "COMPLETED":
        return FAIL, f"the newest update is {updates[-1]}"
    went_on = f"and the newest {'completed' if not continuous else f'is {updates[-1]}'}"
    return (
        PASS,
        f"{_count(len(broken), 'update')} of the newest {len(updates)} failed or was stopped, {went_on}",
    )


def lag_acceptable(facts: ProductionFacts) -> Answer:
    """Every flow is within the limits that ``airflow.alerts`` names."""
    limits = {"seconds": facts.operation.lag_seconds, "records": facts.operation.lag_records}
    if all(limit is None for limit in limits.values()):
        return UNKNOWN, "no limit says what is acceptable: airflow: {alerts: {lag_seconds: 900}}"
    over, unknown = [], [f"{lag.flow} ({lag.unknown})" for lag in facts.lags if lag.unknown]
    for lag in facts.lags:
        for name, limit in limits.items():
            value = getattr(lag, name)
            if limit is not None and value is not None and value > limit:
                over.append(f"{lag.flow}: {value:,.0f} {name}, limit {limit:g}")
    if over:
        return FAIL, "; ".join(over)
    if unknown:
        return UNKNOWN, f"the lag is not known of {', '.join(unknown)}"
    longest = max((lag.seconds or 0.0 for lag in facts.lags), default=0.0)
    return PASS, f"the oldest that is not read has waited {age(longest)}"


def memory_sustainable(facts: ProductionFacts) -> Answer:
    """No state grows without bound, or is too large for where it lies."""
    findings = facts.findings_of("STATE_UNBOUNDED", "STATE_IN_HEAP", "STATE_LARGE")
    if findings:
        return FAIL, "; ".join(
            f"{finding.subject}: {finding.message} ({finding.evidence[0]})" for finding in findings
        )
    young = [*_not_run(facts), *(flow.flow for flow in facts.stateful if len(flow.working) < 3)]
    if young:
        return (
            UNKNOWN,
            f"fewer than three batches with the present definition: {', '.join(dict.fromkeys(young))}",
        )
    total = sum(flow.working[-1].state_bytes for flow in facts.stateful)
    return PASS, f"state of {_count(len(facts.stateful), 'flow')}, {size(total)}, does not grow without bound"


def errors_handled(facts: ProductionFacts) -> Answer:
    """Rows are checked somewhere, and an update that fails is tried again."""
    unguarded = [table.dataset for table in facts.pipeline.tables if table.streaming and not table.guarded]
    if unguarded:
        return FAIL, f"no rule checks the rows of {', '.join(unguarded)}"
    if not facts.operation.retries:
        return FAIL, "an update that fails is not tried again: airflow: {retries: 2}"
    if not facts.pipeline.tables:
        return UNKNOWN, "no table yet"
    return PASS, f"rules on the way to every streaming table, {facts.operation.retries} retries of an update"


def monitoring(facts: ProductionFacts) -> Answer:
    """The check DAG is there, on a schedule, with limits and somebody to tell."""
    operation = facts.operation
    if not operation.checked:
        return FAIL, "airflow.check_schedule is null"
    if not operation.limits:
        return FAIL, "airflow.alerts has no limit: airflow: {alerts: {lag_seconds: 900}}"
    if operation.check_dag is None:
        return UNKNOWN, "there is no folder dags/ above the pipeline to look for its check DAG"
    if not operation.check_dag:
        return FAIL, "no file in dags/ makes a PipelineCheckDag of this pipeline"
    alerting = (
        "with notifiers" if operation.notified else "whose tasks turn red; give it notifiers to tell people"
    )
    return PASS, f"a check DAG {alerting}; limits: {', '.join(operation.limits)}"


def documentation(facts: ProductionFacts) -> Answer:
    """Every table says what it is."""
    bare = [name for name, comment in facts.comments.items() if not comment]
    if bare:
        return FAIL, f"no comment= on {', '.join(bare)}"
    if not facts.comments:
        return UNKNOWN, "there is no table"
    return PASS, f"{_count(len(facts.comments), 'table')} with a comment"


def _not_run(facts: ProductionFacts) -> list[str]:
    """Flows that have no batch yet: whether they keep state is not known."""
    return [flow for flow, health, _ in facts.checkpoints if health is Health.NEW]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
