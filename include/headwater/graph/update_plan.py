"""What an update would do, as a list of small stages that can be printed before anything runs.

Decision 0012.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.output_kind import OutputKind
from headwater.errors import RefusedForSafety, ResetNotAllowed, UnknownDataset
from headwater.graph.manifest import DatasetEntry, FlowEntry, Manifest
from headwater.graph.spelled_names import declared_name, declared_names, refuse_unknown


@dataclass(frozen=True)
class Selection:
    """The caller's request: dataset names, and flow names for ``reset_flows`` and ``flows``.

    ``flows``: run these, and no others of their tables unless the tables are named, too. ``refresh_failed``: what did not
    complete in the last update, and what reads it; whoever knows the event log puts these into ``tables``.
    """

    tables: tuple[str, ...] = ()
    full_refresh: tuple[str, ...] = ()
    full_refresh_all: bool = False
    reset_flows: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()
    refresh_failed: bool = False

    @property
    def everything(self) -> bool:
        """Whether it is a plain update of all datasets."""
        named = (self.tables, self.full_refresh, self.reset_flows, self.flows)
        return not (any(named) or self.full_refresh_all or self.refresh_failed)


@dataclass(frozen=True)
class ResetStage:
    """Open a new epoch for flows; with ``empty_table`` the table's rows go first."""

    dataset: str
    flows: tuple[str, ...]
    empty_table: bool

    def __str__(self) -> str:
        kept = (
            "empty the table and start its flows" if self.empty_table else "keep the rows and start the flows"
        )
        return (
            f"reset    {self.dataset}: {kept} ({', '.join(self.flows)}) from the beginning of their sources"
        )


@dataclass(frozen=True)
class RefreshStage:
    """Run the flows of a dataset after those of ``after`` are done.

    ``whole``: a materialized view is recomputed whether or not a source has moved (a full refresh).
    ``waits``: of flows that wait for other flows of the stage, those others.
    """

    dataset: str
    kind: DatasetKind
    flows: tuple[str, ...]
    after: tuple[str, ...] = ()
    whole: bool = False
    waits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def before(self, flow: str) -> tuple[str, ...]:
        """The flows of the stage that have to be done before this one; such that are not part of it count as done."""
        return tuple(name for name in self.waits.get(flow, ()) if name in self.flows)

    def __str__(self) -> str:
        what = {
            DatasetKind.STREAMING_TABLE: "append what is new",
            DatasetKind.SINK: "send what is new",
        }.get(self.kind, "recompute" if self.whole else "recompute if a source has moved")
        order = f", after {', '.join(self.after)}" if self.after else ""
        order += "".join(
            f", {flow} after {', '.join(self.before(flow))}" for flow in self.flows if self.before(flow)
        )
        return f"refresh  {self.dataset}: {what} ({', '.join(self.flows)}){order}"


@dataclass(frozen=True)
class UpdatePlan:
    """Resets first, then refreshes in an order that respects the graph.

    ``excluded``: datasets that are left out; ``excluded_flows``: flows that are left out of a dataset that is not.
    """

    resets: tuple[ResetStage, ...]
    refreshes: tuple[RefreshStage, ...]
    excluded: tuple[str, ...] = ()
    excluded_flows: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(str(stage) for stage in (*self.resets, *self.refreshes)) or "nothing to do"


def plan_update(manifest: Manifest, selection: Selection, done: Sequence[str] = ()) -> UpdatePlan:
    """Decide the stages of an update.

    Args:
        manifest: the resolved graph.
        selection: the requested datasets; an empty one means all.
        done: datasets that an earlier attempt of the same request completed; they are left out.

    Raises:
        UnknownDataset: for a name that the pipeline does not have.
        ResetNotAllowed: where a named table forbids its reset (``pipelines.reset.allowed``).
        RefusedForSafety: where a full refresh would break streams that read the table.
    """
    tables = {entry.name: entry for entry in manifest.outputs}
    selection = _as_declared(manifest, selection)
    flows = [flow.name for flow in manifest.output_flows]
    for name in (*selection.tables, *selection.full_refresh):
        _refuse_flow(manifest, name, flows, "--flows" if name in selection.tables else "--reset-checkpoint")
        refuse_unknown(name, tables, "dataset")
    for name in (*selection.reset_flows, *selection.flows):
        refuse_unknown(name, flows, "flow")
    emptied = _emptied(manifest, selection)
    reset_flows = _reset_flows(manifest, selection, emptied)
    chosen = _chosen(manifest, selection, reset_flows)
    left_out = _left_out(manifest, selection, reset_flows)
    resets = [_emptying(manifest, tables[name]) for name in emptied]
    resets += [ResetStage(flow.target, (flow.name,), False) for flow in reset_flows]
    refreshes = [
        RefreshStage(
            name,
            tables[name].kind,
            tuple(f.name for f in manifest.flows_into(name) if f.name not in left_out),
            tuple(u for u in manifest.upstream(name) if u in chosen),
            whole=tables[name].kind is DatasetKind.MATERIALIZED_VIEW
            and (selection.full_refresh_all or name in selection.full_refresh),
            waits={f.name: f.after_flows for f in manifest.flows_into(name) if f.after_flows},
        )
        for name in ordered(manifest)
        if name in chosen and name not in done
    ]
    return UpdatePlan(
        tuple(stage for stage in resets if stage.dataset not in done),
        tuple(refreshes),
        tuple(name for name in tables if name not in chosen or name in done),
        tuple(f.name for f in manifest.flows if f.name in left_out and f.target in chosen.difference(done)),
    )


