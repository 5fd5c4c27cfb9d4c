"""What an update would do is decided from the manifest alone."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.source import SourceKind
from headwater.errors import RefusedForSafety, ResetNotAllowed, UnknownDataset
from headwater.graph.manifest import DatasetEntry, FlowEntry, Manifest, SourceEntry
from headwater.graph.update_plan import Selection, UpdatePlan, plan_update

KINDS = {
    "st": DatasetKind.STREAMING_TABLE,
    "mv": DatasetKind.MATERIALIZED_VIEW,
    "view": DatasetKind.TEMPORARY_VIEW,
}


def manifest(*, protected: str = "", skips: str = "") -> Manifest:
    """gold (mv) <- silver (st) <- bronze (st, two flows) and alone (st), declared from the end to the beginning."""

    def table(name: str, kind: str) -> DatasetEntry:
        properties = {"pipelines.reset.allowed": "false"} if name == protected else {}
        location = None if kind == "view" else f"s/{name}"
        return DatasetEntry(
            name=name,
            kind=KINDS[kind],
            location=location,
            table_properties=properties,
            defined_at=f"a.py:{name}",
        )

    def reads(name: str, streaming: bool) -> SourceEntry:
        options = {"skipChangeCommits": "true"} if name == skips else {}
        return SourceEntry(kind=SourceKind.DATASET, streaming=streaming, name=name, options=options)

    return Manifest(
        headwater_version="0", pipeline_id="p", pipeline_name="p", schema_name="s", source_hash="",
        datasets=(table("gold", "mv"), table("view", "view"), table("silver", "st"), table("bronze", "st"),
                  table("alone", "st")),
        flows=(
            FlowEntry(name="gold", target="gold", streaming=False, inputs=("view",), sources=(reads("silver", False),)),
            FlowEntry(name="view", target="view", streaming=True, inputs=("silver",), sources=(reads("silver", True),)),
            FlowEntry(name="silver", target="silver", streaming=True, inputs=("bronze",), sources=(reads("bronze", True),)),
            FlowEntry(name="web", target="bronze", streaming=True),
            FlowEntry(name="app", target="bronze", streaming=False, once=True),
            FlowEntry(name="alone", target="alone", streaming=True),
        ),
    )  # fmt: skip


def plan(selection: Selection, done: tuple[str, ...] = (), **options: Any) -> UpdatePlan:
    """The plan for a selection."""
    return plan_update(manifest(**options), selection, done)


def order(planned: UpdatePlan) -> list[str]:
    """The datasets that are refreshed, in order."""
    return [stage.dataset for stage in planned.refreshes]


def resets(planned: UpdatePlan) -> list[tuple[str, tuple[str, ...], bool]]:
    """The resets, in order."""
    return [(stage.dataset, stage.flows, stage.empty_table) for stage in planned.resets]


def test_a_flow_waits_for_what_it_does_not_read():
    """``depends_on`` is an order among what the update refreshes, through views; nothing else of the graph knows it."""
    plain = manifest()
    flows = {flow.name: flow for flow in plain.flows}
    waiting = flows["web"].model_copy(update={"depends_on": ("alone",)})
    through = flows["alone"].model_copy(update={"depends_on": ("view",)})

    def planned(selection: Selection, *changed: FlowEntry) -> UpdatePlan:
        names = {flow.name: flow for flow in changed}
        entries = tuple(names.get(flow.name, flow) for flow in plain.flows)
        return plan_update(plain.model_copy(update={"flows": entries}), selection)

    found = planned(Selection(), waiting)
    assert order(found) == ["alone", "bronze", "silver", "gold"]
    assert {stage.dataset: stage.after for stage in found.refreshes}["bronze"] == ("alone",)
    assert {s.dataset: s.after for s in planned(Selection(), through).refreshes}["alone"] == ("silver",)
    assert planned(Selection(tables=("bronze",)), waiting).refreshes[0].after == ()


def test_a_flow_waits_for_another_of_its_table():
    """The order of flows into one table is in its stage and in the printed plan; a flow that is not part of the update counts as done."""
    plain = manifest()
    waiting = tuple(
        flow.model_copy(update={"after_flows": ("web",)}) if flow.name == "app" else flow
        for flow in plain.flows
    )
    ordered = plain.model_copy(update={"flows": waiting})
    stages = {stage.dataset: stage for stage in plan_update(ordered, Selection()).refreshes}
    assert (stages["bronze"].before("app"), stages["bronze"].before("web")) == (("web",), ())
    assert str(stages["bronze"]).endswith(", app after web")
    alone = plan_update(ordered, Selection(flows=("app",))).refreshes[0]
    assert (alone.flows, alone.before("app")) == (("app",), ())
    assert Manifest.model_validate_json(ordered.to_json()) == ordered
    assert "after_flows" not in plain.to_json()


def test_an_order_alone_is_in_the_manifest():
    """It is a field of the file where there is one, and no file of a pipeline without any changes."""
    plain = manifest()
    waiting = plain.flows[-1].model_copy(update={"depends_on": ("bronze",)})
    with_order = plain.model_copy(update={"flows": (*plain.flows[:-1], waiting)})
    assert "depends_on" not in plain.to_json()
    assert Manifest.model_validate_json(with_order.to_json()).flow("alone").depends_on == ("bronze",)
    assert Manifest.model_validate_json(plain.to_json()) == plain


def test_everything_in_the_graphs_order():
    """An empty selection is every stored dataset, each after those it reads, through views."""
    planned = plan(Selection())
    assert order(planned) == ["bronze", "silver", "gold", "alone"]
    assert [stage.after for stage in planned.refreshes] == [(), ("bronze",), ("silver",), ()]
    assert planned.refreshes[0].flows == ("web", "app")
    assert (planned.resets, planned.excluded) == ((), ())


def test_some_tables():
    """Chosen tables only; what they read and is not chosen is not waited for."""
    planned = plan(Selection(tables=("gold", "bronze")))
    assert order(planned) == ["bronze", "gold"]
    assert planned.refreshes[1].after == ()
    assert set(planned.excluded) == {"silver", "alone"}


def test_full_refresh_of_everything():
    """Every streaming table is emptied and all its flows start over; materialized views are recomputed anyway."""
    planned = plan(Selection(full_refresh_all=True))
    assert resets(planned) == [
        ("silver", ("silver",), True),
        ("bronze", ("web", "app"), True),
        ("alone", ("alone",), True),
    ]
    assert order(planned) == ["bronze", "silver", "gold", "alone"]


def test_full_refresh_of_some():
    """Tables named for a full refresh alone are what the update is about."""
    planned = plan(Selection(full_refresh=("silver", "gold")))
    assert resets(planned) == [("silver", ("silver",), True)]
    assert order(planned) == ["silver", "gold"]
    assert [stage.whole for stage in planned.refreshes] == [False, True]
    assert "gold: recompute (gold)" in str(planned)


def test_full_refresh_beside_other_tables():
    """Refresh some and fully refresh others, in one update."""
    planned = plan(Selection(tables=("alone",), full_refresh=("silver",)))
    assert order(planned) == ["silver", "alone"]
    assert resets(planned) == [("silver", ("silver",), True)]


def test_full_refresh_of_a_view_beside_other_tables():
    """A materialized view that is named for a full refresh is recomputed, also where other tables are refreshed with it."""
    planned = plan(Selection(tables=("alone",), full_refresh=("gold",)))
    assert order(planned) == ["gold", "alone"]
    assert [stage.whole for stage in planned.refreshes] == [True, False]


def test_reset_of_a_flow():
    """A flow's reset keeps the rows and concerns that flow alone."""
    planned = plan(Selection(reset_flows=("web",)))
    assert resets(planned) == [("bronze", ("web",), False)]
    assert order(planned) == ["bronze"]


