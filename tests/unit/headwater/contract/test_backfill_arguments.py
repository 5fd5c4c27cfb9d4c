"""What `backfill` takes, and what does not go together."""

from __future__ import annotations

import pytest

from headwater.backfills.backfill_range import BackfillMode, RangeKind
from headwater.commands.backfill import known_tables
from headwater.contract.backfill_arguments import parse_backfill_arguments
from headwater.errors import UnknownDataset, UsageError
from headwater.graph.manifest import DatasetEntry, Manifest

BY_TIME = ["--column", "at", "--from", "2026-01-01", "--to", "2026-01-02"]


def test_the_mode_is_the_tables_own_unless_it_is_given():
    """Nothing is decided before the table is known."""
    assert parse_backfill_arguments(["p", "--tables", "a,b,a", *BY_TIME]).mode is None
    given = parse_backfill_arguments(["p", "--tables", "a,b,a", *BY_TIME, "--mode", "merge", "--keys", "x,y"])
    assert (given.mode, given.keys, given.tables) == (BackfillMode.MERGE, ("x", "y"), ("a", "b"))


def test_a_condition_names_the_rows():
    """`--where` needs no kind of range beside it, and may replace rows or merge them."""
    given = parse_backfill_arguments(["p", "--tables", "a", "--where", "x > 1", "--mode", "replace-where"])
    assert given.chosen is not None
    assert (given.chosen.kind, given.chosen.condition) == (RangeKind.WHERE, "x > 1")
    merged = ["p", "--tables", "a", "--range", "where", "--where", "x > 1", "--mode", "merge", "--keys", "x"]
    assert parse_backfill_arguments(merged).keys == ("x",)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (BY_TIME, "--tables"),
        (["--tables", "a"], "both ends"),
        (["--tables", "a", "--range", "version", "--from", "1", "--to", "2", "--mode", "replace-where"], "range of the table's rows"),
        (["--tables", "a", *BY_TIME, "--keys", "x"], "--mode merge"),
        (["--tables", "a", *BY_TIME, "--then-stream"], "--then-stream"),
        (["--tables", "a", "--where", "x > 1", "--then-stream"], "--then-stream"),
        (["--tables", "a", "--where", "x > 1", *BY_TIME], "without ends"),
        (["--tables", "a", "--mode", "merge", "--then-stream"], "--then-stream"),
        (["--tables", "a", *BY_TIME, "--mode", "upsert"], "--mode"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(arguments, words):
    """With the options by name."""
    with pytest.raises(UsageError) as caught:
        parse_backfill_arguments(["p", *arguments])
    assert words in f"{caught.value.what} {caught.value.remedy}"


def test_an_unknown_table_is_told_with_the_nearest_name():
    """Before Spark is started, from the manifest; letter case does not matter."""
    manifest = Manifest(
        headwater_version="1",
        pipeline_id="p",
        pipeline_name="p",
        schema_name="s",
        source_hash="h",
        datasets=(DatasetEntry(name="Orders", kind="streaming_table"), DatasetEntry(name="v", kind="temporary_view")),
        flows=(),
    )  # fmt: skip
    assert known_tables(manifest, ["orders"]) == ["Orders"]
    with pytest.raises(UnknownDataset) as caught:
        known_tables(manifest, ["oders"])
    assert "'Orders'" in caught.value.remedy
    with pytest.raises(UnknownDataset):
        known_tables(manifest, ["v"])
