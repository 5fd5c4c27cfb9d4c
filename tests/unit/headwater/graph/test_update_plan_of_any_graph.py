"""The plan of an update, over random graphs and requests, against what the words of its documentation say."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.source import SourceKind
from headwater.errors import RefusedForSafety, ResetNotAllowed
from headwater.graph.manifest import DatasetEntry, FlowEntry, Manifest, SourceEntry
from headwater.graph.update_plan import Selection, UpdatePlan, plan_update

TABLE, VIEW, MV, SINK = (
    DatasetKind.STREAMING_TABLE,
    DatasetKind.TEMPORARY_VIEW,
    DatasetKind.MATERIALIZED_VIEW,
    DatasetKind.SINK,
)


@dataclass(frozen=True)
class Request:
    """A graph and what is asked of it. ``reads``: what each dataset names; ``skips``: readers with skipChangeCommits."""

    manifest: Manifest
    selection: Selection
    done: tuple[str, ...]

    def kind(self, name: str) -> DatasetKind:
        return self.manifest.dataset(name).kind

    @property
    def outputs(self) -> set[str]:
        return {entry.name for entry in self.manifest.datasets if entry.kind is not VIEW}

    @property
    def protected(self) -> set[str]:
        return {entry.name for entry in self.manifest.datasets if entry.table_properties}

    def flows(self, name: str) -> list[FlowEntry]:
        return [flow for flow in self.manifest.flows if flow.target == name]

    def read_directly(self, name: str) -> set[str]:
        """The tables that a dataset reads, views looked through."""
        tables: set[str] = set()
        for flow in self.flows(name):
            for source in flow.inputs:
                tables |= self.read_directly(source) if self.kind(source) is VIEW else {source}
        return tables

    def read_at_all(self, name: str) -> set[str]:
        """The tables that must be whole before this one can be, however far away."""
        near = self.read_directly(name)
        return near.union(*(self.read_at_all(one) for one in near))

    @property
    def fully_refreshed(self) -> set[str]:
        return self.outputs if self.selection.full_refresh_all else set(self.selection.full_refresh)

    @property
    def emptied(self) -> set[str]:
        """What is refilled from the beginning: never a protected table."""
        return {n for n in self.fully_refreshed if self.kind(n) in (TABLE, SINK)} - self.protected

    @property
    def reset_alone(self) -> set[str]:
        """The flows that start from the beginning while their table keeps its rows."""
        flows = [flow for flow in self.manifest.flows if flow.name in self.selection.reset_flows]
        return {flow.name for flow in flows if flow.target not in self.emptied}

    @property
    def about(self) -> set[str]:
        """The tables and sinks that the update is about: what was named in any way, or all."""
        if self.selection.full_refresh_all or self.selection.everything:
            return self.outputs
        targets = {flow.target for flow in self.manifest.flows if flow.name in self.selection.reset_flows}
        covered = {name for name in targets if name in self.emptied}
        return (
            set(self.selection.tables) | set(self.selection.full_refresh) | (targets - covered) | self.emptied
        )

    @property
    def not_allowed(self) -> bool:
        targets = {flow.target for flow in self.manifest.flows if flow.name in self.reset_alone}
        named = {n for n in self.selection.full_refresh if self.kind(n) in (TABLE, SINK)}
        return bool((targets | named) & self.protected)

    @property
    def broken(self) -> set[str]:
        """The tables whose streams would stand before an emptied source, and are not refilled with it."""
        return {
            flow.target
            for flow in self.manifest.flows
            for source in flow.sources
            if source.streaming
            and source.name in self.emptied
            and flow.target in self.outputs - self.emptied
            and source.options.get("skipChangeCommits") != "true"
        }


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """A graph of up to six datasets, declared in any order; some flows, and something asked of them."""
    kinds = draw(st.lists(st.sampled_from([TABLE, TABLE, VIEW, MV, SINK]), min_size=1, max_size=6))
    names = [f"d{number}" for number in range(len(kinds))]
    reads = [
        draw(
            st.sets(
                st.sampled_from([n for n, k in zip(names[:i], kinds, strict=False) if k is not SINK] or [""])
            )
        )
        for i in range(len(names))
    ]
    flows: list[FlowEntry] = []
    for index, name in enumerate(names):
        inputs = tuple(sorted(reads[index] - {""}))
        for number in range(draw(st.integers(1, 2)) if kinds[index] in (TABLE, SINK) else 1):
            way = (
                draw(st.sampled_from(["stream", "stream", "once", "snapshot"]))
                if kinds[index] is TABLE
                else ""
            )
            streaming = (
                way == "stream" or kinds[index] is SINK or (kinds[index] is VIEW and draw(st.booleans()))
            )
            flows.append(
                FlowEntry(
                    name=f"{name}_f{number}",
                    target=name,
                    streaming=streaming,
                    once=way == "once",
                    inputs=inputs,
                    output_mode="snapshot" if way == "snapshot" else "append",
                    sources=tuple(_source(draw, flows, one, kinds, streaming) for one in inputs),
                )
            )
    order = draw(st.permutations(range(len(names))))
    entries = [
        DatasetEntry(
            name=names[i],
            kind=kinds[i],
            table_properties={"pipelines.reset.allowed": "False"} if draw(st.integers(0, 9)) == 0 else {},
        )
        for i in order
    ]
    outputs = [name for name, kind in zip(names, kinds, strict=True) if kind is not VIEW]
    some = st.lists(st.sampled_from(outputs), unique=True, max_size=3) if outputs else st.just([])
    flow_names = [flow.name for flow in flows if flow.target in outputs and flow.streaming]
    selection = Selection(
        tables=tuple(draw(some)) if draw(st.booleans()) else (),
        full_refresh=tuple(draw(some)) if draw(st.booleans()) else (),
        full_refresh_all=draw(st.integers(0, 5)) == 0,
        reset_flows=tuple(draw(st.lists(st.sampled_from(flow_names), max_size=2)))
        if flow_names and draw(st.integers(0, 3)) == 0
        else (),
    )
    manifest = Manifest(
        headwater_version="0", pipeline_id="p", pipeline_name="p", schema_name="s", source_hash="",
        datasets=tuple(entries), flows=tuple(flows),
    )  # fmt: skip
    return Request(manifest, selection, tuple(draw(some)) if draw(st.integers(0, 3)) == 0 else ())


def _source(
    draw: st.DrawFn, flows: list[FlowEntry], name: str, kinds: list[DatasetKind], streaming: bool
) -> SourceEntry:
    """A table; of a view, the first table that it reads in the end."""
    while kinds[int(name[1:])] is VIEW:
        below = next(flow for flow in flows if flow.target == name).sources
        if not below:
            break
        name = below[0].name
    options = {"skipChangeCommits": "true"} if draw(st.integers(0, 3)) == 0 else {}
    return SourceEntry(kind=SourceKind.DATASET, streaming=streaming, name=name, options=options)


def planned(request: Request) -> UpdatePlan:
    """The plan of a request that is not refused."""
    assume(not request.not_allowed and not request.broken)
    event("plain" if request.selection.everything else "chosen")
    return plan_update(request.manifest, request.selection, request.done)


@given(requests())
@settings(max_examples=100)
def test_what_is_refused(request_):
    """A reset of a protected table that was named, and a full refresh that would break a stream; nothing else."""
    if request_.not_allowed or request_.broken:
        with pytest.raises((ResetNotAllowed, RefusedForSafety)) as caught:
            plan_update(request_.manifest, request_.selection, request_.done)
        if not request_.not_allowed:
            assert type(caught.value) is RefusedForSafety
            # The remedy is one: with what it names the streams are whole.
            remedy = caught.value.remedy.rpartition("--full-refresh ")[2].split(",")
            assert set(remedy) - request_.emptied <= request_.broken
    else:
        plan_update(request_.manifest, request_.selection, request_.done)


@given(requests())
@settings(max_examples=100)
def test_what_is_refreshed(request_):
    """Exactly what was named, or all; without what an earlier attempt has done. The rest is listed as left out."""
    plan = planned(request_)
    refreshed = [stage.dataset for stage in plan.refreshes]
    assert len(refreshed) == len(set(refreshed))
    assert set(refreshed) == request_.about - set(request_.done)
    assert set(plan.excluded) == request_.outputs - set(refreshed)
    for stage in plan.refreshes:
        assert stage.kind is request_.kind(stage.dataset)
        assert stage.flows == tuple(flow.name for flow in request_.flows(stage.dataset))


@given(requests())
@settings(max_examples=100)
def test_the_order(request_):
    """Each table comes after all that it reads, near and far; it waits for the nearest that the update is about."""
    plan = planned(request_)
    place = {stage.dataset: number for number, stage in enumerate(plan.refreshes)}
    for stage in plan.refreshes:
        for before in request_.read_at_all(stage.dataset) & set(place):
            assert place[before] < place[stage.dataset]
        assert set(stage.after) == request_.read_directly(stage.dataset) & request_.about
        assert len(stage.after) == len(set(stage.after))


@given(requests())
@settings(max_examples=100)
def test_what_begins_anew(request_):
    """Tables and sinks named for it, but protected ones; a sink's rows stay. All flows with a position start over.

    A flow that was named starts over by itself where its table is not emptied; nothing that is done is reset.
    """
    plan = planned(request_)
    whole = {stage.dataset: stage for stage in plan.resets if stage.dataset in request_.emptied}
    assert set(whole) == request_.emptied - set(request_.done)
    for name, stage in whole.items():
        assert stage.empty_table is (request_.kind(name) is TABLE)
        wanted = {
            f.name for f in request_.flows(name) if f.streaming or f.once or f.output_mode == "snapshot"
        }
        assert set(stage.flows) == wanted
    alone = [stage for stage in plan.resets if stage.dataset not in request_.emptied]
    assert not any(stage.empty_table for stage in alone)
    of_done = {flow.name for name in request_.done for flow in request_.flows(name)}
    assert sorted(name for stage in alone for name in stage.flows) == sorted(request_.reset_alone - of_done)
    assert {stage.dataset for stage in plan.resets} <= {stage.dataset for stage in plan.refreshes}


@given(requests())
@settings(max_examples=100)
def test_which_views_are_recomputed_whatever_their_sources_say(request_):
    """Those that a full refresh names, or all of them with a full refresh of everything; a table never."""
    for stage in planned(request_).refreshes:
        requested = stage.dataset in request_.fully_refreshed
        assert stage.whole is (stage.kind is MV and requested)


@given(requests())
@settings(max_examples=50)
def test_a_plan_shows_all_it_does(request_):
    """What a dry run prints has one line a stage, in the order in which they are carried out, resets first."""
    plan = planned(request_)
    shown = [" ".join(line.split()[:2]).rstrip(":") for line in str(plan).splitlines()]
    wanted = [f"reset {stage.dataset}" for stage in plan.resets]
    wanted += [f"refresh {stage.dataset}" for stage in plan.refreshes]
    assert shown == (wanted or ["nothing to"])
