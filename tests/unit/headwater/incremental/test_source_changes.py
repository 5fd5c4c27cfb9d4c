"""What a range of versions did to a table, by its log alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headwater.incremental.source_changes import ChangeKind, SourceChange, changes_between, missing_file
from headwater.incremental.techniques import Issue, IssueType

FIELDS = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in ("id", "unused")]


def add(
    path: str, vector: str | None = None, *, moved: bool = False, size: int = 10, rows: int = 3
) -> dict[str, Any]:
    """A file that comes; ``vector``: the rows of it that are marked as deleted; ``moved``: by optimize."""
    body: dict[str, Any] = {
        "path": path, "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": not moved,
        "stats": json.dumps({"numRecords": rows}),
    }  # fmt: skip
    return {
        "add": body
        | ({"deletionVector": {"storageType": "u", "pathOrInlineDv": vector, "offset": 1}} if vector else {})
    }


def remove(path: str, vector: str | None = None, *, moved: bool = False) -> dict[str, Any]:
    """A file that goes."""
    body: dict[str, Any] = {
        "path": path,
        "deletionTimestamp": 0,
        "dataChange": not moved,
        "extendedFileMetadata": True,
        "size": 10,
    }
    return {
        "remove": body
        | ({"deletionVector": {"storageType": "u", "pathOrInlineDv": vector, "offset": 1}} if vector else {})
    }


def metadata(
    fields: list[dict[str, Any]] | None = None, partitions: tuple[str, ...] = (), **properties: str
) -> dict[str, Any]:
    """A table's schema and properties."""
    schema = json.dumps({"type": "struct", "fields": FIELDS if fields is None else fields})
    return {
        "metaData": {
            "id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
            "partitionColumns": list(partitions), "configuration": properties, "createdTime": 0,
        }
    }  # fmt: skip


# Two files become one, with the rows of both.
MOVED = [remove("a", moved=True), remove("b", moved=True), add("ab", moved=True)]
PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
FEED = {"delta.enableChangeDataFeed": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
NESTED = {"type": "struct", "fields": [FIELDS[0]]}


def mapped(name: str, number: int, physical: str, kind: object = "long") -> dict[str, Any]:
    """A column that is found in files by a name of its own."""
    mapping = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": kind, "nullable": True, "metadata": mapping}


def protocol(reader: int, writer: int, *features: str) -> dict[str, Any]:
    """What readers and writers of a table must know."""
    named = {"readerFeatures": list(features), "writerFeatures": list(features)} if features else {}
    return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer, **named}}


def table(folder: Path, *commits: list[dict[str, Any]], first: list[dict[str, Any]] | None = None) -> Path:
    """A table's log: its creation, then these commits."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    for version, actions in enumerate([first or [PROTOCOL, metadata()], *commits]):
        (log / f"{version:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
    return folder


def change(folder: Path, *commits: list[dict[str, Any]], **more: Any) -> SourceChange | Issue:
    """What the commits behind the table's creation did to it."""
    made = table(folder, *commits, **more)
    return changes_between(made, 0, len(commits), {"id"}, "t")


