"""Advice on a pipeline that is sick on purpose, followed to the letter: the next update is not sick any more."""

from __future__ import annotations

import logging
import os
import re
import signal
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from headwater.advice.finding import Advice, Place, Setting
from headwater.advice.reading import pipeline_facts
from headwater.advice.rules import advise
from headwater.graph.stored_manifest import stored_manifest
from headwater.verification.facts import Verdict
from headwater.verification.lines import verify
from headwater.verification.reading import production_facts

SOURCE = """
def landed(folder):
    return spark.readStream.schema("id INT, happened TIMESTAMP").format("json").option("path", f"{LANDING}/{folder}")

@dp.table
def scattered():
    rows = landed("plain").option("maxFilesPerTrigger", 2).load()
    return rows.repartition(8)

@dp.table
def once_each():
    rows = landed("plain").option("maxFilesPerTrigger", 2).load()
    return rows.dropDuplicates(["id"])

@dp.table
def limited():
    return landed("many").option("maxFilesPerTrigger", 1).load()

@dp.table
def read_on():
    return spark.readStream.option("maxFilesPerTrigger", 2).table("limited")

@dp.table
def uneven():
    return landed("sized").option("maxFilesPerTrigger", 1).load()
"""
SPEC = "trigger: {processing_time: 10 milliseconds, run_for: 10 minutes}\n"
FOLDERS = {
    "scattered": "plain",
    "once_each": "plain",
    "limited": "many",
    "read_on": "many",
    "uneven": "sized",
}
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Landing:
    """Lands files of rows with ids of their own, each half an hour after the one before it."""

    def __init__(self, case: Any) -> None:
        self.case = case
        self.rows = dict.fromkeys(("plain", "many", "sized"), 0)
        self.files = 0

    def land(self, folder: str, *sizes: int) -> None:
        for size in sizes:
            moment = (NOON + timedelta(minutes=30 * self.files)).isoformat()
            first = self.rows[folder]
            self.case.land([{"id": first + n, "happened": moment} for n in range(size)], folder)
            self.rows[folder] += size
            self.files += 1


class StopWhenIdle(logging.Handler):
    """Asks the update to stop when each flow has said that it has read what there was."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = set(FOLDERS)

    def emit(self, record: logging.LogRecord) -> None:
        state, _, rest = record.getMessage().partition(" ")
        flow = rest.split()[0] if state == "IDLE" else ""
        if flow in self.waiting:
            self.waiting.remove(flow)
            if not self.waiting:
                os.kill(os.getpid(), signal.SIGTERM)


def update(case: Any, rows: Mapping[str, int], **selection: Any) -> None:
    """Run an update for one round, which takes in all that there is."""
    log, handler = logging.getLogger("headwater.update"), StopWhenIdle()
    log.addHandler(handler)
    try:
        report = case.update(**selection)
    finally:
        log.removeHandler(handler)
    assert report.state == "CANCELED", report.error
    assert {table: case.rows(table, "count(*)") for table in FOLDERS} == {
        table: [(rows[folder],)] for table, folder in FOLDERS.items()
    }


def findings(case: Any) -> list[Advice]:
    """What is advised now."""
    project = case.project()
    return advise(pipeline_facts(project, stored_manifest(project)))


def paces_of(case: Any) -> dict[str, float]:
    """How long a batch of each flow takes now, in seconds."""
    project = case.project()
    facts = pipeline_facts(project, stored_manifest(project))
    return {flow.flow: flow.pace or 0.0 for flow in facts.flows}


def failed(case: Any) -> set[str]:
    """Which lines of `verify` fail now."""
    project = case.project()
    lines = verify(production_facts(project, stored_manifest(project)))
    return {line.title for line in lines if line.verdict is Verdict.FAIL}


def follow(case: Any, found: Advice) -> tuple[str, ...]:
    """Do what the first remedy says, to the letter; gives the tables that it says to fill again."""
    (remedy, *_) = found.remedies
    for setting in remedy.settings:
        if setting.place is Place.SPEC:
            spec = case.folder / "pipeline.yml"
            spec.write_text(yaml.safe_dump(yaml.safe_load(spec.read_text()) | yaml.safe_load(setting.text)))
        else:
            source = case.folder / "transformations" / "main.py"
            source.write_text(written(source.read_text(), found.dataset, setting))
    commands = [
        re.fullmatch(rf"headwater run {case.folder} --full-refresh (\w+)", c) for c in remedy.commands
    ]
    return tuple(match[1] for match in commands)


def written(text: str, function: str, setting: Setting) -> str:
    """The source's text with a setting written into one function."""
    match = re.search(
        rf"@dp\.table(?:\((?P<given>.*)\))?\n(?:@dp.*\n)*def {function}\(\):\n(?:    .*\n)+", text
    )
    block = changed = match[0]
    if setting.place is Place.READ:
        assert setting.instead_of in block
        changed = block.replace(setting.instead_of, setting.text)
    elif setting.place is Place.QUERY:
        assert setting.instead_of == "the .dropDuplicates"
        changed = re.sub(r"\.dropDuplicates\(.*\)", lambda _: setting.text, block)
    elif setting.place is Place.DECORATOR:
        assert not match["given"]
        changed = block.replace("@dp.table", f"@dp.table({setting.text})")
    elif setting.place is Place.RULES:
        changed = block.replace(f"def {function}", f"{setting.text}\ndef {function}")
    assert changed != block
    return text.replace(block, changed)


