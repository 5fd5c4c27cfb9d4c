"""The split of a judged batch: each row has exactly one fate, whatever the rules, and the counts agree with it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.headwater_spark import plain_rows
from tests.unit.headwater_spark.plain_rows import Frame, plain_functions

from headwater.definitions.expectation import (
    Expectation,
    UniqueKey,
    UniqueWithin,
    ViolationAction,
    needs_judgement,
    quarantines,
)
from headwater_spark.messages.exception_text import causes_of
from headwater_spark.quarantine import quarantine_table
from headwater_spark.rules import expectations, judgement
from headwater_spark.rules.expectations import RuleCounts, apply_expectations, find_violation, read_quality
from headwater_spark.rules.judgement import (
    broken_names,
    is_kept,
    judged_batch,
    kept_rows,
    mark_rows,
    own_columns,
)
from headwater_spark.rules.source_records import SOURCE

WARN, DROP = ViolationAction.WARN, ViolationAction.DROP
QUARANTINE, FAIL = ViolationAction.QUARANTINE, ViolationAction.FAIL


@pytest.fixture(autouse=True, scope="module")
def _plain():
    with pytest.MonkeyPatch.context() as patch:
        plain_functions(patch, expectations, judgement, quarantine_table)
        yield


def rules_of(actions: Sequence[ViolationAction]) -> list[Expectation]:
    """A rule of each kind; what it gives for a row is in the row's column of the same name."""
    return [Expectation(f"r{index}", f"r{index}", action) for index, action in enumerate(actions)]


def frame_of(rules: Sequence[Expectation], outcomes: Sequence[Sequence[bool | None]], **more: Any) -> Frame:
    """A row for each list of outcomes, with its number."""
    names = [rule.name for rule in rules]
    rows = [
        {"id": number, **dict(zip(names, given, strict=True)), **{key: f"{key}{number}" for key in more}}
        for number, given in enumerate(outcomes)
    ]
    return Frame(rows, ["id", *names, *more])


def batches(actions: Sequence[ViolationAction]) -> st.SearchStrategy[Any]:
    """Rules of these kinds, and rows with what each rule gives."""
    kinds = st.lists(st.sampled_from(actions), min_size=1, max_size=6)
    return kinds.flatmap(
        lambda chosen: st.tuples(
            st.just(chosen),
            st.lists(st.tuples(*[st.sampled_from([True, False, None])] * len(chosen)), max_size=8),
        )
    )


def fate(rules: Sequence[Expectation], outcome: Sequence[bool | None]) -> str:
    """The specification: NULL passes; a quarantine goes before a drop; a warning keeps the row."""
    kinds = {rule.action for rule, passed in zip(rules, outcome, strict=True) if passed is False}
    if QUARANTINE in kinds:
        return "quarantined"
    return "dropped" if DROP in kinds else "kept"


@given(batches([WARN, DROP, QUARANTINE]))
def test_each_row_has_exactly_one_fate(batch):
    """Kept, dropped and quarantined rows are all rows, none twice; the quality says how many of each and by which rule."""
    actions, outcomes = batch
    rules = rules_of(actions)
    fates = [fate(rules, outcome) for outcome in outcomes]
    with judged_batch(mark_rows(frame_of(rules, outcomes), rules), rules) as (judged, quality):
        kept = kept_rows(judged, rules)
        broken = judged.where(expectations.any_broken(rules, QUARANTINE))
        assert [row["id"] for row in kept.rows] == [n for n, fate in enumerate(fates) if fate == "kept"]
        assert [r["id"] for r in broken.rows] == [n for n, fate in enumerate(fates) if fate == "quarantined"]
        assert kept.columns == ["id", *(rule.name for rule in rules)]
    counted = Counter(fates)
    assert (quality.rows, quality.accepted) == (len(outcomes), counted["kept"])
    assert (quality.dropped, quality.quarantined) == (counted["dropped"], counted["quarantined"])
    for index, counts in enumerate(quality.rules):
        failed = sum(outcome[index] is False for outcome in outcomes)
        assert counts == RuleCounts(f"r{index}", len(outcomes) - failed, failed)


@given(batches([WARN, DROP, QUARANTINE]))
def test_the_names_of_all_broken_rules(batch):
    """A row says every rule that it breaks, of whatever kind, in the order of the rules."""
    actions, outcomes = batch
    rules = rules_of(actions)
    with judged_batch(mark_rows(frame_of(rules, outcomes), rules), rules) as (judged, _):
        names = judged.select(broken_names(rules).alias("names")).rows
    assert [row["names"] for row in names] == [
        [f"r{index}" for index, passed in enumerate(outcome) if passed is False] for outcome in outcomes
    ]


