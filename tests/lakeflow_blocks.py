"""Blocks of code written for Lakeflow, run as they are written: what each needs, and what has to come of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.pipeline_case import PipelineCase

from headwater.errors import HeadwaterError

# -- outcomes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Runs:
    """The block's datasets are updated. ``rows``: how many each holds after one update; a second one adds none, or would find nothing.

    ``frame``: the block only makes a DataFrame of this name; a table that returns it is added, under the name in ``rows``.
    ``arrives``: lets data arrive between the two; gives how many rows the second one adds after all, by table of any block.
    ``check``: looks at the pipeline after these.
    """

    rows: Mapping[str, int]
    frame: str = ""
    check: Callable[[PipelineCase], None] | None = None
    arrives: Callable[[], Mapping[str, int]] | None = None


@dataclass(frozen=True)
class Refused:
    """Validation refuses the block: with this condition, at the line that has ``at``, with ``form`` in the message."""

    condition: str
    at: str
    form: str
    frame: str = ""


@dataclass(frozen=True)
class NotADataset:
    """The block defines no dataset: alone it is no pipeline, and is told so with this condition (and this text)."""

    why: str
    condition: str = "SOURCE_FILE_FAILED"
    says: str = ""


Outcome = Runs | Refused | NotADataset


# -- forms of one source ---------------------------------------------------------------------------------------------

_IMPORTS = {
    "dp": "from pyspark import pipelines as dp",
    "dlt": "import dlt",
    "databricks": "import databricks.pipelines as dp",
    "face": "from headwater import pipelines as dp",
}
SPELLINGS = tuple(_IMPORTS)
_NEXT_CELL = "\n\n# COMMAND ----------\n\n"
FILE_FORMS = ("plain", "databricks", "ipynb")


def spelled(text: str, spelling: str) -> str:
    """The block with the face under another name."""
    text = re.sub(r"^(from pyspark import pipelines as dp|import dlt)\n", "", text, flags=re.MULTILINE)
    old, new = ("dp", "dlt") if spelling == "dlt" else ("dlt", "dp")
    text = re.sub(rf"(?<![\w.]){old}(?=\.\w)", new, text)
    return f"{_IMPORTS[spelling]}\n{text}"


def as_file(prelude: str, text: str, form: str) -> tuple[str, str]:
    """A source's name and content: a plain file, a Databricks notebook in ``.py`` form, or an ``.ipynb``."""
    if form == "plain":
        return "transformations/block.py", f"{prelude}\n{text}\n"
    if form == "databricks":
        cells = f"# MAGIC %md\n# MAGIC ## A block{_NEXT_CELL}{prelude}{_NEXT_CELL}{text}"
        return "transformations/block.py", f"# Databricks notebook source\n{cells}\n"
    cells_json = [
        {"cell_type": "markdown", "source": ["## A block\n"]},
        {"cell_type": "code", "source": prelude},
        {"cell_type": "code", "source": text.splitlines(keepends=True)},
    ]
    return "transformations/block.ipynb", json.dumps({"cells": cells_json, "nbformat": 4})


def line_in_file(case: PipelineCase, name: str, fragment: str) -> str:
    """Where errors say that a fragment of the block is."""
    path = (case.folder / name).resolve()
    if name.endswith(".ipynb"):
        for number, cell in enumerate(json.loads(path.read_text())["cells"], start=1):
            lines = "".join(cell["source"]).splitlines()
            for line, text in enumerate(lines, start=1):
                if fragment in text and cell["cell_type"] == "code":
                    return f"{path}, cell {number}:{line}"
        raise AssertionError(fragment)
    return case.line_of(fragment, name)


# -- the world that the blocks read ----------------------------------------------------------------------------------

