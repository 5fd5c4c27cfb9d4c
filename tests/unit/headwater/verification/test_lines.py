"""The eight criteria and the twelve practices: each passes on a good pipeline, and has what makes it fail or leaves it unknown."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.headwater.advice.streams import HDFS, PROVIDER, batches, flow, pipeline, state, table

from headwater.advice.facts import SourceFact
from headwater.advice.rules import advise
from headwater.commands.command_line import main
from headwater.definitions.output_kind import OutputKind
from headwater.definitions.source import SourceKind
from headwater.event_log.details import UpdateState, create_update, update_progress
from headwater.event_log.writer import EventLogWriter
from headwater.metrics.checkpoint_health import Health
from headwater.verification.facts import LagFact, Operation, ProductionFacts, Verdict
from headwater.verification.lines import CRITERIA, LINES, PRACTICES, verify

DOCS = Path(__file__).resolve().parents[4] / "docs"
WATCHED = Operation(limits=("lag_seconds",), lag_seconds=900.0, check_dag=True, tests=("test_shop.py",))


def facts(of=None, **changes):
    """A pipeline that is as it should be."""
    described = of or pipeline()
    plain = ProductionFacts(
        described,
        tuple(advise(described)),
        (("events", Health.HEALTHY, ""),),
        ("COMPLETED", "FAILED", "COMPLETED"),
        (LagFact("events", 0, 12.0),),
        WATCHED,
        first_tables=("events",),
        quarantined=("events",),
        comments={"events": "What happened."},
    )
    return replace(plain, **changes)


GROWING = pipeline(
    flow(batches=batches(8, states=lambda n: state(n, each=1000)), state_plan=("Deduplicate(id: int)",))
)
YOUNG = pipeline(flow(batches=(), state_plan=("Deduplicate(id: int)",)))
FREE = pipeline(flow(sources=(SourceFact(SourceKind.FILES, "landing"),)))
OTHER = pipeline(flow(sources=(SourceFact(SourceKind.OTHER, "rate"),)))
BARE = pipeline(of=table(guarded=False, rules=()))
EMPTY = pipeline(tables=())
HEAP = pipeline(
    flow(
        batches=batches(8, watermark=float, states=lambda n: state(n, rows=200_000)),
        state_settings={PROVIDER: HDFS},
    )
)
CROWDED = pipeline(of=table(files=400, bytes=400_000, partitions=100, partition_columns=("user",)))
APART = pipeline(tables=(table(), table(dataset="others")))
FAIL, UNKNOWN = Verdict.FAIL, Verdict.UNKNOWN
CASES = {
    (CRITERIA, 1): [
        (FAIL, facts(checkpoints=(("events", Health.SICK, "damaged"),))),
        (UNKNOWN, facts(checkpoints=(("events", Health.NEW, ""),))),
    ],
    (CRITERIA, 2): [
        (FAIL, facts(GROWING)),
        (UNKNOWN, facts(YOUNG)),
        (UNKNOWN, facts(checkpoints=(("events", Health.NEW, ""),))),
    ],
    (CRITERIA, 3): [(FAIL, facts(updates=("COMPLETED", "FAILED"))), (UNKNOWN, facts(updates=("COMPLETED",)))],
    (CRITERIA, 4): [
        (FAIL, facts(lags=(LagFact("events", 5, 2000.0),))),
        (UNKNOWN, facts(lags=(LagFact("events", unknown="no broker"),))),
        (UNKNOWN, facts(operation=replace(WATCHED, lag_seconds=None))),
    ],
    (CRITERIA, 5): [
        (FAIL, facts(GROWING)),
        (FAIL, facts(HEAP)),
        (UNKNOWN, facts(YOUNG)),
        (UNKNOWN, facts(checkpoints=(("events", Health.NEW, ""),))),
    ],
    (CRITERIA, 6): [
        (FAIL, facts(BARE)),
        (FAIL, facts(operation=replace(WATCHED, retries=0))),
        (UNKNOWN, facts(EMPTY)),
    ],
    (CRITERIA, 7): [
        (FAIL, facts(operation=replace(WATCHED, checked=False))),
        (FAIL, facts(operation=replace(WATCHED, limits=()))),
        (FAIL, facts(operation=replace(WATCHED, check_dag=False))),
        (UNKNOWN, facts(operation=replace(WATCHED, check_dag=None))),
    ],
    (CRITERIA, 8): [(FAIL, facts(comments={"events": None})), (UNKNOWN, facts(comments={}))],
    (PRACTICES, 1): [(FAIL, facts(checkpoints=(("events", Health.SICK, "damaged"),)))],
    (PRACTICES, 2): [(FAIL, facts(GROWING))],
    (PRACTICES, 3): [(FAIL, facts(CROWDED)), (UNKNOWN, facts(EMPTY))],
    (PRACTICES, 4): [(FAIL, facts(FREE)), (UNKNOWN, facts(OTHER))],
    (PRACTICES, 5): [
        (FAIL, facts(operation=replace(WATCHED, lag_seconds=None))),
        (FAIL, facts(operation=replace(WATCHED, checked=False))),
    ],
    (PRACTICES, 6): [(FAIL, facts(pipeline(flow(output=OutputKind.COMPLETE))))],
    (PRACTICES, 7): [(FAIL, facts(schema_error="other columns")), (UNKNOWN, facts(updates=()))],
    (PRACTICES, 8): [(FAIL, facts(quarantined=())), (UNKNOWN, facts(first_tables=()))],
    (PRACTICES, 9): [
        (FAIL, facts(operation=replace(WATCHED, tests=()))),
        (UNKNOWN, facts(operation=replace(WATCHED, tests=None))),
    ],
    (PRACTICES, 10): [
        (FAIL, facts(old_epochs=("events, epoch 0",))),
        (FAIL, facts(pipeline(maintained=False))),
    ],
    (PRACTICES, 11): [(UNKNOWN, facts(APART, comments={"events": "x", "others": "y"}))],
    (PRACTICES, 12): [(FAIL, facts(BARE)), (UNKNOWN, facts(EMPTY))],
}


def verdicts(given):
    """The verdict of each line."""
    return {(line.group, line.number): line.verdict for line in verify(given)}


def test_a_good_pipeline_passes_every_line():
    """Eight criteria and twelve practices, each with evidence."""
    lines = verify(facts())
    assert [line.verdict for line in lines] == [Verdict.PASS] * 20, [
        line for line in lines if line.verdict != "pass"
    ]
    assert [len(rules) for rules in LINES.values()] == [8, 12]
    assert all(line.evidence for line in lines)


@pytest.mark.parametrize("line", CASES, ids=str)
def test_what_makes_a_line_fail(line):
    """Each has a pipeline on which it does not pass, and says why."""
    for verdict, given in CASES[line]:
        assert verdicts(given)[line] is verdict
        assert all(each.evidence for each in verify(given))


def test_every_line_has_such_a_pipeline_and_a_place_on_the_page():
    """None is there that can't fail, and none that the page does not explain."""
    every = {(group, number) for group, rules in LINES.items() for number in range(1, len(rules) + 1)}
    assert set(CASES) == every
    text = (DOCS / "verify.md").read_text(encoding="utf-8")
    titles = re.findall(r"^\| \d+ \| ([^|]+) \|", text, re.MULTILINE)
    assert titles == [title for rules in LINES.values() for title, _ in rules]