@given(batches([WARN, DROP, QUARANTINE, FAIL]))
def test_a_row_that_breaks_a_fail_rule_fails_its_batch(batch):
    """A batch is judged if and only if no row breaks a rule of kind fail, whatever the other rules make of that row; the
    message names the rules of kind fail that the first such row breaks, and the row.
    """
    actions, outcomes = batch
    rules = rules_of(actions)
    failing = [
        [f"r{i}" for i, passed in enumerate(outcome) if passed is False and actions[i] is FAIL]
        for outcome in outcomes
    ]
    if not any(failing):
        with judged_batch(mark_rows(frame_of(rules, outcomes), rules), rules) as (_, quality):
            assert quality.rows == len(outcomes)
        return
    with pytest.raises(plain_rows.Raised) as caught:
        mark_rows(frame_of(rules, outcomes), rules)
    violation = find_violation(causes_of([f"SparkRuntimeException: [USER_RAISED_EXCEPTION] {caught.value}"]))
    assert violation is not None
    first = next(number for number, names in enumerate(failing) if names)
    assert list(violation.rules) == failing[first]
    assert json.loads(violation.record)["id"] == first


@given(batches([WARN, DROP, QUARANTINE]))
def test_counted_while_written_is_the_same(batch):
    """The plain path (one observation, one filter) keeps the rows that judging keeps; what a quarantine would take is
    dropped there, and counted as dropped.
    """
    actions, outcomes = batch
    rules = rules_of(actions)
    frame = frame_of(rules, outcomes)
    written = apply_expectations(frame, rules, "seen")
    kept = [number for number, outcome in enumerate(outcomes) if fate(rules, outcome) == "kept"]
    assert [row["id"] for row in written.rows] == kept
    assert written.columns == frame.columns
    quality = read_quality(written.observed["seen"], rules)
    assert (quality.rows, quality.accepted) == (len(outcomes), len(kept))
    assert quality.quarantined == 0
    failed = [sum(outcome[index] is False for outcome in outcomes) for index in range(len(rules))]
    assert [(counts.passed, counts.failed) for counts in quality.rules] == [
        (len(outcomes) - number, number) for number in failed
    ]


def test_more_rules_than_a_mask_has_bits():
    """Rule 63 and later stand in masks of their own: no bit is shared, none is lost."""
    actions = [DROP if index % 2 else QUARANTINE for index in range(130)]
    rules = rules_of(actions)
    outcomes = [[index != broken for index in range(130)] for broken in range(130)]
    marked = mark_rows(frame_of(rules, outcomes), rules)
    with judged_batch(marked, rules, None) as (judged, quality):
        names = [row["names"] for row in judged.select(broken_names(rules).alias("names")).rows]
    assert names == [[f"r{index}"] for index in range(130)]
    assert (quality.quarantined, quality.dropped, quality.accepted) == (65, 65, 0)
    masks = [row[name] for row in marked.rows for name in row if name.startswith("__headwater_breaks_")]
    assert 0 < max(masks) < 2**63  # a bigint, which Spark would let overflow


@pytest.mark.parametrize("broken", [(3, 69), (3,), (69,)])
def test_fail_rules_in_several_masks(broken: tuple[int, ...]):
    """With more fail rules than a mask has bits, a row fails by those of either mask, and the message names all that it breaks."""
    rules = rules_of([FAIL] * 70)
    with pytest.raises(plain_rows.Raised) as caught:
        mark_rows(frame_of(rules, [[index not in broken for index in range(70)]]), rules)
    violation = find_violation(causes_of([f"SparkRuntimeException: [USER_RAISED_EXCEPTION] {caught.value}"]))
    assert violation is not None
    assert violation.rules == tuple(f"r{index}" for index in broken)


def test_without_rules():
    """A stream without rules is left as it is; asked to count, its rows are counted and all kept."""
    frame = frame_of([], [[], []])
    assert apply_expectations(frame, [], "seen") is frame  # type: ignore[arg-type]
    counted = apply_expectations(frame, [], "seen", count=True)  # type: ignore[arg-type]
    assert len(counted.rows) == 2  # type: ignore[attr-defined]
    assert read_quality(counted.observed["seen"], []).rows == 2  # type: ignore[attr-defined]


def test_records_stay_with_the_rows_that_a_quarantine_takes():
    """The source's record is kept beside quarantined rows alone, and is not a column of the row itself."""
    rules = rules_of([QUARANTINE, DROP])
    outcomes = [(True, True), (False, True), (True, False)]
    marked = mark_rows(frame_of(rules, outcomes, **{SOURCE: 1}), rules)
    assert [row[SOURCE] for row in marked.rows] == [None, f"{SOURCE}1", None]
    assert own_columns(marked) == ["id", "r0", "r1"]


