"""Which facts give which findings, what the findings say, and that a healthy stream has none."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import headwater.declarations.datasets as datasets
from headwater import pipelines as dp
from headwater.advice.facts import CommitFact, SourceFact
from headwater.advice.finding import Place
from headwater.advice.limits import round_up
from headwater.advice.rules import CODES, advise
from headwater.definitions.expectation import ViolationAction
from headwater.definitions.finding import Severity
from headwater.definitions.flow_settings import wrong_setting
from headwater.definitions.output_kind import OutputKind
from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.definitions.platform_settings import SettingPlace, wrong_place
from headwater.definitions.source import SourceKind

from .streams import HDFS, PARTITIONS, PROVIDER, batches, flow, pipeline, state, table

DOCS = Path(__file__).resolve().parents[4] / "docs"
READ_OPTIONS = {
    *(
        "maxFilesPerTrigger",
        "maxBytesPerTrigger",
        "maxOffsetsPerTrigger",
        "maxRecordsPerTrigger",
        "minPartitions",
    ),
    *("cloudFiles.maxFilesPerTrigger", "cloudFiles.maxBytesPerTrigger", "cloudFiles.schemaHints"),
    *("cloudFiles.schemaEvolutionMode", "cloudFiles.cleanSource", "cloudFiles.cleanSource.moveDestination"),
}


def waiting(
    limit=10, files=1000, kind=SourceKind.FILES, option="maxFilesPerTrigger", measure="files", **more
):
    """A source of which so much is unread."""
    return SourceFact(kind, "landing", {option: str(limit)}, unread={measure: files}, **more)


SICK = {
    "LAG_GROWS by what updates leave": (
        pipeline(flow(sources=(waiting(),), left_over=(10, 200, 1000))),
        "LAG_GROWS",
    ),
    "LAG_GROWS by rates": (
        pipeline(flow(sources=(waiting(),), batches=batches(5, input_rate=200.0))),
        "LAG_GROWS",
    ),
    "LAG_GROWS on a topic": (
        pipeline(
            flow(
                sources=(
                    waiting(100, 9000, SourceKind.KAFKA, "maxOffsetsPerTrigger", "records", partitions=1),
                ),
                left_over=(1, 2, 3),
            )
        ),
        "LAG_GROWS",
    ),
    "LIMIT_TOO_LOW": (pipeline(flow(sources=(waiting(1, 400),))), "LIMIT_TOO_LOW"),
    "LIMIT_TOO_LOW in one update": (pipeline(flow(batches=batches(40))), "LIMIT_TOO_LOW"),
    "BATCH_OVER_INTERVAL": (pipeline(flow(interval=0.5), interval=0.5, run_for=600.0), "BATCH_OVER_INTERVAL"),
    "BATCH_OVER_INTERVAL of a flow's own": (
        pipeline(flow(interval=0.5, interval_place="table_properties"), interval=60.0, run_for=600.0),
        "BATCH_OVER_INTERVAL",
    ),
    "SLOW_BATCH": (
        pipeline(flow(batches=batches(8, seconds=lambda n: 30.0 if n == 7 else 1.0))),
        "SLOW_BATCH",
    ),
    "SKEWED_BATCHES of files": (
        pipeline(
            flow(
                batches=batches(8, input_rows=lambda n: 50_000 if n == 3 else 1000),
                sources=(
                    SourceFact(
                        SourceKind.FILES,
                        "landing",
                        {"maxFilesPerTrigger": "1"},
                        file_bytes=((10,), (900,), (10,)),
                    ),
                ),
            )
        ),
        "SKEWED_BATCHES",
    ),
    "SKEWED_BATCHES of a topic": (
        pipeline(
            flow(
                batches=batches(8, input_rows=lambda n: 50_000 if n == 0 else 1000),
                sources=(SourceFact(SourceKind.KAFKA, "events"),),
            )
        ),
        "SKEWED_BATCHES",
    ),
    "STATE_UNBOUNDED": (
        pipeline(
            flow(
                batches=batches(8, states=lambda n: state(n, each=1000)), state_plan=("Deduplicate(id: int)",)
            )
        ),
        "STATE_UNBOUNDED",
    ),
    "STATE_UNBOUNDED behind a watermark": (
        pipeline(flow(batches=batches(8, states=lambda n: state(n, each=1000), watermark=float))),
        "STATE_UNBOUNDED",
    ),
    "STATE_UNBOUNDED of groups": (
        pipeline(
            flow(
                batches=batches(8, states=lambda n: state(n, each=1000, operator="stateStoreSave")),
                state_plan=("Aggregate(user: string, lower(city: string): string) count(1)",),
            )
        ),
        "STATE_UNBOUNDED",
    ),
    "STATE_IN_HEAP": (
        pipeline(
            flow(batches=batches(8, states=lambda n: state(n, rows=200_000)), state_settings={PROVIDER: HDFS})
        ),
        "STATE_IN_HEAP",
    ),
    "STATE_LARGE": (
        pipeline(flow(batches=batches(8, states=lambda n: state(n, rows=20_000_000)))),
        "STATE_LARGE",
    ),
    "STATE_SCATTERED": (
        pipeline(flow(batches=batches(8, states=lambda n: state(n)), state_settings={PARTITIONS: "200"})),
        "STATE_SCATTERED",
    ),
    "SMALL_FILES of a merge": (
        pipeline(
            flow(state_plan=("Aggregate(user: string)",)),
            table(
                merges=True, files=48, bytes=480_000, commits=tuple(CommitFact(16, 16_000) for _ in range(3))
            ),
        ),
        "SMALL_FILES",
    ),
    "SMALL_FILES": (pipeline(of=table(files=600, bytes=600_000)), "SMALL_FILES"),
    "SMALL_FILES with each batch": (
        pipeline(of=table(files=48, bytes=480_000, commits=tuple(CommitFact(16, 16_000) for _ in range(3)))),
        "SMALL_FILES",
    ),
    "SMALL_FILES that nothing tidies": (
        pipeline(of=table(files=60, bytes=60_000, managed=False), maintained=False),
        "SMALL_FILES",
    ),
    "PARTITIONS_SMALL": (
        pipeline(of=table(files=400, bytes=400_000, partitions=100, partition_columns=("user",))),
        "PARTITIONS_SMALL",
    ),
    "LAYOUT_MISSING": (pipeline(of=table(bytes=20_000_000_000, files=200)), "LAYOUT_MISSING"),
    "SCHEMA_DRIFT": (
        pipeline(of=table(drift=("a came", "b came"), added_columns={"a": "int"}, cloud_files=True)),
        "SCHEMA_DRIFT",
    ),
    "SCHEMA_DRIFT of another source": (pipeline(of=table(drift=("a came", "b came"))), "SCHEMA_DRIFT"),
    "NO_QUARANTINE": (
        pipeline(of=table(rules=(("known", "id IS NOT NULL", ViolationAction.DROP),), dropped=3)),
        "NO_QUARANTINE",
    ),
    "NO_RULES": (pipeline(of=table(rules=(), guarded=False)), "NO_RULES"),
}


@pytest.mark.parametrize("case", SICK)
def test_sick(case):
    """Each sickness gives its finding and no other one, with numbers and a remedy that says what it costs."""
    facts, code = SICK[case]
    findings = advise(facts)
    assert [finding.code for finding in findings] == [code], findings
    (finding,) = findings
    assert any(re.search(r"\d", line) for line in finding.evidence) or code in ("NO_RULES", "SCHEMA_DRIFT")
    assert finding.remedies
    assert all(
        remedy.what and remedy.cost and (remedy.settings or remedy.commands) for remedy in finding.remedies
    )
    assert finding.line.startswith(finding.dataset)


def test_every_code_is_met_and_documented():
    """No rule is without a sick pipeline here, and none without a section on the page."""
    assert {code for _, code in SICK.values()} == set(CODES)
    headings = set(re.findall(r"^### (\w+)$", (DOCS / "advice.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert headings == set(CODES)


def settings():
    """Every setting of every sick pipeline."""
    for case, (facts, _) in SICK.items():
        for finding in advise(facts):
            for remedy in finding.remedies:
                for setting in remedy.settings:
                    yield case, setting


@pytest.mark.parametrize(
    ("case", "setting"), list(settings()), ids=lambda value: getattr(value, "text", value)[:60]
)
def test_settings_are_accepted(case, setting):
    """What is to be written is what Headwater takes at that place."""
    if setting.place is Place.SPEC:
        PipelineSpec.model_validate({"name": "shop", **yaml.safe_load(setting.text)})
    elif setting.place is Place.READ:
        options = re.findall(r'\.option\("([\w.]+)", ', setting.text)
        assert options
        assert set(options) <= READ_OPTIONS
    elif setting.place is Place.RULES:
        assert callable(getattr(dp, re.match(r"@dp\.(\w+)\(", setting.text)[1]))
    elif setting.place is Place.QUERY:
        assert re.search(r"\.(withWatermark|groupBy)\(|timeMode", setting.text)
    elif setting.text.startswith("@dp."):
        assert callable(getattr(dp, setting.text.removeprefix("@dp.")))
    else:
        arguments = eval(f"dict({setting.text})")
        assert set(arguments) <= set(inspect.signature(inspect.unwrap(datasets.table)).parameters)
        for name, place in (("table_properties", SettingPlace.TABLE), ("spark_conf", SettingPlace.FLOW)):
            assert wrong_setting(arguments.get(name, {}), of_flow=True) is None
            assert wrong_place(arguments.get(name, {}), place) is None


rows = st.integers(1, 1_000_000)


@given(st.integers(0, 60), rows, st.floats(0.05, 4.0), st.integers(0, 10_000), st.integers(1, 15))
def test_a_healthy_constant_stream_has_no_finding(count, each, seconds, kept, per_update):
    """Batches of one size at one pace, faster than they come, with state of one size: nothing is to be done."""
    own = tuple(
        replace(batch, update_id=f"u{batch.batch_id // per_update}")
        for batch in batches(count, input_rows=each, seconds=seconds, states=lambda _: state(0, rows=kept))
    )
    for interval in (None, 4.5):
        facts = pipeline(flow(batches=own, interval=interval), interval=interval, run_for=interval and 600.0)
        assert advise(facts) == []


def codes(facts):
    return {finding.code for finding in advise(facts)}


@given(st.floats(0.01, 100), st.floats(0.01, 100), st.floats(1.0, 10.0))
def test_slower_batches_never_mend_an_interval(seconds, interval, factor):
    """A stream that is over its interval is so with slower batches, too; the remedy's interval is one that it keeps."""

    def of(pace, looked):
        return pipeline(
            flow(batches=batches(5, seconds=pace), interval=looked), interval=looked, run_for=600.0
        )

    if "BATCH_OVER_INTERVAL" in codes(of(seconds, interval)):
        assert "BATCH_OVER_INTERVAL" in codes(of(seconds * factor, interval))
        (finding,) = [f for f in advise(of(seconds, interval)) if f.code == "BATCH_OVER_INTERVAL"]
        spec = PipelineSpec.model_validate(
            {"name": "shop", **yaml.safe_load(finding.remedies[0].settings[0].text)}
        )
        assert "BATCH_OVER_INTERVAL" not in codes(of(seconds, spec.trigger.interval.total_seconds()))
        assert spec.trigger.run_for >= spec.trigger.interval