DAY = "2026-01-01"
# Six events: one told twice, two users, a gap of hours that closes the windows before it.
EVENTS = [
    ("e1", "u1", "click", f"{DAY} 10:00:00", 150.0, "a"),
    ("e2", "u1", "click", f"{DAY} 10:20:00", 50.0, "b"),
    ("e2", "u1", "click", f"{DAY} 10:20:00", 50.0, "b"),
    ("e3", "u2", "view", f"{DAY} 10:30:00", 200.0, "a"),
    ("e4", "u2", "view", f"{DAY} 14:00:00", 10.0, "c"),
    ("e5", "u1", "click", f"{DAY} 14:10:00", 300.0, "d"),
]
_USERS = [("u1", "Ann", "DE", "gold")]
_CUSTOMERS = [("c1", "Ann", "gold")]
_USERS_CHANGES = [
    ("u2", "Bo", "FR", "none", 2),
    ("u1", "Anna", "DE", "gold", 3),
    ("u2", "Bob", "FR", "none", 4),
]
_TRANSACTIONS = [("t1", "c1", 10.0, f"{DAY} 10:00:00"), ("t2", "c9", 20.0, f"{DAY} 10:01:00")]
_CLICKS = [(1, f"{DAY} 10:02:00"), (2, f"{DAY} 10:30:00"), (9, f"{DAY} 15:00:00")]
_IMPRESSIONS = [(1, f"{DAY} 10:00:00"), (3, f"{DAY} 10:29:00"), (9, f"{DAY} 14:59:00")]


_SESSIONS = [
    ("s1", "u1", "session", "web"), ("s1", "u1", "session", "web"), ("s2", None, "session", "web"),
    ("s3", "u9", "session", "fax"), ("s4", "u9", "session", "ios"), ("e6", "u1", "click", "web"),
]  # fmt: skip


def _write_json(folder: Path) -> None:
    """Events as files of JSON lines: two good sessions (one told twice), two bad ones, and a click."""
    folder.mkdir(parents=True)
    lines = [
        json.dumps(
            {
                "event_id": event, "user_id": user, "event_type": kind, "platform": platform,
                "event_timestamp": f"{DAY}T10:00:00Z", "properties": {"duration_seconds": 90, "event_count": 3},
            }
        )
        for event, user, kind, platform in _SESSIONS
    ]  # fmt: skip
    (folder / "1.json").write_text("\n".join(lines) + "\n")


def _at(clock: str) -> datetime:
    return datetime.fromisoformat(clock).replace(tzinfo=UTC)


def _event_columns(event: str, user: str, kind: str, at: str, amount: float, page: str) -> dict[str, Any]:
    """An event with all columns in which the blocks look for the same things."""
    written = f"{at.replace(' ', 'T')}.000Z"
    raw = {
        "event_id": event,
        "user_id": user,
        "event_type": kind,
        "event_timestamp": written,
        "platform": "web",
    }
    return {
        "event_id": event, "user_id": user, "event_type": kind, "amount": amount, "page": page,
        **dict.fromkeys(("event_timestamp", "event_time", "timestamp"), _at(at)),
        "timestamp_str": written, "user_agent": "Mozilla/5.0 (Mobile)", "revenue": amount, "category": page,
        "key": 1, "customer_id": "c1", "platform": "web", "session_id": f"{user}-s",
        "raw_value": json.dumps(raw), "properties": {"duration_seconds": "90", "event_count": "3"},
        "ingestion_timestamp": _at(at), "dt": _at(at).date(),
    }  # fmt: skip


def _table(names: str, rows: Iterable[Sequence[Any]], **types: pa.DataType) -> pa.Table:
    """A table of rows; ``types``: of the columns that are not what their values look like."""
    made = pa.Table.from_pylist([dict(zip(names.split(), row, strict=True)) for row in rows])
    fields = [field.with_type(types.get(field.name, field.type)) for field in made.schema]
    return made.cast(pa.schema(fields))