@pytest.mark.parametrize(
    ("commits", "kind", "added", "removed"),
    [
        ([], ChangeKind.UNCHANGED, [], []),
        ([[add("b", moved=True), remove("x", moved=True)]], ChangeKind.UNCHANGED, [], []),
        ([[add("old", moved=True)]], ChangeKind.UNCHANGED, [], []),
        ([[add("a")], [add("b")]], ChangeKind.APPENDED, ["a", "b"], []),
        ([[add("a")], [add("ab", moved=True), remove("a", moved=True)]], ChangeKind.APPENDED, ["a"], []),
        ([[add("a")], [remove("a"), add("a", "v")]], ChangeKind.APPENDED, ["a"], []),
        ([[add("a")], [remove("a")]], ChangeKind.UNCHANGED, [], []),
        ([[remove("old"), add("new")]], ChangeKind.CHANGED, ["new"], ["old"]),
        ([[remove("old"), add("old", "v")]], ChangeKind.CHANGED, ["old"], ["old"]),
        ([[remove("old"), add("new")], [remove("new"), add("old")]], ChangeKind.UNCHANGED, [], []),
        ([[remove("old"), add("new")], [add("newer", moved=True), remove("new", moved=True)]], ChangeKind.CHANGED, ["newer"], ["old"]),
        ([[remove("old"), add("new")], [add("new", moved=True)]], ChangeKind.CHANGED, ["new"], ["old"]),
        ([MOVED, [remove("ab"), add("new")]], ChangeKind.CHANGED, ["new"], ["ab"]),
        ([MOVED, [add("c")], [remove("c"), add("new")]], ChangeKind.APPENDED, ["new"], []),
        ([MOVED, [remove("ab"), add("new")], [remove("new"), add("a"), add("b")]], ChangeKind.UNCHANGED, [], []),
        ([[remove("old"), add("a")], MOVED, [remove("ab"), add("new")]], ChangeKind.CHANGED, ["new"], ["old", "b"]),
    ],
)  # fmt: skip
def test_kinds_of_changes(tmp_path: Path, commits, kind: ChangeKind, added: list[str], removed: list[str]):
    """Files that only moved are not a change; a range that only appended names its files as they came; the others are netted."""
    outcome = change(tmp_path / "t", *commits)
    assert isinstance(outcome, SourceChange)
    assert outcome.kind is kind
    assert [file["path"] for file in outcome.added] == added
    assert [file["path"] for file in outcome.removed] == removed
    assert outcome.bytes == 10 * (len(added) + len(removed))


def test_an_appended_file_with_deleted_rows_has_its_vector(tmp_path: Path):
    """Rows that were deleted from it since are not new rows."""
    outcome = change(tmp_path / "t", [add("a")], [remove("a"), add("a", "v")])
    assert isinstance(outcome, SourceChange)
    assert outcome.added[0]["deletionVector"]["pathOrInlineDv"] == "v"


@pytest.mark.parametrize(
    ("commit", "issue"),
    [
        ([metadata([{**FIELDS[0], "type": "string"}, FIELDS[1]])], IssueType.DATA_SCHEMA_CHANGED),
        ([metadata(FIELDS[1:])], IssueType.DATA_SCHEMA_CHANGED),
        ([metadata(FIELDS, ("id",))], IssueType.PARTITION_SCHEMA_CHANGED),
        ([metadata(**{"delta.columnMapping.mode": "id"})], IssueType.DELTA_PROTOCOL_CHANGED),
        ([metadata([mapped("id", 1, "id"), *FIELDS[1:]], **MAPPED), add("a")], None),
        ([metadata([mapped("id", 1, "col-7"), *FIELDS[1:]], **MAPPED)], IssueType.DATA_SCHEMA_CHANGED),
        ([metadata([{**FIELDS[0], "type": NESTED}], **MAPPED)], IssueType.DATA_SCHEMA_CHANGED),
        ([metadata([{**FIELDS[0], "nullable": False}, FIELDS[1]])], None),
        ([protocol(3, 7, "deletionVectors", "changeDataFeed", "aFeatureOfTomorrow")], IssueType.DELTA_PROTOCOL_CHANGED),
        ([protocol(4, 7, "deletionVectors")], IssueType.DELTA_PROTOCOL_CHANGED),
        ([protocol(3, 7, "deletionVectors", "rowTracking", "domainMetadata"), add("a")], None),
        ([protocol(1, 4), add("a")], None),
        ([PROTOCOL, add("a")], None),
        ([metadata([*FIELDS, {**FIELDS[0], "name": "new"}]), add("a")], None),
        ([metadata(FIELDS[:1]), add("a")], None),
        ([metadata(comment="x")], None),
    ],
)  # fmt: skip
def test_another_shape(tmp_path: Path, commit, issue: IssueType | None):
    """Columns that the view uses, partitioning and features must be what they were; other columns may come and go."""
    outcome = change(tmp_path / "t", commit)
    assert (outcome.kind if isinstance(outcome, Issue) else None) == issue