@given(st.integers(1, 500), st.integers(0, 100_000), st.integers(1, 50))
def test_a_larger_backlog_never_mends_a_limit(limit, files, factor):
    """The finding stays with a larger backlog, and a remedy's limit is higher than the one that is there."""

    def of(unread):
        return pipeline(flow(sources=(waiting(limit, unread),)))

    if "LIMIT_TOO_LOW" in codes(of(files)):
        assert "LIMIT_TOO_LOW" in codes(of(files * factor))
        (finding,) = [f for f in advise(of(files)) if f.code == "LIMIT_TOO_LOW"]
        value = int(re.search(r", (\d+)\)", finding.remedies[0].settings[0].text)[1])
        assert value > limit


@given(st.integers(1, 5000), st.integers(0, 5000), st.integers(1, 20))
def test_more_state_never_mends_it(start, each, factor):
    """State that grows too much does so if it grows faster."""

    def of(more):
        return pipeline(flow(batches=batches(6, states=lambda n: state(n, rows=start, each=more))))

    if "STATE_UNBOUNDED" in codes(of(each)):
        assert "STATE_UNBOUNDED" in codes(of(each * factor))


@given(st.integers(1, 3000), st.integers(1, 10_000_000), st.integers(1, 20))
def test_more_files_of_the_same_bytes_are_never_better(files, size, factor):
    """A table that has too many small files has so if it is cut into more."""
    if "SMALL_FILES" in codes(pipeline(of=table(files=files, bytes=size))):
        assert "SMALL_FILES" in codes(pipeline(of=table(files=files * factor, bytes=size)))


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=30), st.integers(2, 50))
def test_a_larger_largest_batch_is_never_more_even(sizes, factor):
    """Batches that are uneven are so if the largest one is larger."""

    def of(counts):
        source = SourceFact(SourceKind.KAFKA, "events")
        return pipeline(flow(batches=batches(len(counts), input_rows=lambda n: counts[n]), sources=(source,)))

    if "SKEWED_BATCHES" in codes(of(sizes)):
        largest = sizes.index(max(sizes))
        assert "SKEWED_BATCHES" in codes(of([n * factor if i == largest else n for i, n in enumerate(sizes)]))