ENDLESS = pipeline(continuous=True, maintained=False)


@pytest.mark.parametrize(
    ("updates", "verdict"),
    [
        (("RUNNING",), UNKNOWN),
        (("FAILED", "RUNNING"), Verdict.PASS),
        (("CANCELED", "INITIALIZING"), Verdict.PASS),
        (("FAILED", "CANCELED"), Verdict.PASS),
        (("CANCELED",), UNKNOWN),
        (("CANCELED", "FAILED"), FAIL),
        (("FAILED",), FAIL),
    ],
)
def test_an_update_that_does_not_end_is_not_expected_to_complete(updates: tuple[str, ...], verdict: Verdict):
    """A continuous pipeline went on after a failure where the next update runs, or ran until it was stopped."""
    assert verdicts(facts(ENDLESS, updates=updates))[CRITERIA, 3] is verdict


def test_an_update_that_runs_just_now_decides_nothing():
    """Of a pipeline whose updates end, those that have ended are judged."""
    assert verdicts(facts(updates=("FAILED", "COMPLETED", "RUNNING")))[CRITERIA, 3] is Verdict.PASS
    assert verdicts(facts(updates=("COMPLETED", "FAILED", "RUNNING")))[CRITERIA, 3] is FAIL


def test_a_continuous_pipeline_has_no_schedule_of_maintenance():
    """Its update holds the lease: old epochs are for whoever stops it, and the line says so."""
    (line,) = [line for line in verify(facts(ENDLESS)) if (line.group, line.number) == (PRACTICES, 10)]
    assert line.verdict is Verdict.PASS
    assert "headwater stop" in line.evidence
    assert verdicts(facts(ENDLESS, old_epochs=("events, epoch 0",)))[PRACTICES, 10] is FAIL