def build_world(root: Path) -> Path:
    """Write the tables that blocks read, as other jobs would have left them; returns their warehouse."""
    events = pa.Table.from_pylist([_event_columns(*event) for event in EVENTS])
    events = events.set_column(events.column_names.index("key"), "key", events["key"].cast(pa.int32()))
    users = _table("user_id user_name country_code loyalty_tier", _USERS)
    customers = _table("customer_id customer_name customer_tier", _CUSTOMERS)
    transactions = _table(
        "transaction_id customer_id amount at transaction_time",
        [(*row, _at(row[-1])) for row in _TRANSACTIONS],
    )
    clicks = _table("click_id click_time", [(n, _at(at)) for n, at in _CLICKS], click_id=pa.int32())
    impressions = _table(
        "impression_id impression_time", [(n, _at(at)) for n, at in _IMPRESSIONS], impression_id=pa.int32()
    )
    seen = events.select(["user_id", "event_timestamp"]).rename_columns(["user_id", "impression_timestamp"])
    dimension = _table("key label", [(1, "one")], key=pa.int32())
    since = users.append_column("updated_timestamp", pa.array([_at(DAY)] * len(_USERS)))
    changes = _table(
        "user_id user_name country_code loyalty_tier updated_timestamp _rescued_data",
        [(*row, _at(f"{DAY} 0{hour}:00:00"), None) for *row, hour in _USERS_CHANGES],
        _rescued_data=pa.string(),
    )
    tables = {
        "raw/events": events, "shop/events": events, "shop/source": events, "bronze/events": events,
        "bronze/raw_events": events.select(["raw_value", "ingestion_timestamp", "dt"]),
        "silver/enriched_events": events, "raw/transactions": transactions, "raw/customers": customers,
        "shop/customers": customers, "silver/users": users, "shop/silver_users": users, "shop/source_users": since,
        "shop/cdc_user_changes": changes, "shop/clicks": clicks, "shop/impressions": impressions,
        "bronze/impressions": seen, "shop/huge_dimension": dimension, "shop/dim_table": dimension,
        "files/sales_delta": customers,
    }  # fmt: skip
    for folder in ("events_json", "sales_json"):
        _write_json(root / "files" / folder)
    for name, rows in tables.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        write_deltalake(str(root / name), rows)
    # With a change feed from its first commit on.
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(str(root / "shop" / "myDeltaTable"), customers, configuration=feed)
    return root


def link_tables(case: PipelineCase, world: Path, text: str) -> None:
    """Put the world's tables into the case's warehouse, but for those that the block declares itself."""
    declared = set(re.findall(r"def (\w+)\(", text)) | set(re.findall(r'name="(\w+)"', text))
    for table in [path for path in world.glob("*/*") if path.parent.name != "files"]:
        if table.parent.name == "shop" and table.name in declared:
            continue
        target = case.warehouse / table.relative_to(world)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(table)


# -- running one block -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A piece of code and what it needs around it. ``name`` says where it comes from."""

    name: str
    text: str
    prelude: str = ""
    replacements: Sequence[tuple[str, str]] = field(default_factory=tuple)

    def rewritten(self) -> str:
        """The text with paths, hosts and topics of this machine."""
        text = self.text
        for old, new in self.replacements:
            text = text.replace(old, new)
        return text


@dataclass(frozen=True)
class Member:
    """A block of a pipeline. ``turn`` picks the spelling and the kind of file, so that all have their turn."""

    block: Block
    outcome: Outcome
    turn: int

    @property
    def text(self) -> str:
        """The block's text, with the table that returns its frame, if it only makes one."""
        frame = "" if isinstance(self.outcome, NotADataset) else self.outcome.frame
        name = next(iter(self.outcome.rows)) if isinstance(self.outcome, Runs) else "from_block"
        table = f"\n\n@dp.table\ndef {name}():\n    return {frame}\n" if frame else ""
        return self.block.rewritten() + table

    @property
    def declared(self) -> set[str]:
        """The names of its datasets, and of its functions."""
        return set(re.findall(r"def (\w+)\(", self.text)) | set(re.findall(r'name="(\w+)"', self.text))

    @property
    def said(self) -> set[str]:
        """The names that it says; those of another schema, as ``raw.events``, are not of the pipeline."""
        return set(re.findall(r"(?<![\w.])\w+|(?<=shop\.)\w+|(?<=LIVE\.)\w+", self.text))

    def bears(self, other: Member) -> bool:
        """Whether both may be in one pipeline: neither declares a name that the other one says."""
        return not (self.declared & other.said or other.declared & self.said)

    def file(self) -> tuple[str, str]:
        """Its file's name, and what is in it."""
        spelling, form = SPELLINGS[self.turn % len(SPELLINGS)], FILE_FORMS[self.turn % len(FILE_FORMS)]
        defines = not isinstance(self.outcome, NotADataset)
        name, content = as_file(
            self.block.prelude, spelled(self.text, spelling) if defines else self.text, form
        )
        return name.replace("/block", "/" + re.sub(r"\W+", "_", self.block.name)), content


