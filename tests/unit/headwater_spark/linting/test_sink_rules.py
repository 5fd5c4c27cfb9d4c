"""Functions of sinks whose writes Delta would pass over."""

from __future__ import annotations

import linecache
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.declarations.flows import append_flow
from headwater.declarations.sinks import foreach_batch_sink
from headwater.definitions.finding import Finding, Severity
from headwater.graph.registry import Registry, registering
from headwater_spark.linting import linter
from headwater_spark.linting.definition_text import SourceFile

LABEL = "sinks.py"
FLOWS = """
for number in range(2):
    @append_flow(target="two_places", name=f"rows_{number}")
    def rows():
        return None
"""


@pytest.fixture
def findings(monkeypatch: pytest.MonkeyPatch):
    """What the linter says of a source with two flows into a sink, without its rules about plans and settings."""
    for rule in (
        "idle_settings_of_the_pipeline",
        "misspelled_settings_of_the_pipeline",
        "settings_of_lakeflow",
        "idle_clauses",
        "unreadable_tables",
    ):
        monkeypatch.setattr(linter, rule, lambda _: ())

    def run(text: str) -> list[Finding]:
        text += FLOWS
        linecache.cache[LABEL] = (len(text), None, text.splitlines(keepends=True), LABEL)
        registry = Registry()
        with registering(registry):
            exec(
                compile(text, LABEL, "exec"),
                {"foreach_batch_sink": foreach_batch_sink, "append_flow": append_flow},
            )
        pipeline: Any = SimpleNamespace(
            registry=registry,
            manifest=SimpleNamespace(flows=(), tables=()),
            evaluation=SimpleNamespace(frames={}),
        )
        return list(linter._findings(pipeline, {LABEL: SourceFile(LABEL)}))

    yield run
    linecache.cache.pop(LABEL, None)


@pytest.mark.parametrize(
    "write",
    [
        '.option("txnVersion", batch_id).option("txnAppId", app_id)',
        '.option("txnVersion", batch_id).option("TXNAPPID", "unique-app-id")',
        ".options(txnVersion=batch_id, txnAppId=app_id)",
    ],
)
def test_an_id_that_stays_the_same(findings, write: str):
    """As guides write it: HW404 at the option's line, once for the sink, with the id that belongs to the flow and its epoch."""
    (one,) = findings(
        f'app_id = "unique-app-id"\n\n@foreach_batch_sink\ndef two_places(df, batch_id):\n    w = df.write\n    w{write}\n'
    )
    assert (one.code, one.severity, str(one.where), one.dataset) == (
        "HW404", Severity.WARNING, f"{LABEL}:6", "two_places",
    )  # fmt: skip
    assert 'conf.get("headwater.txnAppId")' in one.remedy


@pytest.mark.parametrize(
    "body",
    [
        'app = df.sparkSession.conf.get("headwater.txnAppId")\n    df.write.option("txnAppId", app)',
        'df.write.option("txnAppId", f"mine/{df.sparkSession.conf.get(KEY)}")',
        'df.write.option("mergeSchema", "true").options(mergeSchema="true")',
        "df.write.option(*PAIR)",
        "pass",
    ],
)
def test_an_id_that_may_change(findings, body: str):
    """The flow's own, one that is put together, and other options are fine."""
    assert findings(f"@foreach_batch_sink\ndef two_places(df, batch_id):\n    {body}\n") == []


def test_other_functions_are_not_meant(findings):
    """The option of a function that is no sink is none of the rule's business."""
    text = '@foreach_batch_sink\ndef two_places(df, batch_id):\n    pass\n\ndef other(df):\n    df.write.option("txnAppId", "a")\n'
    assert findings(text) == []