def test_followed_advice_is_not_given_again(pipeline):
    """Small files, state that nothing frees, a limit below a backlog, uneven batches, batches over the interval, no rules: each is
    found, what the finding says is written, and after the next update there is nothing left to advise, and `verify` passes there.
    """
    case = pipeline(SOURCE, spec=SPEC)
    landing = Landing(case)
    landing.land("plain", *[100] * 6)
    landing.land("many", *[5] * 3)
    landing.land("sized", *[200] * 5, 3000)
    update(case, landing.rows)
    landing.land("many", *[5] * 40)
    found = findings(case)
    paces = paces_of(case)
    sick = {(finding.dataset, finding.code) for finding in found}
    assert {
        ("scattered", "SMALL_FILES"),
        ("once_each", "STATE_UNBOUNDED"),
        ("limited", "LIMIT_TOO_LOW"),
        ("uneven", "SKEWED_BATCHES"),
        *((table, "NO_RULES") for table in FOLDERS),
    } <= sick
    assert {code for _, code in sick if code == "BATCH_OVER_INTERVAL"}
    unwell = {
        "Appropriate watermarking for late data",
        "Memory usage sustainable",
        "Error handling implemented",
        "Apply quality checks",
        "Keep invalid records (dead letters)",
    }
    assert unwell <= failed(case)
    again = {table for finding in found for table in follow(case, finding)}
    assert again == {"once_each"}
    landing.land("plain", *[100] * 6)
    landing.land("sized", *[200] * 24, 3000, *[200] * 24, 3000)
    update(case, landing.rows, tables=tuple(FOLDERS), full_refresh=tuple(again))
    facts = pipeline_facts(case.project(), stored_manifest(case.project()))
    limits = {flow.flow: dict(flow.sources[0].limits) for flow in facts.flows}
    assert limits["read_on"] == {"maxFilesPerTrigger": "2"}
    counts = {flow.flow: len(flow.working) for flow in facts.flows}
    assert counts["uneven"] >= 5, counts
    assert counts["once_each"] >= 3, counts
    assert counts["limited"] <= 3, counts
    assert [flow.flow for flow in facts.flows if flow.interval <= paces[flow.flow]] == []
    # How long batches take is the machine's load as well: the interval is right for the paces that it was advised for.
    assert [finding.line for finding in advise(facts) if finding.code != "BATCH_OVER_INTERVAL"] == []
    assert not unwell & failed(case)
