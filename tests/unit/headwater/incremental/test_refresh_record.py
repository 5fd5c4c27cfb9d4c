"""The record of a refresh, written into its commit and read back."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.headwater.incremental.test_source_changes import PROTOCOL, add, metadata, remove, table

from headwater.incremental.refresh_record import (
    KEY,
    SEEN,
    RefreshRecord,
    SourceState,
    ViewLog,
    last_record,
    lost_files,
    read_record,
    view_log,
)
from headwater.incremental.techniques import Issue, IssueType

RECORD = RefreshRecord(
    "ROW_BASED", "f", {"spark": "4"}, {"shop/sales": SourceState("t", 3)}, {"files:x": "d"}
)


def commit(*actions, update: str = "u1", **metadata):
    """A commit with what its writer said of it."""
    import json

    body = {"pipeline": "p", "flow": "v", "update": update, **metadata}
    return [{"commitInfo": {"userMetadata": json.dumps(body)}}, *actions]


OWN = commit(add("a"), **{KEY: RECORD.as_dict()})


def test_a_record_comes_back_as_it_was():
    """With sources, and without."""
    assert read_record({KEY: RECORD.as_dict()}) == RECORD
    nowhere = RefreshRecord("NO_OP", "f")
    assert read_record({KEY: nowhere.as_dict()}) == nowhere


@pytest.mark.parametrize(
    ("metadata", "issue"),
    [
        ({}, IssueType.CHANGE_SET_MISSING),
        ({KEY: {"format": 99}}, IssueType.SERIALIZATION_VERSION_CHANGED),
        ({KEY: {**RECORD.as_dict(), "format": 0}}, IssueType.SERIALIZATION_VERSION_CHANGED),
        ({KEY: {"format": 1}}, IssueType.CHANGE_SET_MISSING),
        ({KEY: {**RECORD.as_dict(), "sources": {"a": 1}}}, IssueType.CHANGE_SET_MISSING),
    ],
)
def test_what_is_no_record(metadata, issue: IssueType):
    """It counts for nothing, and says why."""
    record = read_record(metadata)
    assert isinstance(record, Issue)
    assert record.kind is issue


BEFORE = RefreshRecord("NO_OP", "f", {}, {"shop/sales": SourceState("t", 2, 4)})
ANOTHER = RefreshRecord("NO_OP", "f", {}, {"shop/sales": SourceState("u", 7, 5)})
LATER = RefreshRecord("NO_OP", "f", {}, {"shop/sales": SourceState("t", 7, 5)})


@pytest.mark.parametrize(
    ("refresh", "version"),
    [
        ({"update": "u1", SEEN: LATER.seen}, 7),
        ({"update": "u1"}, 3),
        ({"update": "u1", SEEN: None}, 3),
        # Seen in an earlier round of the same update, whose later commit the state does not know; and of another table.
        ({"update": "u1", SEEN: BEFORE.seen}, 3),
        ({"update": "u1", SEEN: ANOTHER.seen}, 3),
        # The state is of another refresh, or of another query.
        ({"update": "u0", SEEN: LATER.seen}, 3),
        ({SEEN: LATER.seen}, 3),
        ({"update": "u1", SEEN: {**LATER.seen, "fingerprint": "g"}}, 3),
        ({"update": "u1", SEEN: {**LATER.seen, "sources": {}}}, 3),
        ({"update": "u1", SEEN: {**LATER.seen, "sources": None}}, 3),
        ({"update": "u1", SEEN: {**LATER.seen, "sources": {"shop/sales": 7}}}, 3),
    ],
)
def test_changes_that_came_to_nothing_are_behind(tmp_path: Path, refresh, version: int):
    """The next refresh goes on from where the sources stood then, if the flow's state is of the refresh that the log has."""
    record = last_record(table(tmp_path / "v", OWN), "p", "v")
    assert isinstance(record, RefreshRecord)
    gone_on = record.going_on_from(refresh)
    assert gone_on.sources is not None
    assert gone_on.sources["shop/sales"].version == version
    assert (gone_on.fingerprint, gone_on.others) == (RECORD.fingerprint, RECORD.others)


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ([], None),
        ([[add("b", moved=True), remove("a", moved=True)]], None),
        ([[metadata(a="b")]], None),
        ([[add("b")]], IssueType.DATA_HAS_CHANGED),
        ([commit(add("b"), flow="another", **{KEY: RECORD.as_dict()})], IssueType.DATA_HAS_CHANGED),
        ([commit(remove("a"))], IssueType.DATA_HAS_CHANGED),
        ([[remove("a")], [add("a")]], IssueType.DATA_HAS_CHANGED),
    ],
)
def test_the_views_log_is_the_truth(tmp_path: Path, later, expected: IssueType | None):
    """The newest refresh counts where nothing else has changed rows since; optimize and properties change none."""
    view = table(tmp_path / "v", OWN, *later)
    record = last_record(view, "p", "v")
    assert record == RECORD if expected is None else (isinstance(record, Issue) and record.kind is expected)


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ([], None),
        ([[add("b", moved=True), remove("a", moved=True)]], None),
        ([[add("b")], [metadata(a="b")]], 2),
        # A replay of quarantined rows, of the same flow.
        ([commit(add("b"))], None),
        ([[remove("a")], commit(add("b"))], None),
    ],
)
def test_what_others_did_to_a_view(tmp_path: Path, later, expected: int | None):
    """The version that has rows which no commit of the view's own flow has seen since."""
    view = table(tmp_path / "v", OWN, *later)
    assert view_log(view, "p", "v").foreign == expected
    assert view_log(tmp_path / "none", "p", "v") == ViewLog()