def test_state_that_is_freed_is_no_finding():
    """A watermark that frees rows bounds the state, however it grows at first; one that has not moved yet could not."""
    for more in (
        {"watermark": float, "states": lambda n: state(n, each=1000, removed=int(n == 5))},
        {"watermark": 0.0},
    ):
        own = batches(8, **{"states": lambda n: state(n, each=1000), **more})
        assert codes(pipeline(flow(batches=own))) == set()


def test_a_state_remedy_names_keys_and_times():
    """The keys are those of the query, the time is a column of the source, and the table is to be filled again."""
    (finding,) = advise(SICK["STATE_UNBOUNDED"][0])
    first = finding.remedies[0]
    text = '.withWatermark("happened", "10 minutes").dropDuplicatesWithinWatermark(["id"])'
    assert first.settings[0].text == text
    assert first.commands == ("headwater run jobs/pipelines/shop --full-refresh events",)
    (finding,) = advise(SICK["STATE_UNBOUNDED of groups"][0])
    assert (
        finding.remedies[0].settings[0].text
        == '.withWatermark("happened", "10 minutes").groupBy(F.window("happened", "1 hour"), "user")'
    )


def test_limits_are_spelled_as_the_read_spells_them():
    """With their prefix for cloudFiles, where the default of a thousand files is nothing to take away."""
    for options, replaced in (
        ({"maxFilesPerTrigger": "1000"}, ""),
        ({"maxFilesPerTrigger": "10"}, '.option("cloudFiles.maxFilesPerTrigger", 10)'),
    ):
        source = SourceFact(
            SourceKind.FILES, "landing", options, cloud_files=True, unread={"files": 10_000_000}
        )
        (finding,) = advise(pipeline(flow(sources=(source,), batches=batches(8, input_rows=10))))
        setting = finding.remedies[0].settings[0]
        assert setting.text.startswith('.option("cloudFiles.maxFilesPerTrigger", ')
        assert setting.instead_of == replaced


