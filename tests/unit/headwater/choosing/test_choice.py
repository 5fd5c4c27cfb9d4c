"""What fits which requirements, that it can be written as it stands, and that the page says the same."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from headwater import pipelines as dp
from headwater.choosing.choice import choose
from headwater.choosing.requirements import (
    QUESTIONS,
    BadRows,
    Budget,
    Guarantee,
    Processing,
    Requirements,
    Source,
)
from headwater.choosing.tables import SCENARIOS, TRIGGERS, generated_tables
from headwater.commands.command_line import main
from headwater.definitions.flow_settings import STREAM_INTERVAL, TRIGGER_INTERVAL
from headwater.definitions.intervals import read_duration
from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.definitions.trigger import AvailableNow, Continuous, ProcessingTime

PAGE = Path(__file__).resolve().parents[4] / "docs" / "choosing.md"
spans = st.timedeltas(min_value=timedelta(milliseconds=1), max_value=timedelta(days=30))
needs = st.builds(
    Requirements,
    source=st.sampled_from(Source),
    processing=st.sampled_from(Processing),
    latency=spans,
    volume=st.integers(1, 10**12),
    late_data=spans,
    memory=st.integers(1, 10**12),
    guarantee=st.sampled_from(Guarantee),
    bad_rows=st.sampled_from(BadRows),
    budget=st.sampled_from(Budget),
)


def test_the_five_cases():
    """Reports over what is past are batch, what keeps coming is streaming, and an appended table may be either."""
    answers = [choose(scenario.needs).workload for scenario in SCENARIOS]
    assert answers == ["batch", "streaming", "batch", "streaming", "streaming", "batch", "streaming"]


def interval_of(trigger: str) -> timedelta | None:
    """How often a pipeline with this trigger looks for rows; None of one that begins by a schedule."""
    spec = PipelineSpec.model_validate({"name": "shop", **yaml.safe_load(trigger)})
    if isinstance(spec.trigger, Continuous):
        given = spec.configuration.get(TRIGGER_INTERVAL)
        return read_duration(given) if given is not None else STREAM_INTERVAL
    return spec.trigger.interval if isinstance(spec.trigger, ProcessingTime) else None


@pytest.mark.parametrize(
    ("latency", "budget", "trigger"),
    [
        (0.2, Budget.NORMAL, "trigger: continuous\nconfiguration: {pipelines.trigger.interval: 1 second}"),
        (2.5, Budget.NORMAL, "trigger: continuous\nconfiguration: {pipelines.trigger.interval: 2 seconds}"),
        (5, Budget.NORMAL, "trigger: continuous"),
        (10, Budget.NORMAL, "trigger: continuous"),
        (5, Budget.LOW, "trigger: {processing_time: 5 seconds, run_for: 30 minutes}"),
        (11.5, Budget.NORMAL, "trigger: {processing_time: 11 seconds, run_for: 30 minutes}"),
        (90.25, Budget.NORMAL, "trigger: {processing_time: 90 seconds, run_for: 30 minutes}"),
    ],
)
def test_rows_that_may_wait_seconds(latency: float, budget: Budget, trigger: str):
    """Where a row may wait ten seconds at most, and Spark may stay up, every stream keeps running; no interval is longer than the wait."""
    needs = Requirements(Source.TOPIC, Processing.ROWS, timedelta(seconds=latency), budget=budget)
    assert choose(needs).trigger == trigger


def test_a_view_is_not_left_to_the_minute_of_a_continuous_pipeline():
    """There views look each minute: one that may be a few seconds old is refreshed with the rounds of an update that stays up."""
    needs = Requirements(Source.CHANGING_TABLE, Processing.ROWS, timedelta(seconds=5))
    assert choose(needs).trigger == "trigger: {processing_time: 5 seconds, run_for: 30 minutes}"
    at_once = Requirements(Source.CHANGING_TABLE, Processing.ROWS, timedelta(milliseconds=5))
    assert choose(at_once).trigger == "trigger: {processing_time: 1 second, run_for: 30 minutes}"


@given(needs)
def test_answers_can_be_written_as_they_stand(required):
    """The trigger is one of pipeline.yml, the watermark a delay that Spark reads, the rule a decorator, every choice has a reason."""
    choice = choose(required)
    interval = interval_of(choice.trigger)
    assert interval is None or interval <= max(required.latency, timedelta(seconds=1))
    if choice.watermark:
        delay = re.search(r', "([^"]+)"\)', choice.watermark)[1]
        assert read_duration(delay) >= required.late_data - timedelta(seconds=1)
    assert callable(getattr(dp, re.match(r"@dp\.(\w+)", choice.rule)[1]))
    assert choice.reasons
    assert (choice.workload == "streaming") == bool(choice.table == "streaming table")
    assert all(reason.endswith(".") for reason in choice.reasons)


@given(needs, st.integers(2, 100))
def test_who_may_wait_longer_never_looks_more_often(required, factor):
    """With more patience the interval is no shorter, and a pipeline that may end is not kept running."""

    def interval(latency):
        altered = Requirements(**{**vars(required), "latency": latency})
        return interval_of(choose(altered).trigger) or timedelta.max

    assert interval(required.latency * factor) >= interval(required.latency)


def test_triggers_of_the_page():
    """Each is one that pipeline.yml takes, and none of its triggers is missing."""
    given = [PipelineSpec.model_validate({"name": "shop", **yaml.safe_load(row.here)}) for row in TRIGGERS]
    assert {type(spec.trigger) for spec in given} == {AvailableNow, ProcessingTime, Continuous}


def test_the_page_has_the_same_tables():
    """What is generated stands on the page, between its marks, and nothing else does."""
    text = PAGE.read_text(encoding="utf-8")
    shown = dict(re.findall(r"<!-- generated: (\w+) -->\n(.*?)\n<!-- end -->", text, re.DOTALL))
    assert shown == generated_tables()


def ask(capsys, *options):
    """The command's answer as JSON."""
    code = main(["advise", "--choose", "--json", *options])
    return code, json.loads(capsys.readouterr().out.splitlines()[-1])