def test_records_stay_with_all_rows_that_are_compared():
    """Which row of a key is repeated is known only when all are compared: until then each keeps its record."""
    rules = [*rules_of([QUARANTINE]), unique(QUARANTINE)]
    marked = mark_rows(frame_of(rules[:1], [(True,), (False,)], **{SOURCE: 1}), rules)
    assert [row[SOURCE] for row in marked.rows] == [f"{SOURCE}0", f"{SOURCE}1"]


def unique(action: ViolationAction, within: UniqueWithin = UniqueWithin.BATCH) -> Expectation:
    """A key that may be there once."""
    return Expectation("once", "", action, unique=UniqueKey(("K",), within))


def keyed(*rows: tuple[int | None, int], tables: dict[str, Frame] | None = None) -> Frame:
    """Rows of a key and a value."""
    return Frame([{"k": key, "v": value} for key, value in rows], ["k", "v"], tables)


@given(st.lists(st.tuples(st.sampled_from([1, 2, None]), st.integers(0, 5)), max_size=8, unique=True))
def test_one_row_of_each_key_stays(rows):
    """The least row of a key stays and the others break the rule; a key that is NULL is never repeated."""
    rules = [unique(DROP)]
    with judged_batch(mark_rows(keyed(*rows), rules), rules) as (judged, quality):
        kept = {(row["k"], row["v"]) for row in kept_rows(judged, rules).rows}
    least = {(key, min(v for k, v in rows if k == key)) for key, _ in rows if key is not None}
    assert kept == least | {row for row in rows if row[0] is None}
    assert quality.dropped == quality.rules[0].failed == len(rows) - len(kept)


def test_keys_that_the_table_has(tmp_path):
    """With a table, a key that it has is broken however often it comes; keys it has several times count a row once."""
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_text("{}")
    tables = {str(tmp_path): Frame([{"K": 1}, {"K": 1}, {"K": None}], ["K"])}
    rules = [unique(QUARANTINE, UniqueWithin.TABLE)]
    batch = keyed((1, 1), (2, 2), (2, 3), (None, 4), tables=tables)
    with judged_batch(mark_rows(batch, rules), rules, tmp_path) as (judged, quality):
        assert [row["v"] for row in judged.where(is_kept(rules)).rows] == [2, 4]
    assert (quality.rows, quality.quarantined) == (4, 2)
    with judged_batch(mark_rows(batch, rules), rules, tmp_path / "none") as (_, alone):
        assert alone.quarantined == 1
    within_batch = [unique(QUARANTINE)]
    with judged_batch(mark_rows(batch, within_batch), within_batch, tmp_path) as (_, alone):
        assert alone.quarantined == 1


def test_a_repeated_key_fails_where_its_rule_says_so():
    """A unique rule of kind fail raises with the row that came second; of another kind it does not."""
    batch = keyed((1, 1), (1, 2))
    with (
        pytest.raises(plain_rows.Raised) as caught,
        judged_batch(mark_rows(batch, [unique(FAIL)]), [unique(FAIL)]),
    ):
        pass
    violation = find_violation(causes_of([f"SparkRuntimeException: [USER_RAISED_EXCEPTION] {caught.value}"]))
    assert violation is not None
    assert (violation.rules, json.loads(violation.record)) == (("once",), {"k": 1, "v": 2})
    with judged_batch(mark_rows(batch, [unique(WARN)]), [unique(WARN)]) as (judged, quality):
        assert (len(judged.rows), quality.accepted, quality.rules[0].failed) == (2, 2, 1)


def test_the_kept_batch_is_released():
    """What is kept in memory for the judgement is given back, also where the block raises."""
    rules, seen = rules_of([DROP]), []

    def fail() -> None:
        with judged_batch(mark_rows(frame_of(rules, [(True,)]), rules), rules) as (judged, _):
            seen.append(judged)
            assert judged.kept == 1
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert seen[0].kept == 0


@pytest.mark.parametrize(
    ("rules", "judged", "kept_apart"),
    [([], False, False), (rules_of([WARN, DROP, FAIL]), False, False), (rules_of([WARN, QUARANTINE]), True, True),
     ([unique(WARN)], True, False)],
)  # fmt: skip
def test_when_batches_are_judged(rules, judged, kept_apart):
    """A rule that quarantines or compares rows has batches judged; only the first makes a quarantine table."""
    assert (needs_judgement(rules), quarantines(rules)) == (judged, kept_apart)
