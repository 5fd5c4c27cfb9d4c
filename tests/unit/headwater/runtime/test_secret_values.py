"""Which texts are secrets of this process."""

from __future__ import annotations

import pytest

from headwater.runtime.secret_values import REDACTED, note_secret, without_known


@pytest.mark.parametrize("time", ["first", "second"])
def test_what_a_test_has_noted_is_no_secret_of_the_next(time: str):
    """Texts of tests have the same words: one that another test noted would be left out of them, in some orders of tests alone."""
    assert without_known("said by an-other-test") == "said by an-other-test", time
    note_secret("an-other-test")
    assert without_known("said by an-other-test") == f"said by {REDACTED}"
