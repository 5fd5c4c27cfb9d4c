"""``quality``: the results of expectations, update by update."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

from headwater.contract.known_values import as_declared, check_dataset_with_rules
from headwater.contract.printing import print_json, print_table
from headwater.errors import ManifestNotFound
from headwater.event_log.quality import RuleHistory, rule_histories
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.stored_manifest import stored_manifest

_BARS = "▁▂▃▄▅▆▇█"
_ACTIONS = {"warn": "keep", "drop": "drop", "fail": "fail", "quarantine": "quarantine"}


def show_quality(
    project: PipelineProject,
    *,
    dataset: str | None = None,
    updates: int = 20,
    since: datetime | None = None,
    as_json: bool,
) -> int:
    """Print the pass rate of each expectation over the newest ``updates`` in which it was checked."""
    dataset = as_declared(project, dataset)
    rules, datasets = rule_histories(project.state_folder, updates=updates, dataset=dataset, since=since)
    if dataset is not None and not rules:
        every, _ = rule_histories(project.state_folder, updates=1)
        check_dataset_with_rules(project, dataset, [rule.dataset for rule in every])
    if as_json:
        lost = [asdict(counts) for counts in datasets]
        rates = [rule.as_dict() for rule in rules]
        print_json({"pipeline_id": project.pipeline_id, "rules": rates, "datasets": lost})
    elif rules:
        title = f"{project.pipeline_id}: rules over the last {updates} updates"
        _print_rates(title, rules, _actions(project))
        kept_out = [(d.dataset, d.dropped, d.quarantined, d.updates) for d in datasets]
        print_table("Rows kept out", ("dataset", "dropped", "quarantined", "updates"), kept_out)
    else:
        print(f"{project.pipeline_id}: no rule has been checked{' in that time' if since else ' yet'}.")
    return 0


def _print_rates(title: str, rules: Sequence[RuleHistory], actions: Mapping[tuple[str, str], str]) -> None:
    bars = _can_show(_BARS)
    columns = ("dataset", "rule", "broken rows", "passed", "failed", "pass rate", "last")
    rows = [
        (
            *(rule.dataset, rule.rule, actions.get((rule.dataset, rule.rule), ""), rule.passed, rule.failed),
            *(percent(rule.rate), percent(rule.points[-1].rate)),
            *([sparkline([point.rate for point in rule.points])] if bars else []),
        )
        for rule in rules
    ]
    over_time = ("over time",) if bars else ()
    print_table(title, (*columns, *over_time), rows, row_styles=[_style(rule) for rule in rules])


def percent(rate: float | None) -> str:
    """A share as percent; what is not quite all or nothing is never rounded to it."""
    if rate is None:
        return ""
    shown = f"{rate * 100:.2f}".rstrip("0").rstrip(".")
    if shown == "100" and rate < 1:
        return "> 99.99"
    return "< 0.01" if shown == "0" and rate > 0 else shown


def sparkline(rates: Sequence[float | None]) -> str:
    """Rates as bars: a full bar is 100 %, the lowest bar is the lowest rate; a dot where there were no rows."""
    measured = [rate for rate in rates if rate is not None]
    low = min(measured, default=1.0)
    span = 1.0 - low

    def bar(rate: float | None) -> str:
        if rate is None:
            return "·"
        return _BARS[-1] if span == 0 else _BARS[round((rate - low) / span * (len(_BARS) - 1))]

    return "".join(bar(rate) for rate in rates)


def _style(rule: RuleHistory) -> str:
    last = rule.points[-1].rate
    return "yellow" if last is not None and last < 1 else ""


def _actions(project: PipelineProject) -> dict[tuple[str, str], str]:
    try:
        manifest = stored_manifest(project)
    except ManifestNotFound:
        return {}
    return {
        (entry.name, rule.name): _ACTIONS.get(str(rule.action), str(rule.action))
        for entry in manifest.datasets
        for rule in entry.expectations
    }


def _can_show(text: str) -> bool:
    """Whether standard output is a terminal, or a file in an encoding, that can take the characters."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
