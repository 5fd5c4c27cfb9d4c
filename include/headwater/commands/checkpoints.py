"""``checkpoints``: what is in storage, whether it is intact, and copies of it."""

from __future__ import annotations

from typing import Any

from headwater.checkpoints.listing import list_checkpoints
from headwater.contract.printing import print_json, print_table
from headwater.contract.quantities import age, size
from headwater.doctor.diagnosis import Diagnosis, diagnose
from headwater.doctor.event_log_case import diagnose_event_log
from headwater.doctor.flow_case import FlowCase
from headwater.doctor.flow_cases import flow_cases, refuse_half_way
from headwater.doctor.inspection import inspect_flow
from headwater.doctor.surgery import snapshot_flow
from headwater.errors import HeadwaterError, RefusedForSafety, UnknownDataset
from headwater.graph.pipeline_project import PipelineProject
from headwater.storage.listing import looked_over

_EMPTY: tuple[object, ...] = (None, "", {}, [])


def answer_checkpoints(action: str, project: PipelineProject, flow: str | None, *, as_json: bool) -> int:
    """Answer ``checkpoints ACTION``: 0, or 3 where a flow would be refused."""
    if action == "list":
        return show_checkpoints(project, flow, as_json=as_json)
    if action == "snapshot":
        return _snapshot(project, flow_cases(project, flow), as_json=as_json)
    examined = action in ("verify", "diagnose")
    if examined:
        # What is half-way elsewhere looks like damage, and its remedies would be wrong.
        refuse_half_way(project)
    with looked_over(project.state_folder / "checkpoints"):
        cases = flow_cases(project, flow, deep=examined, views=examined)
        if action == "inspect":
            return _inspect(project, cases, as_json=as_json)
        diagnoses = [finding for case in cases for finding in diagnose(case)]
    # The look is over the checkpoints.
    diagnoses += diagnose_event_log(project) if flow is None else []
    return _examine(project, len(cases), diagnoses, remedies=action == "diagnose", as_json=as_json)


def show_checkpoints(project: PipelineProject, flow: str | None = None, *, as_json: bool) -> int:
    """Print every epoch of every flow, or of one."""
    with looked_over(project.state_folder / "checkpoints"):
        every = list_checkpoints(project.state_folder)
    shown = [entry for entry in every if flow in (None, entry.flow)]
    if flow is not None and not shown:
        flows = ", ".join(dict.fromkeys(entry.flow for entry in every))
        raise UnknownDataset(
            f"Storage has no checkpoint of a flow {flow!r}.",
            where=project.state_folder,
            remedy=f"It has those of: {flows or 'none'}.",
        )
    if as_json:
        entries = [entry.as_dict() for entry in shown]
        print_json({"pipeline_id": project.pipeline_id, "checkpoints": entries})
        return 0
    rows = [
        (
            *(entry.dataset, entry.flow, entry.epoch, "live" if entry.live else "", entry.last_batch),
            *(age(entry.age), entry.problem or "; ".join(entry.offsets), size(entry.size)),
        )
        for entry in shown
    ]
    columns = ("dataset", "flow", "epoch", "", "last batch", "age", "offsets", "size")
    styles = ["red" if entry.problem else "" for entry in shown]
    print_table(f"{project.pipeline_id}: checkpoints", columns, rows, row_styles=styles)
    return 0


def _inspect(project: PipelineProject, cases: list[FlowCase], *, as_json: bool) -> int:
    inspections = [inspect_flow(case) for case in cases]
    if as_json:
        print_json({"pipeline_id": project.pipeline_id, "flows": inspections})
        return 0
    for flow in inspections:
        rows = [*_facts(flow), *_positions(flow), *_epochs(flow)]
        rows += [("snapshot", f"{s['name']} ({s['reason']})") for s in flow["snapshots"]]
        print_table(f"{flow['flow']} into {flow['dataset']}", ("what", "as it is"), rows)
    return 0


def _facts(flow: dict[str, Any]) -> list[tuple[str, str]]:
    """What is known of the live epoch, and nothing of what is not."""
    facts = {key: value for key, value in flow.items() if key not in ("sources", "epochs", "snapshots")}
    facts |= {"age": age(facts.pop("age_seconds")), "size": size(flow["size"])}
    if flow["last_batch"] is None and not flow["problem"]:
        facts["last_batch"] = "none yet"
    return [(key.replace("_", " "), _shown(value)) for key, value in facts.items() if value not in _EMPTY]


