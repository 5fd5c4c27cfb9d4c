"""How a table is filled, or why it is not: decided from its definition and the arguments, before a row is read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, StructField, StructType, TimestampType
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow

from headwater.backfills.backfill_range import BackfillMode, BackfillRange, RangeKind
from headwater.backfills.conditions import BackfillNotPossible, ReadersWouldBreak
from headwater.contract.backfill_arguments import BackfillArguments
from headwater.definitions.change_flow import ChangeFlow
from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.expectation import Expectation, UniqueKey, UniqueWithin, ViolationAction
from headwater.definitions.flow import Flow, Replacement
from headwater.definitions.output_kind import OutputKind
from headwater.definitions.source import SourceKind
from headwater.errors import HeadwaterError, UsageError
from headwater.graph.manifest import FlowEntry, SourceEntry
from headwater_spark.backfills import table_plan
from headwater_spark.backfills.table_plan import TablePlan, plan_table
from headwater_spark.plans.output_mode import OutputMode

APPEND, REPLACE, MERGE = BackfillMode.APPEND, BackfillMode.REPLACE_WHERE, BackfillMode.MERGE
DAYS = BackfillRange(
    RangeKind.EVENT_TIME, datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC), "AT"
)
VERSIONS = BackfillRange(RangeKind.VERSION, 3, 7)
COLUMNS = StructType([StructField("Id", IntegerType()), StructField("at", TimestampType())])
CHANGES: Any = ChangeFlow("events", ("id",), "n")
PLAIN, VIEW = dataset(), dataset(kind=DatasetKind.MATERIALIZED_VIEW)
QUARANTINE = Expectation("r", "id > 0", ViolationAction.QUARANTINE)


def unique(within: UniqueWithin) -> Expectation:
    """A key that may be there once."""
    return Expectation("once", "", ViolationAction.DROP, unique=UniqueKey(("id",), within))


def plan(
    tmp_path: Path,
    chosen: BackfillRange = DAYS,
    mode: BackfillMode | None = None,
    *,
    table: Dataset = PLAIN,
    keys: tuple[str, ...] = (),
    flows: tuple[Flow, ...] = (flow(),),
    readers: dict[str, dict[str, str]] | None = None,
    modes: dict[str, OutputMode] | None = None,
    stateful: bool = False,
) -> TablePlan:
    """The plan for a table. ``readers``: streams over it, with the options they read it with."""
    context = context_of(tmp_path, table, flows=flows, modes=modes)
    evaluation: Any = context.pipeline.evaluation
    evaluation.schema_of = evaluation.table_schema = lambda _: COLUMNS
    evaluation.frames = {one.name: None for one in flows}
    manifest: Any = context.pipeline.manifest
    sources = {
        name: SourceEntry(kind=SourceKind.DATASET, streaming=True, name=table.name, options=options)
        for name, options in (readers or {}).items()
    }
    batch = SourceEntry(kind=SourceKind.DATASET, streaming=False, name=table.name)
    other = SourceEntry(kind=SourceKind.DATASET, streaming=True, name="elsewhere")
    manifest.flows = (
        FlowEntry(name="view", target="view", streaming=False, sources=(batch,)),
        FlowEntry(name="far", target="far", streaming=True, sources=(other,)),
        *(FlowEntry(name=n, target=n, streaming=True, sources=(s,)) for n, s in sources.items()),
    )
    arguments = BackfillArguments("", (table.name,), chosen, mode, keys=keys)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_plan, "is_stateful", lambda _: stateful)
        return plan_table(context, table, arguments)


@pytest.mark.parametrize(
    ("chosen", "mode", "expected"),
    [(DAYS, None, REPLACE), (VERSIONS, None, APPEND), (DAYS, APPEND, APPEND), (VERSIONS, REPLACE, REPLACE)],
)
def test_the_mode_of_a_plain_table(tmp_path: Path, chosen, mode, expected):
    """Rows of the table are replaced, rows of the source are added, unless it is asked for otherwise."""
    plan_ = plan(tmp_path, chosen, mode)
    assert plan_.mode is expected
    assert (plan_.condition is None) is (chosen is VERSIONS)
    assert (plan_.keys, plan_.is_view, plan_.skipped, plan_.by_sequence) == ((), False, False, False)


def test_the_rows_of_the_range(tmp_path: Path):
    """A range by event time names rows of the table, by its column as the table spells it."""
    assert plan(tmp_path).condition == (
        "`at` >= TIMESTAMP '2026-01-01 00:00:00.000000+00:00' AND `at` < TIMESTAMP '2026-02-01 00:00:00.000000+00:00'"
    )


def test_keys_of_a_merge(tmp_path: Path):
    """They are the table's own names, whatever their letter case; without any, or with a wrong one, nothing is merged."""
    assert plan(tmp_path, mode=MERGE, keys=("ID", "At")).keys == ("Id", "at")
    for keys, word in (((), "no key of its own"), (("id", "nope"), "'nope'")):
        with pytest.raises(UsageError, match=word):
            plan(tmp_path, mode=MERGE, keys=keys)
    assert plan(tmp_path, mode=REPLACE, keys=("id",)).keys == ()


@pytest.mark.parametrize("mode", [None, REPLACE])
def test_a_view_is_recomputed_in_place(tmp_path: Path, mode):
    """Its rows of a range are replaced; nothing else can be done with it."""
    plan_ = plan(tmp_path, mode=mode, table=VIEW)
    assert (plan_.mode, plan_.is_view) == (REPLACE, True)