def test_a_full_refresh_covers_a_reset():
    """A flow whose table is emptied anyway is not reset twice."""
    planned = plan(Selection(full_refresh=("bronze", "silver"), reset_flows=("web",)))
    assert resets(planned) == [("silver", ("silver",), True), ("bronze", ("web", "app"), True)]


def test_a_full_refresh_that_would_break_a_stream_is_refused():
    """Emptying a table that a stream reads needs that stream's table in the same full refresh; the remedy says so."""
    with pytest.raises(RefusedForSafety) as caught:
        plan(Selection(full_refresh=("bronze",)))
    assert "silver" in caught.value.what
    assert "--full-refresh bronze,silver" in caught.value.remedy
    assert order(plan(Selection(full_refresh=("bronze", "silver")))) == ["bronze", "silver"]


def test_a_view_is_no_reader_that_breaks():
    """A temporary view keeps no position: whatever it streams from may be emptied by itself, or with everything."""
    assert order(plan(Selection(full_refresh=("silver",)))) == ["silver"]
    assert "view" not in order(plan(Selection(full_refresh_all=True)))


def test_a_stream_that_skips_changes_is_not_broken():
    """A reader with skipChangeCommits goes on after its source was emptied."""
    assert order(plan(Selection(full_refresh=("bronze",)), skips="bronze")) == ["bronze"]


