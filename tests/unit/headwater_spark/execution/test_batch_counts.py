"""What is recorded of a batch, as this run saw it, its commit tells it, or a second evaluation gives it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.delta_writes.batch_commits import BatchCommit, as_metadata
from headwater_spark.execution.batch_counts import RECOMPUTED, UNKNOWN, BatchCounts, Recount, batch_counts
from headwater_spark.rules.expectations import Quality, RuleCounts

SEEN_NOTHING = BatchCounts(0, None)


def quality(rows: int, dropped: int) -> Quality:
    return Quality(rows, dropped, (RuleCounts("positive", rows - dropped, dropped),))


def commit(rows: int, judged: Quality | None = None, *, counted: bool = True) -> BatchCommit:
    return BatchCommit(
        3, rows, 0, metadata={"quality": as_metadata(judged)} if judged else {}, counted=counted
    )


def decided(
    seen: BatchCounts,
    of: BatchCommit | None,
    recount: Recount | None,
    *,
    has_rules: bool = True,
    appends: bool = True,
) -> BatchCounts:
    return batch_counts(seen, of, recount, has_rules=has_rules, appends=appends)


def test_what_this_run_saw_stands():
    """A batch that was executed now is recorded as it was observed, whatever a recount says."""
    seen = BatchCounts(10, quality(10, 4))
    assert decided(seen, commit(6), None) == seen
    assert decided(seen, commit(6), Recount(1, quality(1, 0))) == seen


def test_a_batch_without_rows_has_none():
    """An empty batch of this run is recorded with zeros: they are known."""
    observed = BatchCounts(0, quality(0, 0))
    assert decided(observed, None, None) == observed
    assert decided(SEEN_NOTHING, None, None) == SEEN_NOTHING


@pytest.mark.parametrize("seen", [SEEN_NOTHING, BatchCounts(0, quality(0, 0)), BatchCounts(None, None)])
def test_a_batch_that_was_left_out_is_as_it_was_counted_again(seen: BatchCounts):
    """Where Delta left the batch out, or only its record is missing, the second evaluation is recorded, and says so."""
    counts = decided(seen, commit(6), Recount(10, quality(10, 4)))
    assert counts == BatchCounts(10, quality(10, 4), origin=RECOMPUTED)
    all_dropped = decided(seen, commit(0), Recount(4, quality(4, 4)))
    assert all_dropped == BatchCounts(4, quality(4, 4), origin=RECOMPUTED)


def test_a_judged_batch_is_as_its_commit_says():
    """What was judged stands in the commit; a second evaluation adds what was read."""
    counts = decided(SEEN_NOTHING, commit(6, quality(10, 4)), Recount(11, None))
    assert counts == BatchCounts(11, quality(10, 4), origin=RECOMPUTED)
    for seen in (BatchCounts(None, None), BatchCounts(0, quality(0, 0))):
        assert decided(seen, commit(6, quality(10, 4)), None).quality == quality(10, 4)


@given(now=st.integers(0, 9), written=st.integers(0, 9))
def test_another_number_of_rows_is_no_count(now: int, written: int):
    """Of a table that is appended to, a second evaluation counts only if it gives just the rows that were written."""
    counts = decided(BatchCounts(None, None), commit(written), Recount(now + 1, quality(now + 1, 1)))
    if now == written:
        assert counts.origin == RECOMPUTED
    else:
        assert (counts.origin, counts.input_rows, counts.quality, counts.quality_known) == (
            UNKNOWN,
            None,
            None,
            False,
        )
        assert f"gives {now} rows and {written} were written" in (counts.reason or "")


def test_rows_of_merges_are_not_compared():
    """A merge, and a commit without counts, have other numbers of rows than the batch."""
    again = Recount(10, quality(10, 1))
    assert decided(SEEN_NOTHING, commit(3), again, appends=False).origin == RECOMPUTED
    assert decided(SEEN_NOTHING, commit(0, counted=False), again).origin == RECOMPUTED


def test_what_cannot_be_evaluated_is_unknown():
    """Unknown counts are None, never zero; without rules it is known that nothing was kept out."""
    gone = Recount(unknown="the file is gone")
    counts = decided(SEEN_NOTHING, commit(6), gone)
    assert counts == BatchCounts(None, None, quality_known=False, origin=UNKNOWN, reason="the file is gone")
    assert decided(SEEN_NOTHING, commit(6), gone, has_rules=False).quality_known
    assert decided(BatchCounts(None, None), commit(6), None).quality_known is False
    assert decided(BatchCounts(None, None), commit(6), None).origin == UNKNOWN


def test_a_table_without_rules_has_what_was_read():
    """Nothing is observed where there is no rule; the rows read are known from this run, or from the recount."""
    assert decided(BatchCounts(7, None), commit(7), None, has_rules=False) == BatchCounts(7, None)
    again = decided(SEEN_NOTHING, commit(7), Recount(7), has_rules=False)
    assert again == BatchCounts(7, None, origin=RECOMPUTED)


def test_rows_that_nobody_has_judged_again():
    """What was read is known, and what its rules came to is not: the record says so."""
    counts = decided(BatchCounts(7, None), commit(6), None)
    assert (counts.input_rows, counts.quality, counts.quality_known, counts.origin) == (
        7,
        None,
        False,
        UNKNOWN,
    )
    judged = quality(7, 1)
    counts = decided(BatchCounts(7, None), commit(6, judged), None)
    assert (counts.quality, counts.quality_known, counts.origin) == (judged, True, None)
