"""Which files of a commit its readers need."""

from __future__ import annotations

from headwater.maintenance.needed_files import _of_commit


def test_a_file_counts_unless_its_commit_says_that_no_rows_came():
    """Another writer may leave `dataChange` out; files that only moved rows are not read, those of the change feed always are."""
    actions = [
        {"add": {"path": "silent"}},
        {"remove": {"path": "gone", "dataChange": True}},
        {"add": {"path": "moved", "dataChange": False}},
        {"cdc": {"path": "feed", "dataChange": False}},
    ]
    assert list(_of_commit(actions)) == ["silent", "gone", "feed"]
