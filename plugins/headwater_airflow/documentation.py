"""What the page of a DAG says about its pipeline."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.definitions.parameter import ParameterSpec
from headwater.graph.manifest import DatasetEntry, Manifest
from headwater.graph.mermaid import mermaid
from headwater_airflow.entities import PipelineTask


def pipeline_doc(task: PipelineTask) -> str:
    """The DAG's documentation, in Markdown: where it comes from, its tables, its graph as mermaid text."""
    each_run = (
        "A run keeps all of its streams running until it is stopped: pause the DAG, then mark the task as failed."
        if task.continuous
        else "Each run updates its tables with what is new in their sources; *Trigger* offers a refresh from scratch, and a "
        "choice of tables."
    )
    parts = [
        f"# {task.name}",
        f"Made from `pipeline.yml` and `manifest.json` of the pipeline `{task.pipeline}`. {each_run}",
    ]
    if task.parameters:
        parts.append(_parameters(task.parameters))
    if task.without_graph:
        parts.append(f"**Only one task is shown for the whole pipeline.** {task.without_graph}")
    if task.manifest is not None:
        parts += [
            _table(task.manifest),
            "The graph, as mermaid text:",
            f"```mermaid\n{mermaid(task.manifest)}\n```",
        ]
    return "\n\n".join(parts)


def _parameters(parameters: Mapping[str, ParameterSpec]) -> str:
    lines = [
        f"- `{name}` ({'secret' if spec.secret else spec.type}{', required' if spec.required else ''}): {spec.description}"
        for name, spec in parameters.items()
    ]
    return "Parameters of a run:\n\n" + "\n".join(line.removesuffix(": ") for line in lines)


def pipeline_description(task: PipelineTask) -> str:
    """The line below the DAG's name."""
    if task.without_graph:
        return task.without_graph
    return f"Updates the {len(task.datasets)} tables of the pipeline {task.name}."


def check_doc(task: PipelineTask) -> str:
    """Return the check DAG's documentation, with the limits."""
    alerts = task.airflow.alerts
    limits = {
        "seconds of lag": alerts.lag_seconds,
        "records of lag": alerts.lag_records,
        "minutes of age of each table's newest data": alerts.freshness_minutes,
        "percent of rows that fail a rule": alerts.failed_rules_percent,
        "seconds a batch": alerts.batch_seconds,
        "percent of a source table's retention": alerts.retention_percent,
    }
    lines = [f"- {limit:g} {name}" for name, limit in limits.items() if limit is not None]
    lines += [
        f"- {spec.minutes:g} minutes of age of the newest {spec.column} in {table}"
        for table, spec in alerts.event_freshness.items()
    ]
    if task.has_pace_limit and alerts.batch_seconds is None:
        lines.append("- a batch takes no longer than the interval of its trigger")
    if alerts.checkpoint_health:
        lines.append("- no sick checkpoint")
    if alerts.advice:
        lines.append("- no warning of `headwater advise`")
    text = "\n".join(lines) or "None is set yet: the task only shows the lag."
    return (
        f"# Checks of {task.name}\n\nA task is red while a limit of its kind is broken; its log has the numbers. "
        f"Limits, from `airflow.alerts` in `pipeline.yml`:\n\n{text}"
    )


def maintenance_doc(task: PipelineTask) -> str:
    """Return the maintenance DAG's documentation."""
    return (
        f"# Maintenance of {task.name}\n\n`plan` shows what is due, in its log; `maintain` does it, unless the run is a dry "
        "run. No row changes, no stream and no reader of changes is woken, and vacuum leaves what any reader still has "
        "before it. A table that fails does not stop the others."
    )


def backfill_doc(task: PipelineTask, interval: str | None, *, scheduled: bool) -> str:
    """Return the backfill DAG's documentation: what its form, Airflow's own backfill and its schedule do."""
    by_schedule = "Each interval is filled when it is over." if scheduled else "Scheduled runs do nothing."
    dates = (
        f"*Backfill* (beside *Trigger*) makes a run for each interval of `{interval}` in a span of dates: where the form names no "
        f"range, the interval is the range. {by_schedule}"
        if interval
        else "It has no schedule, so Airflow's own *Backfill* is not offered: give the DAG an `interval`."
    )
    return (
        f"# Backfills of {task.name}\n\n*Trigger* fills a range of tables from the definitions of the pipeline `{task.pipeline}`, beside "
        "its live stream. The first run is best a dry run (ticked): the task's log has the rows and bytes. A range that was "
        f"done before by the same definition is left alone.\n\n{dates}"
    )


def repair_doc(task: PipelineTask) -> str:
    """Return the repair DAG's documentation."""
    return (
        f"# Repairs of {task.name}\n\nThe inspector of checkpoints, on the tab *Pipeline*, says what is wrong and what would help. "
        "`plan` shows, in its log, what a repair would do and which rows it would lose or double; `repair` does it if the "
        "run is no dry run, after a copy of what is there. A full refresh is on the form of the pipeline's own DAG."
    )


def _table(manifest: Manifest) -> str:
    rows = [
        f"| {entry.name} | {_kind(entry)} | {_reads(manifest, entry)} | {_cell(entry.comment)} |"
        for entry in manifest.datasets
    ]
    return "\n".join(["| Dataset | Kind | Reads | Comment |", "|---|---|---|---|", *rows])


def _kind(entry: DatasetEntry) -> str:
    return str(entry.kind).replace("_", " ")


def _reads(manifest: Manifest, entry: DatasetEntry) -> str:
    flows = manifest.flows_into(entry.name)
    names = [name for flow in flows for name in flow.inputs]
    names += [
        f"{source.kind} {source.name or source.path or ''}".strip()
        for flow in flows
        for source in flow.sources
    ]
    return _cell(", ".join(dict.fromkeys(names)))


def _cell(text: str | None) -> str:
    # A comment comes from a pipeline's source: it must not end its cell, nor start another line.
    return " ".join((text or "").split()).replace("|", "\\|")
