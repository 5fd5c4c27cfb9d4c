"""All rules over all flows, without silenced findings.

Decision 0053.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from headwater.definitions.finding import LINT_RULES, Finding, Severity, finding
from headwater_spark.linting.definition_text import IgnoreComment, SourceFile
from headwater_spark.linting.flow_case import FlowCase
from headwater_spark.linting.former_tables import tables_no_longer_filled
from headwater_spark.linting.key_rules import unsteady_keys
from headwater_spark.linting.layout_rules import unknown_order_columns
from headwater_spark.linting.loop_rules import changed_variables
from headwater_spark.linting.misspelled_settings import (
    misspelled_settings_of_a_flow,
    misspelled_settings_of_the_pipeline,
)
from headwater_spark.linting.reader_rules import unreadable_tables
from headwater_spark.linting.retention_rules import short_retention
from headwater_spark.linting.setting_rules import (
    idle_clauses,
    idle_settings_of_a_flow,
    idle_settings_of_the_pipeline,
    real_time_in_updates_that_end,
    settings_of_lakeflow,
    uncounted_rules,
)
from headwater_spark.linting.sink_rules import fixed_transaction_ids
from headwater_spark.linting.source_rules import (
    first_loads,
    forgotten_caches,
    frozen_settings,
    large_first_loads,
    streams_of_changing_tables,
)
from headwater_spark.linting.stateful_rules import (
    stateful_functions,
    unbounded_aggregations,
    unbounded_deduplications,
    unbounded_joins,
    unused_watermarks,
)
from headwater_spark.resolution.graph_resolution import ResolvedPipeline

_RULES: tuple[Callable[[FlowCase], Iterator[Finding]], ...] = (
    unbounded_aggregations,
    unbounded_joins,
    unbounded_deduplications,
    stateful_functions,
    unused_watermarks,
    forgotten_caches,
    frozen_settings,
    streams_of_changing_tables,
    short_retention,
    unsteady_keys,
    first_loads,
    large_first_loads,
    idle_settings_of_a_flow,
    misspelled_settings_of_a_flow,
    real_time_in_updates_that_end,
    uncounted_rules,
    changed_variables,
    tables_no_longer_filled,
)
_ORDER = list(Severity)


@dataclass(frozen=True)
class LintReport:
    """The findings, worst first, and the number of silenced ones."""

    findings: tuple[Finding, ...]
    silenced: tuple[Finding, ...]

    def fails(self, *, strict: bool) -> bool:
        """Whether there is an error among the findings, or with ``strict`` a warning."""
        bad = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
        return any(finding.severity in bad for finding in self.findings)


def lint(pipeline: ResolvedPipeline) -> LintReport:
    """Look at a resolved pipeline; runs nothing and writes nothing."""
    files = {label: SourceFile(label) for label in _labels(pipeline)}
    findings = list(_findings(pipeline, files))
    ignored = set(pipeline.project.spec.lint.ignore)
    comments = [comment for file in files.values() for comment in file.comments]
    used: set[IgnoreComment] = set()
    reported: list[Finding] = []
    silenced: list[Finding] = []
    for one in findings:
        by = [comment for comment in comments if _silences(comment, one, files)]
        used.update(by)
        (silenced if by or one.code in ignored else reported).append(one)
    reported += [one for one in _about_comments(comments, used) if one.code not in ignored]
    return LintReport(tuple(sorted(reported, key=_rank)), tuple(sorted(silenced, key=_rank)))


def _findings(pipeline: ResolvedPipeline, files: Mapping[str, SourceFile]) -> Iterator[Finding]:
    yield from idle_settings_of_the_pipeline(pipeline)
    yield from misspelled_settings_of_the_pipeline(pipeline)
    yield from settings_of_lakeflow(pipeline)
    yield from idle_clauses(pipeline)
    yield from unknown_order_columns(pipeline)
    yield from unreadable_tables(pipeline)
    yield from fixed_transaction_ids(pipeline, files)
    by_flow: dict[str, list[Finding]] = {}
    # The implicit views of a history are declared, and no part of the graph where nothing reads them.
    known = {entry.name for entry in pipeline.manifest.flows}
    for flow in pipeline.registry.flows():
        if flow.name not in pipeline.evaluation.frames or flow.name not in known:
            continue
        case = FlowCase(pipeline, pipeline.dataset(flow.target), flow, files)
        by_flow[flow.name] = list(dict.fromkeys(one for rule in _RULES for one in rule(case)))
    for name, findings in by_flow.items():
        # A view is part of its readers' queries: findings on the view are not repeated for each of them.
        views = _views_below(pipeline, name)
        reported = {(one.code, one.message) for view in views for one in by_flow.get(view, ())}
        yield from (one for one in findings if (one.code, one.message) not in reported)


def _views_below(pipeline: ResolvedPipeline, flow: str) -> set[str]:
    stored = {entry.name for entry in pipeline.manifest.tables}
    reads = pipeline.evaluation.reads_of
    views: set[str] = set()
    remaining = list(reads.get(flow, ()))
    while remaining:
        name = remaining.pop()
        if name not in stored and name not in views:
            views.add(name)
            remaining += reads.get(name, ())
    return views


def _labels(pipeline: ResolvedPipeline) -> list[str]:
    places = [d.location for d in pipeline.registry.datasets()] + [
        f.location for f in pipeline.registry.flows()
    ]
    return list(dict.fromkeys(place.file for place in places if place is not None))


def _silences(comment: IgnoreComment, one: Finding, files: Mapping[str, SourceFile]) -> bool:
    if one.where is None or comment.where.file != one.where.file or one.code not in (comment.codes or ()):
        return False
    return comment.where.line in files[one.where.file].span(one.where.line)


def _about_comments(comments: Iterable[IgnoreComment], used: set[IgnoreComment]) -> Iterator[Finding]:
    for comment in comments:
        unknown = [code for code in comment.codes or () if code not in LINT_RULES]
        if comment.codes is None or unknown:
            what = f"no rule has the code {unknown[0]}" if unknown else "it names no code"
            yield finding(
                "HW001",
                f"This comment silences nothing: {what}.",
                "Write it as # headwater: ignore[HW103], with the codes that it is about.",
                comment.where,
            )
        elif comment not in used:
            yield finding(
                "HW002",
                f"There is nothing to silence here: {', '.join(comment.codes)} was not found.",
                "Take the comment out.",
                comment.where,
            )


def _rank(one: Finding) -> tuple[int, str, int, str]:
    return (_ORDER.index(one.severity), one.where.file if one.where else "", one.where.line if one.where else 0, one.code)  # fmt: skip