@pytest.mark.parametrize(("physical", "same"), [("id", True), ("col-7", False)])
def test_a_nested_column_that_is_mapped(tmp_path: Path, physical: str, same: bool):
    """A field of a struct has a name in the files as well; its number there counts for nothing where names decide."""
    outer = {"name": "id", "type": NESTED, "nullable": True, "metadata": {}}
    inner = {"type": "struct", "fields": [mapped("id", 2, physical)]}
    later = metadata([mapped("id", 1, "id", inner)], **MAPPED)
    outcome = change(tmp_path / "t", [later, add("a")], first=[PROTOCOL, metadata([outer])])
    assert isinstance(outcome, SourceChange) is same


def test_a_feed_across_a_mapping_of_columns(tmp_path: Path):
    """Delta reads no feed where columns were renamed in between: the files are compared."""
    rows = [remove("old"), add("new")]
    columns = [mapped("id", 1, "id"), mapped("unused", 2, "unused")]
    outcome = change(
        tmp_path / "t", [metadata(columns, **FEED, **MAPPED)], rows, first=[PROTOCOL, metadata(**FEED)]
    )
    assert isinstance(outcome, SourceChange)
    assert outcome.change_feed is False


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (protocol(3, 7, "deletionVectors"), protocol(1, 2)),
        (protocol(3, 7, "deletionVectors", "timestampNtz"), protocol(3, 7, "timestampNtz")),
        (protocol(2, 5), protocol(1, 2)),
    ],
)
def test_a_feature_that_went(tmp_path: Path, before: dict[str, Any], after: dict[str, Any]):
    """Without deletion vectors, rows that they hide in a file that went would be seen again; by its name, or by what a lower version stands for."""
    outcome = change(tmp_path / "t", [after, add("a"), remove("old", "v")], first=[before, metadata()])
    assert isinstance(outcome, Issue)
    assert outcome.kind is IssueType.DELTA_PROTOCOL_CHANGED


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        (FIELDS[1:], FIELDS, "is new"),
        ([{**FIELDS[0], "type": "string"}], FIELDS, "is not what it was"),
        (FIELDS, FIELDS[1:], "is gone"),
    ],
)
def test_what_is_said_of_a_column(
    tmp_path: Path, before: list[dict[str, Any]], after: list[dict[str, Any]], state: str
):
    """One that came, one that is another, and one that went are told apart."""
    outcome = change(tmp_path / "t", [metadata(after)], first=[PROTOCOL, metadata(before)])
    assert isinstance(outcome, Issue)
    assert outcome.reason == f"the column id of t {state}"


def test_another_collation(tmp_path: Path):
    """Texts that compare otherwise than before make other groups, though no row of the table changed."""
    text = {"name": "id", "type": "string", "nullable": True, "metadata": {}}
    collated = {**text, "metadata": {"__COLLATIONS": {"id": "spark.UTF8_LCASE"}}}
    outcome = change(tmp_path / "t", [metadata([collated])], first=[PROTOCOL, metadata([text])])
    assert isinstance(outcome, Issue)
    assert outcome.kind is IssueType.DATA_SCHEMA_CHANGED


def test_a_log_that_does_not_reach_back(tmp_path: Path):
    """A commit that was cleaned away, or is damaged, may have done anything."""
    made = table(tmp_path / "t", [add("a")], [add("b")])
    file = made / "_delta_log" / f"{1:020d}.json"
    file.write_text("{")
    for _ in range(2):
        outcome = changes_between(made, 0, 2, {"id"}, "t")
        assert isinstance(outcome, Issue)
        assert outcome.kind is IssueType.CDF_UNAVAILABLE
        file.unlink(missing_ok=True)


def test_too_many_files(tmp_path: Path, monkeypatch):
    """A range that is as long as the table is not read."""
    monkeypatch.setattr("headwater.incremental.source_changes.MAX_FILE_ACTIONS", 2)
    outcome = change(tmp_path / "t", [add("a"), add("b"), add("c")])
    assert isinstance(outcome, Issue)
    assert outcome.kind is IssueType.TOO_MANY_FILE_ACTIONS