def test_a_protected_table():
    """pipelines.reset.allowed=false: named, it is refused; in a full refresh of everything, it is left as it is."""
    with pytest.raises(ResetNotAllowed) as caught:
        plan(Selection(full_refresh=("alone",)), protected="alone")
    assert caught.value.where == "a.py:alone"
    planned = plan(Selection(full_refresh_all=True), protected="alone")
    assert "alone" not in [stage.dataset for stage in planned.resets]
    assert "alone" in order(planned)


def test_a_reset_of_a_protected_table():
    """A flow into it may not start over: its rows would be duplicated."""
    with pytest.raises(ResetNotAllowed, match="web"):
        plan(Selection(reset_flows=("web",)), protected="bronze")


def test_a_protected_reader():
    """A full refresh of everything is refused where a protected table streams from one that would be emptied."""
    with pytest.raises(RefusedForSafety, match="silver"):
        plan(Selection(full_refresh_all=True), protected="silver")


@pytest.mark.parametrize(
    "selection",
    [
        Selection(tables=("bronz",)),
        Selection(full_refresh=("bronz",)),
        Selection(tables=("view",)),
        Selection(reset_flows=("wep",)),
    ],
)
def test_an_unknown_name(selection: Selection):
    """A name that the pipeline does not have, or that is not stored, is refused with the nearest or all names."""
    with pytest.raises(UnknownDataset) as caught:
        plan(selection)
    assert "Did you mean" in caught.value.remedy or "It has" in caught.value.remedy


@pytest.mark.parametrize(
    ("selection", "option"),
    [
        (Selection(tables=("web",)), "--flows web"),
        (Selection(tables=("bronze", "`WEB`")), "--flows web"),
        (Selection(full_refresh=("web",)), "--reset-checkpoint web"),
    ],
)
def test_a_flow_where_a_table_is_asked_for(selection: Selection, option: str):
    """It is named as what it is, with the option for flows and with its table."""
    with pytest.raises(UnknownDataset, match="that is a flow into 'bronze'") as caught:
        plan(selection)
    assert caught.value.remedy == f"Name the flow: {option}. Or name its table: bronze."


def test_what_an_earlier_attempt_did_is_left_out():
    """Datasets that are done are neither reset nor refreshed again, and do not hold up the others."""
    planned = plan(Selection(full_refresh_all=True), done=("bronze", "alone"))
    assert order(planned) == ["silver", "gold"]
    assert resets(planned) == [("silver", ("silver",), True)]
    assert set(planned.excluded) == {"bronze", "alone"}


def test_a_plan_can_be_read():
    """Each stage prints as a sentence; an empty plan says that there is nothing to do."""
    text = str(plan(Selection(full_refresh=("silver",))))
    assert text.splitlines()[0].startswith("reset    silver: empty the table")
    assert str(plan(Selection(tables=("gold",)), done=("gold",))) == "nothing to do"


def test_some_flows_of_a_table():
    """Only the named flows run; others of their tables are left out, unless the table itself is named."""
    planned = plan(Selection(flows=("web", "gold")))
    assert [(stage.dataset, stage.flows) for stage in planned.refreshes] == [
        ("bronze", ("web",)),
        ("gold", ("gold",)),
    ]
    assert planned.excluded_flows == ("app",)
    assert plan(Selection(flows=("web", "gold")), done=("bronze",)).excluded_flows == ()
    assert set(planned.excluded) == {"silver", "alone"}
    whole = plan(Selection(flows=("web",), tables=("bronze",)))
    assert (whole.refreshes[0].flows, whole.excluded_flows) == (("web", "app"), ())
    emptied = plan(Selection(flows=("web",), full_refresh=("bronze", "silver")))
    assert emptied.refreshes[0].flows == ("web", "app"), (
        "a table that is emptied is filled by all of its flows"
    )
    # One that may not be emptied is not filled by fewer for that.
    everything = plan(Selection(flows=("web",), full_refresh_all=True))
    assert (everything.refreshes[0].flows, everything.excluded_flows) == (("web", "app"), ())
    with pytest.raises(UnknownDataset, match="no flow 'webb'"):
        plan(Selection(flows=("webb",)))
    with pytest.raises(UnknownDataset, match="no flow 'view'"):
        plan(Selection(flows=("view",)))


def test_nothing_had_failed():
    """An update of what failed, where nothing did, is an update of nothing, not of everything."""
    planned = plan(Selection(refresh_failed=True))
    assert (planned.refreshes, planned.resets) == ((), ())