def _refuse_flow(manifest: Manifest, text: str, flows: Sequence[str], option: str) -> None:
    """Refuse the name of a flow where that of a table is asked for, with the ``option`` for flows."""
    flow = declared_name(manifest, text, flows)
    entry = next((one for one in manifest.output_flows if one.name == flow), None)
    if entry is not None and all(output.name != text for output in manifest.outputs):
        raise UnknownDataset(
            f"The pipeline has no dataset {text!r}: that is a flow into {entry.target!r}.",
            remedy=f"Name the flow: {option} {flow}. Or name its table: {entry.target}.",
        )


def _as_declared(manifest: Manifest, selection: Selection) -> Selection:
    """The selection by the names that the pipeline declares, however they are spelled in it."""
    outputs = [entry.name for entry in manifest.outputs]
    flows = [flow.name for flow in manifest.flows]
    return replace(
        selection,
        tables=declared_names(manifest, selection.tables, outputs),
        full_refresh=declared_names(manifest, selection.full_refresh, outputs),
        reset_flows=declared_names(manifest, selection.reset_flows, flows),
        flows=declared_names(manifest, selection.flows, flows),
    )


def _emptying(manifest: Manifest, entry: DatasetEntry) -> ResetStage:
    flows = tuple(
        f.name
        for f in manifest.flows_into(entry.name)
        if f.streaming or f.once or f.output_mode is OutputKind.SNAPSHOT
    )
    # What has left the pipeline stays where it is: its readers get the rows again.
    return ResetStage(entry.name, flows, entry.kind is not DatasetKind.SINK)


def _reset_flows(manifest: Manifest, selection: Selection, emptied: Collection[str]) -> list[FlowEntry]:
    """The flows that start from the beginning while their table keeps its rows."""
    tables = {entry.name: entry for entry in manifest.outputs}
    flows = [
        flow for flow in manifest.flows if flow.name in selection.reset_flows and flow.target not in emptied
    ]
    for flow in flows:
        if not may_reset(tables[flow.target].table_properties):
            raise ResetNotAllowed(
                f"The flow {flow.name!r} must not start over: the property pipelines.reset.allowed of its table "
                f"{flow.target!r} is false.",
                where=tables[flow.target].defined_at,
                remedy="To go on from a position and keep the rows: headwater repair PIPELINE_DIR FLOW --action rebuild, or remove "
                "the property.",
            )
    return flows


def _chosen(manifest: Manifest, selection: Selection, reset_flows: Sequence[FlowEntry]) -> set[str]:
    """The tables and sinks of the update: all that were named in any way, or every one."""
    if selection.full_refresh_all or selection.everything:
        return {entry.name for entry in manifest.outputs}
    # As on Lakeflow: tables named for a full refresh alone are what the update is about.
    by_flow = {flow.target for flow in manifest.flows if flow.name in selection.flows}
    return {*selection.tables, *selection.full_refresh, *by_flow, *(flow.target for flow in reset_flows)}


def _left_out(manifest: Manifest, selection: Selection, reset_flows: Sequence[FlowEntry]) -> set[str]:
    """The flows that do not run although their table is part of the update: others of it were named, and it was not."""
    if not selection.flows or selection.full_refresh_all:
        return set()
    whole = {*selection.tables, *selection.full_refresh, *(flow.target for flow in reset_flows)}
    targets = {flow.target for flow in manifest.flows if flow.name in selection.flows} - whole
    return {
        flow.name for flow in manifest.flows if flow.target in targets and flow.name not in selection.flows
    }


def ordered(manifest: Manifest) -> list[str]:
    """The tables and sinks, each after the tables it reads, otherwise as they were declared."""
    result: list[str] = []

    def visit(name: str) -> None:
        if name not in result:
            for upstream in manifest.upstream(name):
                visit(upstream)
            result.append(name)

    for entry in manifest.outputs:
        visit(entry.name)
    return result


def _emptied(manifest: Manifest, selection: Selection) -> list[str]:
    requested = (
        {entry.name for entry in manifest.outputs}
        if selection.full_refresh_all
        else set(selection.full_refresh)
    )
    names = []
    for entry in manifest.outputs:
        if entry.name not in requested or entry.kind not in (DatasetKind.STREAMING_TABLE, DatasetKind.SINK):
            continue
        if not may_reset(entry.table_properties):
            if entry.name in selection.full_refresh:
                raise ResetNotAllowed(
                    f"The table {entry.name!r} must not be reset: its property pipelines.reset.allowed is false.",
                    where=entry.defined_at,
                    remedy="Leave it out of --full-refresh, or remove the property.",
                )
            continue
        names.append(entry.name)
    # A view has no position that could break; the flows that read it have its sources.
    lasting = {entry.name for entry in manifest.outputs}
    for name in names:
        readers = [
            flow.target
            for flow in manifest.flows
            for source in flow.sources
            if source.streaming and source.name == name and flow.target in lasting and flow.target not in names
            and source.options.get("skipChangeCommits") != "true"
        ]  # fmt: skip
        if readers:
            wanted = ",".join(dict.fromkeys([*names, *readers]))
            raise RefusedForSafety(
                f"A full refresh of {name!r} empties it, and the streams into {', '.join(sorted(set(readers)))} that read it "
                "would fail from then on.",
                remedy=f"Refresh them with it: headwater run PIPELINE_DIR --full-refresh {wanted}",
            )
    return names


def may_reset(properties: Mapping[str, str]) -> bool:
    """Whether a table with these properties may be emptied (``pipelines.reset.allowed``)."""
    return properties.get("pipelines.reset.allowed", "true").lower() != "false"