@pytest.mark.parametrize(
    ("chosen", "mode"), [(DAYS, APPEND), (DAYS, MERGE), (VERSIONS, None), (VERSIONS, REPLACE)]
)
def test_what_a_view_can_not_take(tmp_path: Path, chosen, mode):
    """Rows can't be added to what is a query's result, and a range of a source is no part of it."""
    with pytest.raises(BackfillNotPossible, match="materialized view"):
        plan(tmp_path, chosen, mode, table=VIEW, keys=("id",))


@pytest.mark.parametrize("own", [{"changes": CHANGES}, {"replacement": Replacement(("id",), "at")}])
@pytest.mark.parametrize("chosen", [DAYS, VERSIONS])
def test_a_table_with_keys_of_its_own(tmp_path: Path, own, chosen):
    """Its rows are merged by its own keys and sequence: what comes twice changes nothing. No other way is taken."""
    flows = (flow(**own),)
    for mode in (None, MERGE):
        plan_ = plan(tmp_path, chosen, mode, flows=flows)
        assert (plan_.mode, plan_.keys, plan_.by_sequence) == (MERGE, (), True)
    for mode, keys in ((APPEND, ()), (REPLACE, ()), (None, ("id",)), (MERGE, ("id",))):
        with pytest.raises(BackfillNotPossible, match="own keys"):
            plan(tmp_path, chosen, mode, flows=flows, keys=keys)


@pytest.mark.parametrize(
    ("flows", "readers", "mode", "waits"),
    [
        ((flow(),), {}, None, False),
        ((flow(changes=CHANGES),), {}, None, True),
        ((flow("a", "orders"), flow("b", "orders", changes=CHANGES)), {}, None, True),
        ((flow(replacement=Replacement(("id",), "at")),), {}, None, False),
        ((flow(),), {"r": {"skipChangeCommits": "true"}}, REPLACE, True),
        ((flow(),), {"r": {"ignoreChanges": "TRUE"}}, REPLACE, True),
        ((flow(),), {"r": {"readChangeFeed": "true"}}, REPLACE, False),
        ((flow(),), {"r": {"skipChangeCommits": "true"}}, APPEND, False),
    ],
)
def test_what_can_not_run_beside_an_update(tmp_path: Path, flows, readers, mode, waits):
    """AUTO CDC, whose memory has one writer, and a replacement of rows that a stream leaves out when they go."""
    assert plan(tmp_path, flows=flows, readers=readers, mode=mode).waits is waits


@pytest.mark.parametrize(
    ("readers", "mode", "broken"),
    [
        ({"r": {}}, REPLACE, ["r"]),
        ({"b": {}, "a": {"skipChangeCommits": "false"}}, REPLACE, ["a, b"]),
        ({"r": {}}, MERGE, ["r"]),
        ({"r": {}}, APPEND, None),
        ({"r": {"skipChangeCommits": "true"}}, REPLACE, None),
        ({"r": {"ignoreChanges": "true"}}, REPLACE, None),
        ({"r": {"readChangeFeed": "true"}}, MERGE, None),
        ({"ok": {"readChangeFeed": "true"}, "r": {}}, REPLACE, ["r "]),
        ({}, REPLACE, None),
    ],
)
def test_streams_that_would_break(tmp_path: Path, readers, mode, broken):
    """Where rows would be taken out, every stream over the table has to leave such commits out, or follow them."""
    if broken is None:
        plan(tmp_path, mode=mode, keys=("id",), readers=readers)
        return
    with pytest.raises(ReadersWouldBreak) as caught:
        plan(tmp_path, mode=mode, keys=("id",), readers=readers)
    assert f"into {broken[0]}" in caught.value.what
    assert "ok" not in caught.value.what.split("read ")[0]


@pytest.mark.parametrize(
    ("rule", "table", "mode", "possible"),
    [
        (QUARANTINE, VIEW, None, False),
        (QUARANTINE, PLAIN, REPLACE, True),
        (unique(UniqueWithin.TABLE), PLAIN, REPLACE, False),
        (unique(UniqueWithin.TABLE), PLAIN, MERGE, False),
        (unique(UniqueWithin.TABLE), PLAIN, APPEND, True),
        (unique(UniqueWithin.BATCH), PLAIN, REPLACE, True),
    ],
)
def test_rules_that_a_part_can_not_keep(tmp_path: Path, rule, table, mode, possible):
    """A view's quarantine is replaced whole only; keys of a whole table can't be compared with rows that leave it."""
    from dataclasses import replace

    ruled = replace(table, expectations=(rule,))
    if possible:
        plan(tmp_path, mode=mode, table=ruled, keys=("id",))
    else:
        with pytest.raises(BackfillNotPossible):
            plan(tmp_path, mode=mode, table=ruled, keys=("id",))


@pytest.mark.parametrize(
    ("options", "possible"),
    [
        ({"stateful": True}, False),
        ({"modes": {"orders": OutputMode(OutputKind.UPDATE, ("id",))}}, False),
        ({"modes": {"orders": OutputMode(OutputKind.COMPLETE)}}, False),
        ({"modes": {"orders": OutputMode(OutputKind.APPEND)}}, True),
        ({"modes": {"orders": OutputMode(OutputKind.REPLACE, ("id",))}}, True),
        ({"flows": (flow(snapshots=SimpleNamespace()),)}, False),
    ],
)
def test_definitions_of_which_a_part_means_nothing(tmp_path: Path, options: dict[str, Any], possible: bool):
    """State that a live stream keeps, and whole snapshots, are not made of parts."""
    if possible:
        assert plan(tmp_path, **options).mode is REPLACE
        return
    with pytest.raises(BackfillNotPossible) as caught:
        plan(tmp_path, **options)
    assert isinstance(caught.value, HeadwaterError)
    assert "--full-refresh orders" in caught.value.remedy
