"""A flow's kind answers what is asked of it."""

from __future__ import annotations

import pytest

from headwater.definitions.change_flow import ChangeFlow
from headwater.definitions.flow import Flow, Replacement
from headwater.definitions.output_kind import OutputKind
from headwater.definitions.snapshot_flow import SnapshotFlow

QUESTIONS = (
    "only_adds_rows",
    "merges_by_key",
    "is_aggregation",
    "keeps_newest",
    "query_mode",
    "event_log_type",
)
ANSWERS = {
    "append": (True, False, False, False, "append", "APPEND"),
    "update": (False, True, True, False, "update", "CHANGE"),
    "complete": (False, False, True, False, "complete", "COMPLETE"),
    "replace": (False, True, False, True, "append", "CHANGE"),
    "changes": (False, True, False, True, "append", "CHANGE"),
    "snapshot": (False, True, False, False, "append", "SNAPSHOT_CHANGE"),
}


@pytest.mark.parametrize("kind", OutputKind)
def test_each_kind_answers_each_question(kind):
    """Every kind has its row in the table of answers, and is spelled as in the manifest."""
    assert tuple(getattr(kind, question) for question in QUESTIONS) == ANSWERS[kind.value]


def test_a_declaration_says_its_kind():
    """What merges by keys of its own says so in its declaration; the query of any other flow decides."""
    changes = ChangeFlow("source", ("id",), "at")

    def kind(**declared):
        return Flow("f", "t", lambda: None, **declared).declared_output

    assert kind() is OutputKind.APPEND
    assert kind(replacement=Replacement(("id",), "at")) is OutputKind.REPLACE
    assert kind(changes=changes) is OutputKind.CHANGES
    assert kind(snapshots=SnapshotFlow(changes)) is OutputKind.SNAPSHOT
