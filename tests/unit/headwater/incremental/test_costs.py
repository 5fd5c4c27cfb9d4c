"""Whether an incremental refresh is worth it."""

from __future__ import annotations

import pytest

from headwater.errors import InvalidSpec
from headwater.incremental.costs import (
    FADING,
    FIRST_RUN,
    FIXED_SECONDS,
    LOOK_SECONDS,
    LOOKED_INTO_BYTES,
    SMALL_FULL_SECONDS,
    SMALL_SECONDS,
    Effort,
    FullRun,
    Limits,
    Reach,
    SourceSize,
    corrected,
    full_runs,
    known_reach,
    limits_from,
    not_faster,
    predicted_full,
    predicted_incremental,
    predicted_part,
    rejected,
    worth_a_look,
)
from headwater.incremental.techniques import Technique

MB = 1_000_000
LARGE = [SourceSize("sales", 1000, 10)]


@pytest.mark.parametrize(
    ("limits", "changed", "full", "incremental", "sub_type"),
    [
        (Limits(), LARGE, 60.0, 5.0, None),
        (Limits(), LARGE, SMALL_SECONDS - 0.1, 0.1, "TABLE_SIZE_THRESHOLD_EXCEEDED"),
        (Limits(), LARGE, SMALL_SECONDS, 0.4, None),
        (Limits(), LARGE, SMALL_SECONDS + 0.1, 0.4, None),
        (Limits(), [SourceSize("sales", 1000, 250)], 60.0, 5.0, None),
        (Limits(), [SourceSize("sales", 1000, 251)], 60.0, 5.0, "CHANGESET_SIZE_THRESHOLD_EXCEEDED"),
        (Limits(max_changed_share=0.5), [SourceSize("sales", 1000, 251)], 60.0, 5.0, None),
        (Limits(), LARGE * 4, 60.0, 5.0, "NUM_JOINS_THRESHOLD_EXCEEDED"),
        (Limits(max_changed_sources=4), LARGE * 4, 60.0, 5.0, None),
        (Limits(), LARGE, 60.0, 48.0, "COST_MODEL_REJECTION_SUB_TYPE_UNSPECIFIED"),
    ],
)
def test_what_is_not_worth_it(limits: Limits, changed, full: float, incremental: float, sub_type: str | None):
    """Too small a view, too large a change, too many sources, too little gained: each with its name; limits can be set."""
    issue = rejected(limits, changed, full, incremental)
    assert (issue.sub_type if issue else None) == sub_type