def _positions(flow: dict[str, Any]) -> list[tuple[str, str]]:
    if flow["problem"]:
        return [
            (f"source {s['index']}", f"{s['source']}: its position can't be read") for s in flow["sources"]
        ]
    return [
        (f"source {s['index']}", f"{s['source']}: {_position(s['position'])}; {_behind(s['behind'])}")
        for s in flow["sources"]
    ]


def _position(text: str) -> str:
    return "nothing read yet" if text == "-" else text


def _epochs(flow: dict[str, Any]) -> list[tuple[str, str]]:
    rows = []
    for epoch in flow["epochs"]:
        batches = "no batch" if epoch["last_batch"] is None else f"up to batch {epoch['last_batch']}"
        shown = "can't be read" if epoch["problem"] else batches
        live = "live, " if epoch["live"] else ""
        rows.append((f"epoch {epoch['epoch']}", f"{live}{shown}, {size(epoch['size'])}"))
    return rows


def _snapshot(project: PipelineProject, cases: list[FlowCase], *, as_json: bool) -> int:
    taken = [snapshot for case in cases if (snapshot := snapshot_flow(case, reason="asked for")) is not None]
    if as_json:
        print_json(
            {"pipeline_id": project.pipeline_id, "snapshots": [snapshot.as_dict() for snapshot in taken]}
        )
        return 0
    rows = [(s.dataset, s.flow, s.name, s.last_batch, s.folder) for s in taken]
    print_table(
        f"{project.pipeline_id}: snapshots", ("dataset", "flow", "snapshot", "last batch", "folder"), rows
    )
    return 0


def _examine(
    project: PipelineProject, flows: int, diagnoses: list[Diagnosis], *, remedies: bool, as_json: bool
) -> int:
    refusing = [f.damage.error for f in diagnoses if f.damage.blocks and not f.damage.mends_itself]
    refused = bool(refusing)
    code = _code(refusing)
    if as_json:
        findings = [finding.as_dict() for finding in diagnoses]
        print_json(
            {
                "pipeline_id": project.pipeline_id,
                "flows": flows,
                "refused": refused,
                "findings": findings,
            }
        )
        return code
    if not diagnoses:
        print(f"{flows} {'flow' if flows == 1 else 'flows'}, nothing wrong.")
        return code
    if not remedies:
        rows = [(f.dataset, f.flow, f.damage.condition, f.damage.error.what, _next(f)) for f in diagnoses]
        print_table(
            f"{project.pipeline_id}: findings",
            ("dataset", "flow", "condition", "finding", "next start"),
            rows,
        )
        return code
    for finding in diagnoses:
        _explain(finding)
    return code


def _code(refusing: list[HeadwaterError]) -> int:
    """Of what refuses the next start: that of one that passes where all do."""
    lasting = [error for error in refusing if not error.transient]
    return RefusedForSafety.exit_code if lasting else max((error.exit_code for error in refusing), default=0)


def _explain(finding: Diagnosis) -> None:
    whose = f"{finding.flow} (into {finding.dataset})" if finding.flow else finding.dataset
    print(f"{whose}: {finding.damage.error}")
    for fact in finding.damage.evidence:
        print(f"  evidence: {fact}")
    print(f"  next start: {_next(finding)}")
    for number, remedy in enumerate(finding.remedies, start=1):
        print(f"  remedy {number}: {remedy.command}")
        if remedy.possible:
            print(f"      lost: {remedy.lost}\n      doubled: {remedy.doubled}")
        else:
            reason = "not known now" if remedy.possible is None else "not possible"
            print(f"      {reason}: {remedy.lost}")
    print()


def _next(finding: Diagnosis) -> str:
    if finding.damage.mends_itself:
        return "makes it good"
    return "is refused" if finding.damage.blocks else "goes on"


def _behind(backlog: dict[str, Any]) -> str:
    if backlog["unknown"]:
        return str(backlog["unknown"])
    if backlog["moved"] is False:
        return "up to date"
    counts = [
        f"{backlog[name]} {name}" for name in ("records", "files", "versions") if backlog[name] is not None
    ]
    return f"behind by {', '.join(counts) or 'an unknown amount'}"


def _shown(value: object) -> str:
    if isinstance(value, dict):
        shown = (
            (key.replace("_", " "), _shown(inner)) for key, inner in value.items() if inner not in _EMPTY
        )
        return ", ".join(f"{key} {inner}" for key, inner in shown)
    if isinstance(value, list):
        return "; ".join(_shown(item) for item in value)
    return str(value)