def test_a_view_without_its_files(tmp_path: Path):
    """What its newest refresh wrote has to be there; files that a later one replaced have not."""
    view = table(tmp_path / "v", [add("a")], [remove("a"), add("b")])
    issue = lost_files(view)
    assert issue is not None
    assert issue.kind is IssueType.DATA_FILE_MISSING
    assert "b" in issue.reason
    (view / "b").write_bytes(b"x" * int(add("b")["add"]["size"]))
    assert lost_files(view) is None


def test_a_view_without_a_refresh(tmp_path: Path):
    """A table that was only made has nothing to go on from; and a log that is gone neither."""
    view = table(tmp_path / "v", first=[PROTOCOL, metadata()])
    record = last_record(view, "p", "v")
    assert isinstance(record, Issue)
    assert record.kind is IssueType.CHANGE_SET_MISSING
    assert isinstance(last_record(tmp_path / "nothing", "p", "v"), Issue)


def test_whose_the_newest_refresh_is(tmp_path: Path):
    """Delta leaves out, in silence, a commit with a number that it has: the update that made the newest one is named."""
    view = table(tmp_path / "v", OWN, commit(add("b"), update="u2"), [add("c")])
    assert view_log(view, "p", "v").update == "u2"
    assert view_log(view, "p", "w").update is None


def test_a_copy_of_a_view_that_was_brought_back(tmp_path: Path):
    """Its newest refresh is not the one that the flow's state knows; a replay of rows is no refresh."""
    view = table(tmp_path / "v", OWN, commit(add("b"), update="u2"))
    assert view_log(view, "p", "v").stands_at({"update": "u2"})
    assert view_log(view, "p", "v").stands_at({})
    assert not view_log(view, "p", "v").stands_at({"update": "u3"})
    replayed = [{"commitInfo": {"userMetadata": '{"pipeline": "p", "flow": "v"}'}}, add("c")]
    assert view_log(table(tmp_path / "w", OWN, replayed), "p", "v") == ViewLog(None, "u1")


def test_a_copy_of_a_source_that_was_brought_back(tmp_path: Path):
    """The table is the same by its id and its version, and the commit under this number is another one."""

    def made(name: str, millis: object) -> Path:
        return table(tmp_path / name, [{"commitInfo": {"timestamp": millis}}, add("b")])

    state = SourceState("t", 1, written=5)
    assert not state.is_of_another_history(made("same", 5))
    assert state.is_of_another_history(made("other", 6))
    assert state.is_of_another_history(made("by a clock that is behind", 4))
    # Where the log does not say, or does not reach back, nothing is held against it.
    assert not state.is_of_another_history(made("silent", None))
    assert not state.is_of_another_history(tmp_path / "gone")
    assert not SourceState("t", 1).is_of_another_history(made("older record", 6))


REPLAY = [{"commitInfo": {"userMetadata": '{"pipeline": "p", "flow": "v"}'}}, add("a")]


@pytest.mark.parametrize(
    ("commits", "gone", "foreign"),
    [([[add("a")]], 0, None), ([[add("a")], [add("b")]], 0, None), ([[add("a")], [add("b")]], 1, 2), ([REPLAY, [add("b")]], 0, 2)],
    ids=["a commit", "two commits", "the first of the log is gone", "a replay before"],
)  # fmt: skip
def test_a_log_without_a_refresh(tmp_path: Path, commits, gone: int, foreign: int | None):
    """Rows that were there from the beginning are nobody's change; where the log may have lost a refresh, or has a replay, they are."""
    view = table(tmp_path / "v", *commits)
    for version in range(gone):
        (view / "_delta_log" / f"{version:020d}.json").unlink()
    assert view_log(view, "p", "v") == ViewLog(foreign)
