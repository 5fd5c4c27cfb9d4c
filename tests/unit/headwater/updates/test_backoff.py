"""A flow of a continuous update starts again after waits that grow, and stays failed after some failures that nothing helps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.updates.backoff import Backoff


def after(backoff: Backoff, *transient: bool, ran_well: bool = False) -> Backoff:
    """The state after failures one after another."""
    for one in transient:
        backoff = backoff.after(transient=one, ran_well=ran_well)
    return backoff


def test_waits_double_up_to_the_longest():
    """5, 10, 20 seconds and so on, five minutes at most."""
    waits, state = [], Backoff()
    for _ in range(9):
        state = after(state, True)
        waits.append(state.seconds)
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300, 300]


def test_what_a_retry_does_not_help_ends():
    """After five terminal failures in a row a flow stays failed; a transient one between them begins the count again."""
    assert not after(Backoff(), *[False] * 4).gives_up
    assert after(Backoff(), *[False] * 5).gives_up
    assert not after(Backoff(), *[False] * 4, True, *[False] * 4).gives_up
    assert after(Backoff(most_terminal=1), False).gives_up


def test_what_ran_well_begins_the_count_again():
    """A flow that has written a batch, or all there was, is as good as new."""
    tired = after(Backoff(), *[False] * 4)
    assert after(tired, False, ran_well=True).failures == 1
    assert after(tired, False).gives_up


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=80))
def test_waits_are_bounded(failures: list[tuple[bool, bool]]):
    """Whatever happens, a wait lies between the first and the longest, and transient failures alone never end a flow."""
    state = Backoff()
    for transient, ran_well in failures:
        state = state.after(transient=transient, ran_well=ran_well)
        assert 5 <= state.seconds <= 300
        assert not (transient and state.gives_up)
        assert state.terminal <= state.failures
