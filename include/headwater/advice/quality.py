"""Rules about rules: rows that nothing checks, rows that are lost."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.advice.facts import PipelineFacts, TableFact
from headwater.advice.finding import Advice, Place, Remedy, Setting
from headwater.definitions.expectation import ViolationAction
from headwater.definitions.finding import Severity


def no_rules(facts: PipelineFacts) -> Iterator[Advice]:
    """NO_RULES: rows pass no rule before, in or after the table."""
    for table in facts.tables:
        if table.guarded or not table.streaming:
            continue
        column = next(iter(table.columns), "id")
        setting = Setting(Place.RULES, f'@dp.expect_or_quarantine("{column}_known", "{column} IS NOT NULL")')
        yield Advice(
            "NO_RULES",
            Severity.INFO,
            table.dataset,
            "",
            "no rule checks its rows",
            ("none here, none before it, none in what reads it",),
            (
                Remedy(
                    "Say what a good row is, here of its first column",
                    "a pass over the rows of a batch",
                    (setting,),
                ),
            ),
        )


def no_quarantine(facts: PipelineFacts) -> Iterator[Advice]:
    """NO_QUARANTINE: rules drop rows, and nobody can look at them afterwards."""
    for table in facts.tables:
        dropping = [rule for rule in table.rules if rule[2] is ViolationAction.DROP]
        if not dropping or any(rule[2] is ViolationAction.QUARANTINE for rule in table.rules) or _cant(table):
            continue
        settings = tuple(
            Setting(
                Place.RULES,
                f"@dp.expect_or_quarantine({name!r}, {constraint!r})",
                f"@dp.expect_or_drop({name!r}, ...)",
            )
            for name, constraint, _ in dropping
        )
        lost = (
            f"{table.dropped:,} rows were dropped in the newest batches"
            if table.dropped
            else "no row was dropped lately"
        )
        yield Advice(
            "NO_QUARANTINE",
            Severity.WARNING if table.dropped else Severity.INFO,
            table.dataset,
            "",
            "rows that break its rules are dropped, and kept nowhere",
            (lost, f"rules that drop: {', '.join(name for name, _, _ in dropping)}"),
            (
                Remedy(
                    "Keep them in the table's quarantine",
                    "a quarantine table, and part of a pass over the batch",
                    settings,
                ),
            ),
        )


def _cant(table: TableFact) -> bool:
    """A running aggregation that is merged or written whole takes no rule that quarantines."""
    return table.merges