def test_state_of_one_size_needs_no_watermark():
    """An aggregation by keys that are few has a bounded state, watermark or not."""
    few = pipeline(
        flow(
            batches=batches(8, states=lambda n: state(n, rows=12)), state_plan=("Aggregate(country: string)",)
        )
    )
    assert verdicts(facts(few))[CRITERIA, 2] is Verdict.PASS


def call(done, capsys, *more):
    project = done.project
    roots = [f"--storage={project.storage}", f"--warehouse={project.warehouse}"]
    code = main(["verify", str(project.folder), *roots, *more])
    return code, capsys.readouterr().out


def test_the_command_fails_with_a_line(done, capsys):
    """Exit code 1 where a line fails, with the reason, for people and programs; 0 where none does, 1 with --strict."""
    with EventLogWriter(done.project.state_folder, "orders", "orders", "u1") as log:
        log.emit("create_update", "Requested.", details=create_update(source_hash="h"))
        log.emit("update_progress", "Done.", details=update_progress(UpdateState.COMPLETED))
    code, text = call(done, capsys, "--json")
    report = json.loads(text.splitlines()[-1])
    assert (code, report["verified"], sum(report["counts"].values())) == (1, False, 20)
    failed = {(line["group"], line["title"]) for line in report["lines"] if line["verdict"] == "fail"}
    assert (CRITERIA, "Documentation complete") in failed
    code, text = call(done, capsys)
    assert code == 1
    assert "no comment= on bronze, silver, gold" in text
    mend(done)
    code, text = call(done, capsys, "--json")
    assert [line for line in json.loads(text)["lines"] if line["verdict"] == "fail"] == []
    assert code == 0
    assert call(done, capsys, "--strict")[0] == 1


def mend(done):
    """Give the pipeline what it lacks: comments, rules, limits, a check DAG, a test, files that can be bounded."""
    folder = done.project.folder
    spec = "name: orders\nschema: shop\nairflow: {alerts: {lag_seconds: 900}}\n"
    (folder / "pipeline.yml").write_text(spec)
    for name, text in {
        "dags/checks.py": f'dag = PipelineCheckDag("{folder.name}")\n',
        "tests/test_orders.py": f'run("{folder.name}")\n',
    }.items():
        (folder.parent / name).parent.mkdir(exist_ok=True)
        (folder.parent / name).write_text(text)
    manifest = done.manifest
    rule = {"name": "known", "constraint": "id IS NOT NULL", "action": "quarantine"}
    datasets = [
        {**entry.model_dump(), "comment": entry.name, "expectations": [rule]} for entry in manifest.datasets
    ]
    flows = [entry.model_dump() for entry in manifest.flows]
    flows[0]["sources"][0]["options"] = {"maxFilesPerTrigger": "10"}
    done.manifest = type(manifest).model_validate(
        {**manifest.model_dump(), "datasets": datasets, "flows": flows}
    )
    done.store_manifest()
    (done.checkpoint("bronze").epoch_folder(0) / "metadata").write_text('{"id": "query"}')
    (done.checkpoint("silver").epoch_folder(0) / "metadata").write_text('{"id": "query"}')