def test_predictions():
    """A full refresh grows with its sources; an incremental one has a fixed price, and its share of a full one."""
    twice = [FullRun(12.0, MB), FullRun(10.0, MB)]
    assert predicted_full(twice, 2 * MB) == 20.0
    assert predicted_full(twice, MB) == 10.0
    assert (
        predicted_full(twice, MB // 2) == 10.0
    )  # sources that shrank are not read faster than they ever were
    assert predicted_full([], 20_000_000) == FIXED_SECONDS / 2 + 1
    appended = predicted_incremental(100.0, LARGE, Technique.APPEND_ONLY)
    assert 1 < appended < predicted_incremental(100.0, LARGE, Technique.GROUP_AGGREGATE) < FIXED_SECONDS + 1
    assert predicted_incremental(100.0, LARGE, Technique.ROW_BASED) == pytest.approx(FIXED_SECONDS + 11)
    # Of several sources, the one that changed most.
    two = [*LARGE, SourceSize("customers", 1000, 20)]
    assert predicted_incremental(100.0, two, Technique.ROW_BASED) == pytest.approx(FIXED_SECONDS + 12)
    assert SourceSize("t", 0, 0).share == 1.0


def test_the_first_full_refresh_counts_less():
    """It was made by a driver that had just begun; of several the fastest counts, by its own size."""
    assert predicted_full([FullRun(10.0, MB)], MB) == pytest.approx(10 * FIRST_RUN)
    assert predicted_full([FullRun(30.0, 2 * MB), FullRun(8.0, MB), FullRun(25.0, 2 * MB)], 2 * MB) == 16.0


def test_small_sources_are_read_in_no_time():
    """However long the driver took to begin; what is measured again counts, as of a query that makes much of little."""
    assert predicted_full([FullRun(30.0, 100)], 100) == SMALL_FULL_SECONDS
    assert predicted_full([FullRun(30.0, 100), FullRun(28.0, 100)], 100) == 28.0
    assert rejected(Limits(), LARGE, predicted_full([FullRun(30.0, 100)], 100), 0.1) is not None


def test_the_extent_of_a_part():
    """What is read and written again, of all; what is written counts double."""
    assert predicted_part(10.0, Effort(10, 100, 0, 50)) == pytest.approx(FIXED_SECONDS + 0.5)
    assert predicted_part(10.0, Effort(0, 100, 25, 50)) == pytest.approx(FIXED_SECONDS + 2.5)
    assert predicted_part(10.0, Effort(100, 100, 50, 50)) == FIXED_SECONDS + 10
    assert predicted_part(10.0, Effort(0, 0, 0, 0)) == FIXED_SECONDS + 10


def test_a_look_that_is_shared_costs_nothing():
    """Where another view of the update has looked for the changed rows; new rows that are only taken in need no look."""
    near = Effort(10, 100, 0, 50)
    saved = predicted_part(10.0, near) - predicted_part(10.0, near, shared=True)
    assert saved == pytest.approx(LOOK_SECONDS)
    for technique, less in ((Technique.ROW_BASED, LOOK_SECONDS), (Technique.APPEND_ONLY, 0.0)):
        alone, together = (
            predicted_incremental(10.0, LARGE, technique, shared=shared) for shared in (False, True)
        )
        assert alone - together == pytest.approx(less)


def test_rows_of_other_keys_are_only_read():
    """Of a part with few keys that lie in all files, most of what the query makes of rows is saved."""
    few, all_of_them = Effort(100, 100, 10, 10, 0.01), Effort(100, 100, 10, 10, 1.0)
    assert predicted_part(10.0, few) < predicted_part(10.0, all_of_them) * 0.7
    assert all_of_them.share == 1.0


def test_how_far_changes_reached_before_is_expected_again():
    """Less so with each refresh that did not look, and for a smaller change; where nothing is known, a small part."""
    far = Reach(0.9, 0.01)
    assert predicted_incremental(100.0, LARGE, Technique.ROW_BASED, far) == pytest.approx(FIXED_SECONDS + 90)
    assert predicted_incremental(
        100.0, [SourceSize("sales", 1000, 1)], Technique.ROW_BASED, far
    ) == pytest.approx(FIXED_SECONDS + 9)
    assert predicted_incremental(100.0, LARGE, Technique.ROW_BASED, far.unseen.unseen) == pytest.approx(
        FIXED_SECONDS + 90 * FADING**2
    )
    assert predicted_incremental(100.0, LARGE, Technique.APPEND_ONLY, far) < 3
    assert known_reach({"reach": {"ROW_BASED": [0.9, 0.01, 2]}}, Technique.ROW_BASED) == far.unseen.unseen
    assert known_reach({}, Technique.ROW_BASED) is None


@pytest.mark.parametrize("full", [2.0, 5.0, 20.0, 100.0])
def test_a_view_whose_changes_reach_everywhere_is_looked_at_again_at_times(full: float):
    """Not each time, since a look costs a job; and not never, since the next change may lie together."""
    reach, looks = Reach(0.95, 0.01), []
    for number in range(20):
        if not_faster(full, predicted_incremental(full, LARGE, Technique.ROW_BASED, reach)):
            reach = reach.unseen
        else:
            reach = Reach(0.95, 0.01)
            looks.append(number)
    assert 1 <= len(looks) <= 10


def test_a_part_that_is_the_whole_is_not_worth_it():
    """With both times in the reason."""
    issue = not_faster(10.0, 9.0)
    assert issue is not None
    assert issue.reason == "it would take about 9.0 s, and a full refresh 10.0 s"
    assert not_faster(10.0, 7.9) is None


def test_full_refreshes_that_a_state_knows():
    """As this version notes them, and as the one before did, which noted the last one alone."""
    assert full_runs({"full_runs": [[9.0, 5], [8.0, 6]], "full_seconds": 8.0, "full_bytes": 6}) == [FullRun(9.0, 5), FullRun(8.0, 6)]  # fmt: skip
    assert full_runs({"full_seconds": 8.0, "full_bytes": 6}) == [FullRun(8.0, 6)]
    assert full_runs({}) == []


def test_limits_are_settings():
    """Spelled in any letter case; others are left alone."""
    settings = {"headwater.incremental.maxchangedshare": "0.5", "headwater.incremental.maxKeys": "10", "headwater.incremental.enabled": "False", "a": "b"}  # fmt: skip
    assert limits_from(settings) == Limits(enabled=False, max_changed_share=0.5, max_keys=10)
    assert limits_from({}) == Limits()


@pytest.mark.parametrize(
    ("key", "value"),
    [("maxChangedShare", "2"), ("maxChangedShare", "x"), ("maxKeys", "0"), ("maxKeys", "1.5"), ("enabled", "1"), ("maxKey", "1")],
)  # fmt: skip
def test_settings_that_can_not_be(key: str, value: str):
    """A setting that there is not, or a value that it can't have, is refused with what may be given."""
    with pytest.raises(InvalidSpec) as refused:
        limits_from({f"headwater.incremental.{key}": value})
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([], 10.0),
        ([[4.0, 8.0]], 20.0),
        ([[4.0, 4.0], [4.0, 2.0], [4.0, 40.0]], 10.0),
        ([[1.0, 100.0]], 50.0),
        ([[100.0, 1.0]], 2.0),
        ([[0.0, 3.0]], 10.0),
    ],
)
def test_predictions_are_corrected_by_the_last_runs(runs: list[list[float]], expected: float):
    """By the median of how they came out, so that one slow run decides nothing; and never beyond all measure."""
    assert corrected(10.0, runs) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("changed", "full", "worth"),
    [
        (LOOKED_INTO_BYTES - 1, SMALL_SECONDS, True), (LOOKED_INTO_BYTES - 1, SMALL_SECONDS - 0.1, False),
        (LOOKED_INTO_BYTES, 60.0, False), (LOOKED_INTO_BYTES // 4, 60.0, True), (LOOKED_INTO_BYTES // 4, 0.1, True),
    ],
)  # fmt: skip
def test_rows_that_are_compared_first(changed: int, full: float, worth: bool):
    """Few bytes of a view that takes its time are looked into though they are most of a source; many only where the share is small."""
    sources = [
        SourceSize("small", LOOKED_INTO_BYTES, changed),
        SourceSize("still", 10 * LOOKED_INTO_BYTES, 0),
    ]
    assert worth_a_look(Limits(), sources, full) is worth