@pytest.mark.parametrize(
    ("first", "later", "has"),
    [
        (FEED, None, True),
        ({}, None, False),
        ({}, FEED, False),
        (FEED, {}, False),
        (FEED, FEED | {"a": "b"}, True),
    ],
)
def test_a_feed_counts_where_it_was_on_all_the_time(tmp_path: Path, first, later, has: bool):
    """A version without a feed would be missing from it."""
    more = [[metadata(**later)]] if later is not None else []
    outcome = change(tmp_path / "t", [remove("old"), add("new")], *more, first=[PROTOCOL, metadata(**first)])
    assert isinstance(outcome, SourceChange)
    assert outcome.change_feed is has


OTHER = {"name": "other", "type": "integer", "nullable": True, "metadata": {}}


@pytest.mark.parametrize(
    ("columns", "has"),
    [([*FIELDS, OTHER, {**OTHER, "name": "new"}], True), ([*FIELDS, {**OTHER, "type": "long"}], False), (FIELDS, False)],
)  # fmt: skip
def test_a_feed_across_other_columns(tmp_path: Path, columns: list[dict[str, Any]], has: bool):
    """Delta reads no feed over a column that widened or went, though the view has no use of it: the files are compared."""
    rows = [metadata(columns, **FEED), remove("old"), add("new")]
    outcome = change(tmp_path / "t", rows, first=[PROTOCOL, metadata([*FIELDS, OTHER], **FEED)])
    assert isinstance(outcome, SourceChange)
    assert outcome.change_feed is has


def test_files_that_vacuum_has_removed(tmp_path: Path):
    """By the path that the log has, which is escaped; files elsewhere are not looked for."""
    (tmp_path / "day=a b").mkdir()
    (tmp_path / "day=a b" / "1.parquet").touch()
    there = [
        {"path": "day=a%20b/1.parquet"},
        {"path": (tmp_path / "day=a b" / "1.parquet").as_uri()},
        {"path": "s3://b/1"},
    ]
    assert missing_file(tmp_path, there) is None
    assert missing_file(tmp_path, [*there, {"path": "2.parquet"}]) == tmp_path / "2.parquet"


def test_how_much_of_a_table_changed(tmp_path: Path) -> None:
    """A file that took the place of another counts once, as the larger of the two; what is read to compare them counts both."""
    table(tmp_path / "t", [add("a"), add("b")], [remove("a"), add("c", size=40)])
    found = changes_between(tmp_path / "t", 1, 2, {"id"}, "t")
    assert isinstance(found, SourceChange)
    assert (found.changed_bytes, found.bytes) == (40, 50)
    gone = changes_between(table(tmp_path / "g", [add("a"), add("b")], [remove("a")]), 1, 2, {"id"}, "t")
    assert isinstance(gone, SourceChange)
    assert (gone.changed_bytes, gone.bytes) == (10, 10)


def test_rows_that_changed_after_vacuum_took_moved_files(tmp_path: Path) -> None:
    """What an optimize put together is read instead of the files that it was made from, where only that is there."""
    folder = tmp_path / "t"
    moved = [
        remove("a", moved=True),
        remove("b", moved=True),
        {"add": {**add("ab", moved=True)["add"], "size": 50}},
    ]
    later = [{"remove": {**remove("ab")["remove"], "size": 50}}, add("new")]
    table(folder, moved, later)
    outcomes = []
    for there in (("a", "b", "new"), ("ab", "new")):
        for name in ("a", "b", "ab", "new"):
            (folder / name).unlink(missing_ok=True)
        for name in there:
            (folder / name).write_bytes(b"")
        outcomes.append(changes_between(folder, 0, 2, {"id"}, "t"))
    first, second = outcomes
    assert isinstance(first, SourceChange)
    assert isinstance(second, SourceChange)
    assert [file["path"] for file in first.removed] == ["a", "b"]
    assert [file["path"] for file in second.removed] == ["ab"]