def test_options_answer_the_questions(capsys):
    """What is given decides, what is not is assumed and named."""
    code, answer = ask(
        capsys, "--source=topic", "--processing", "aggregate", "--latency=30 seconds", "--late-data=2 hours"
    )
    assert code == 0
    assert answer["choice"]["watermark"] == '.withWatermark("event_time", "2 hours")'
    assert answer["choice"]["trigger"] == "trigger: {processing_time: 30 seconds, run_for: 30 minutes}"
    assert answer["assumed"] == ["volume", "memory", "guarantee", "bad-rows", "budget"]
    assert set(answer["requirements"]) == {question.option for question in QUESTIONS}


@pytest.mark.parametrize(
    "options",
    [
        ["--latency=soon"],
        ["--latency=0 seconds"],
        ["--source=tape"],
        ["--memory=much"],
        ["--volume=0"],
        ["somewhere"],
    ],
)
def test_wrong_answers_are_wrong_use(capsys, options):
    """With the option and what it takes; a folder beside --choose, too."""
    assert ask(capsys, *options)[0] == 2


def test_answers_without_choosing_are_wrong_use(capsys):
    """They would have no effect; and neither folder nor --choose leaves nothing to do."""
    assert main(["advise", "somewhere", "--latency=5 minutes"]) == 2
    assert main(["advise"]) == 2
    assert "--choose" in capsys.readouterr().err


def test_on_a_terminal_it_asks(monkeypatch, capsys):
    """What no option answers, again where the answer is none, with a default for an empty one."""
    answers = iter(["nonsense", "topic", "", "1 second", *[""] * 6])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    assert main(["advise", "--choose"]) == 0
    shown = capsys.readouterr().out
    assert "is not one of: topic" in shown
    assert "trigger: continuous" in shown
    assert "Why:" in shown
