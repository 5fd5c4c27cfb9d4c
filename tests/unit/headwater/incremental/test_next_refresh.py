"""The sentence about a view's next refresh."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.incremental.next_refresh import NextRefresh
from headwater.incremental.techniques import RefreshPolicy

AUTO, STEADY, FULL, STRICT = (
    RefreshPolicy.AUTO,
    RefreshPolicy.INCREMENTAL,
    RefreshPolicy.FULL,
    RefreshPolicy.INCREMENTAL_STRICT,
)
MOVED = {"technique": "ROW_BASED", "seconds": 1.25, "full": 9.0}


@pytest.mark.parametrize(
    ("policy", "facts", "words"),
    [
        (AUTO, {"unchanged": True}, "NO_OP: no source has changed since the last refresh."),
        (AUTO, {"unchanged": True, "edited": True}, "if the view has another query by that, it is recomputed"),
        (AUTO, {"unchanged": True, "fed": ["st"]}, "st may change before"),
        (AUTO, {"unchanged": True, "looked_at": True, "eligible": False}, "COMPLETE_RECOMPUTE: its result may be another one"),
        (AUTO, {"unchanged": True, "looked_at": True}, "It is looked at in each update"),
        (AUTO, {"unchanged": True, "against": "n of t is not what it was"}, "COMPLETE_RECOMPUTE: n of t is not what it was."),
        (AUTO, {"eligible": False}, "as said above"),
        (FULL, MOVED, 'COMPLETE_RECOMPUTE: refresh_policy="full" asks for it.'),
        (STEADY, {**MOVED, "enabled": False}, "headwater.incremental.enabled=false"),
        (STEADY, {**MOVED, "replaced_part": True}, "PARTITION_OVERWRITE: replace_where names"),
        (AUTO, {**MOVED, "rejected": "too much"}, 'COMPLETE_RECOMPUTE: too much. With refresh_policy="incremental"'),
        (STEADY, {**MOVED, "rejected": "too much"}, "ROW_BASED: it is expected to take about 1.2 s, a full refresh 9.0 s."),
        (AUTO, MOVED, "a full refresh 9.0 s. NO_OP, if no row that the view uses is another one."),
        (STEADY, {**MOVED, "full": 0.5}, 'a full refresh 0.5 s, but refresh_policy="incremental" asks for this one.'),
        (STRICT, {"against": "n of t is not what it was"}, "The update will fail"),
        (STRICT, {"against": "it was made anew", "begins": True}, "COMPLETE_RECOMPUTE: it was made anew."),
        (AUTO, {"unknown": ["prices"]}, "COMPLETE_RECOMPUTE, if prices has changed, else NO_OP: no log tells"),
        (AUTO, {"unknown": ["prices"], "technique": "APPEND_ONLY"}, "if prices has changed, else APPEND_ONLY: no log"),
        (AUTO, {}, "Not known"),
    ],
)  # fmt: skip
def test_what_comes_next(policy: RefreshPolicy, facts: dict[str, Any], words: str) -> None:
    """Each case names the technique, and why it is that one."""
    assert words in NextRefresh(policy, **{"eligible": True, **facts}).text


@pytest.mark.parametrize(
    ("edited", "against", "said"),
    [(True, None, True), (False, None, False), (True, "it reads a clock", False)],
)
def test_an_edited_pipeline(edited: bool, against: str | None, said: bool):
    """That its files have changed may make the refresh another one, unless it is recomputed in any case."""
    given = NextRefresh(
        RefreshPolicy.AUTO, eligible=True, edited=edited, against=against, technique="ROW_BASED"
    )
    plain = NextRefresh(RefreshPolicy.AUTO, eligible=True, against=against, technique="ROW_BASED")
    assert (given.text != plain.text) is said
    assert given.text.startswith(plain.text)