def pipeline_of(members: Sequence[Member], world: Path, root: Path) -> PipelineCase:
    """A pipeline in which each block is a file, over the world's tables."""
    case = PipelineCase(root, files=dict(member.file() for member in members))
    link_tables(case, world, "\n".join(member.text for member in members))
    return case


def run_block(member: Member, world: Path, root: Path) -> None:
    """Hold a block that does not run to its outcome."""
    case = pipeline_of([member], world, root)
    if isinstance(member.outcome, Refused):
        _assert_refused(case, member.file()[0], member.outcome)
    else:
        assert isinstance(member.outcome, NotADataset)
        with pytest.raises(HeadwaterError) as caught:
            case.manifest()
        assert caught.value.condition == member.outcome.condition
        assert member.outcome.says in str(caught.value)
    assert not case.storage.exists()


def run_together(members: Sequence[Member], world: Path, root: Path) -> None:
    """Hold blocks that run to their outcomes, all in one pipeline and its updates."""
    case = pipeline_of(members, world, root)
    outcomes = [member.outcome for member in members if isinstance(member.outcome, Runs)]
    assert len(outcomes) == len(members)
    wanted = {table: rows for outcome in outcomes for table, rows in outcome.rows.items()}
    _update_to(case, wanted)
    for arrives in (outcome.arrives for outcome in outcomes if outcome.arrives is not None):
        wanted |= {table: wanted[table] + rows for table, rows in arrives().items() if table in wanted}
    _update_to(case, wanted)
    for outcome in outcomes:
        if outcome.check is not None:
            outcome.check(case)


def _update_to(case: PipelineCase, wanted: Mapping[str, int]) -> None:
    report = case.update()
    assert report.state == "COMPLETED", report.error
    counts = {table: count(case, table) for table in wanted}
    differ = {table: (rows, wanted[table]) for table, rows in counts.items() if rows != wanted[table]}
    assert differ == {}, f"rows, and those that it should have: {differ}"


def _assert_refused(case: PipelineCase, name: str, outcome: Refused) -> None:
    with pytest.raises(HeadwaterError) as caught:
        case.manifest()
    error = caught.value
    assert error.condition == outcome.condition, str(error)
    assert error.exit_code == 2
    expected = line_in_file(case, name, outcome.at).rpartition(":")
    file, _, line = str(error.where).rpartition(":")
    # A chain of calls over several lines may be told at any of them, up to the call itself.
    assert file == expected[0]
    assert 0 <= int(expected[2]) - int(line) <= 12, (error.where, expected)
    assert outcome.form in str(error)


def count(case: PipelineCase, table: str) -> int:
    """How many rows a table holds."""
    return int(case.rows(table, "count(*) as n", "1")[0][0])


def columns_are(table: str, *names: str) -> Callable[[PipelineCase], None]:
    """A check that a table has exactly these columns."""

    def check(case: PipelineCase) -> None:
        assert case.columns(table) == list(names)

    return check


def rows_are(table: str, select: str, expected: Any) -> Callable[[PipelineCase], None]:
    """A check of a table's rows."""

    def check(case: PipelineCase) -> None:
        assert case.rows(table, select, "1") == expected

    return check