def test_small_files_of_a_continuous_pipeline():
    """No schedule of maintenance runs beside its update, and none is proposed: it is stopped for that."""
    endless = pipeline(of=table(files=100, bytes=100_000), continuous=True, maintained=False)
    (small,) = [one for one in advise(endless) if one.code == "SMALL_FILES"]
    assert small.severity is Severity.WARNING
    assert not any("schedule" in text for text in small.evidence)
    assert not any("maintenance_schedule" in remedy.line for remedy in small.remedies)
    commands = small.remedies[-1].commands
    assert commands[0] == "headwater stop jobs/pipelines/shop"
    assert commands[1].startswith("headwater maintenance jobs/pipelines/shop --tables events")


def test_only_what_a_smaller_batch_helps_gets_one():
    """Where the executors are busy a lower limit is offered; where a batch costs the same whatever its rows, it is not."""
    busy, fixed = (batches(5, executor_seconds=work, phases={"addBatch": 0.9}) for work in (2.0, 0.1))
    texts = []
    for own in (busy, fixed):
        (finding,) = advise(pipeline(flow(batches=own, interval=0.5), interval=0.5, run_for=60.0))
        texts.append(" ".join(remedy.line for remedy in finding.remedies))
    assert "maxFilesPerTrigger" in texts[0]
    assert "local[4]" in texts[0]
    assert "maxFilesPerTrigger" not in texts[1]


def test_running_aggregations_get_no_quarantine():
    """A rule that quarantines is refused on them, so none is proposed."""
    dropping = (("known", "id IS NOT NULL", ViolationAction.DROP),)
    facts = pipeline(flow(output=OutputKind.UPDATE), table(rules=dropping, dropped=3, merges=True))
    assert codes(facts) == set()


def test_severities_come_in_order():
    """Warnings stand before what is good to know."""
    facts = pipeline(flow(sources=(waiting(1, 400),)), table(rules=(), guarded=False))
    assert [finding.severity for finding in advise(facts)] == [Severity.WARNING, Severity.INFO]


@given(st.floats(0, 1e9))
def test_round_numbers(value):
    """A rounded limit is no lower, and at most twice as high from one on."""
    assert value <= round_up(value) <= max(1, 2 * value + 1)
