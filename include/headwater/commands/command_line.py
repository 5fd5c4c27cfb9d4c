"""The verbs, and which function answers each."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from headwater import __version__
from headwater.commands.advice_arguments import add_advise_arguments, add_verify_arguments
from headwater.commands.doctor_arguments import add_checkpoints_verb, add_drop_verb, add_repair_verb, doctored
from headwater.commands.move_arguments import add_move_verb, add_relocate_verb, add_rename_verb
from headwater.commands.verb_arguments import (
    add_convert_arguments,
    add_events_arguments,
    add_explain_arguments,
    add_files_arguments,
    add_graph_arguments,
    add_init_arguments,
    add_lateness_arguments,
    add_quality_arguments,
    add_status_arguments,
    add_stop_arguments,
    add_validate_arguments,
)
from headwater.contract.arguments import Parser, add_project_arguments, add_run_arguments
from headwater.contract.backfill_arguments import add_backfill_arguments
from headwater.contract.failure_report import run_and_report
from headwater.contract.maintenance_arguments import add_maintenance_arguments
from headwater.contract.quarantine_arguments import add_quarantine_arguments
from headwater.errors import UsageError
from headwater.graph.pipeline_project import PipelineProject, open_project


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb and return the exit code: 0 fine, 1 failed, 2 wrong use or invalid pipeline, 3 refused."""
    arguments = doctored(list(sys.argv[1:] if argv is None else argv))
    return run_and_report(lambda: _dispatch(arguments), as_json="--json" in arguments)


def _dispatch(argv: Sequence[str]) -> int:
    parsed = _parser().parse_args(argv)
    parsed.argv = list(argv)
    code: int = parsed.answer(parsed)
    return code


def _parser() -> Parser:
    parser = Parser(
        prog="headwater", description="Streaming tables on Spark and Delta Lake.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"headwater {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in _VERBS:
        made: Parser = verbs.add_parser(
            verb.name, help=verb.purpose, description=verb.purpose, allow_abbrev=False
        )
        verb.arguments(made)
        if verb.answer is not None:
            made.set_defaults(answer=verb.answer)
    return parser


# Each verb's module is loaded on demand: `run` with nothing new should not pay for the others.


def _init(parsed: argparse.Namespace) -> int:
    from headwater.commands.init import init

    return init(parsed.folder, parsed.name, as_json=parsed.as_json)


def _convert(parsed: argparse.Namespace) -> int:
    from headwater.commands.convert import convert

    return convert(parsed.file, parsed.output, parsed.pipeline, as_json=parsed.as_json, target=parsed.target)


def _run(parsed: argparse.Namespace) -> int:
    from headwater.commands.run import run
    from headwater.contract.arguments import run_arguments

    return run(run_arguments(parsed))


def _backfill(parsed: argparse.Namespace) -> int:
    from headwater.commands.backfill import backfill

    return backfill(_project(parsed), parsed, parsed.argv[1:])


def _graph(parsed: argparse.Namespace) -> int:
    from headwater.commands.graph import show_graph

    return show_graph(_project(parsed), as_json=parsed.as_json or parsed.format == "json")


def _explain(parsed: argparse.Namespace) -> int:
    from headwater.commands.run import become_program
    from headwater.graph.required_sources import required_sources

    required_sources(_project(parsed))  # a folder that is not a pipeline is reported without Spark
    become_program("explain_view.py", parsed.argv[1:])
    return 1


def _status(parsed: argparse.Namespace) -> int:
    from headwater.commands.status import show_status
    from headwater.storage.listing import looked_over

    project = _project(parsed)
    with looked_over(project.state_folder / "checkpoints"):
        return show_status(project, as_json=parsed.as_json, metrics=parsed.metrics)


def _stop(parsed: argparse.Namespace) -> int:
    from headwater.commands.stop import stop_update

    return stop_update(_project(parsed), parsed.wait, as_json=parsed.as_json)


def _lag(parsed: argparse.Namespace) -> int:
    from headwater.commands.lag import show_lag
    from headwater.storage.listing import looked_over

    project = _project(parsed)
    with looked_over(project.state_folder / "checkpoints"):
        return show_lag(project, as_json=parsed.as_json)


def _metrics(parsed: argparse.Namespace) -> int:
    from headwater.commands.metrics import show_metrics

    return show_metrics(_project(parsed), as_json=parsed.as_json)


def _advise(parsed: argparse.Namespace) -> int:
    from headwater.choosing.requirements import QUESTIONS
    from headwater.commands.advise import show_advice
    from headwater.commands.choosing import show_choice

    if parsed.choose:
        return show_choice(parsed, as_json=parsed.as_json)
    _refuse_beside("PIPELINE_DIR", "They are for --choose.", {q.option: getattr(parsed, q.option.replace("-", "_")) for q in QUESTIONS})  # fmt: skip
    if parsed.pipeline is None:
        raise UsageError(
            "No pipeline is given.", remedy="headwater advise PIPELINE_DIR, or headwater advise --choose."
        )
    return show_advice(_project(parsed), as_json=parsed.as_json)


def _verify(parsed: argparse.Namespace) -> int:
    from headwater.commands.verify import show_verification

    return show_verification(_project(parsed), strict=parsed.strict, as_json=parsed.as_json)


def _events(parsed: argparse.Namespace) -> int:
    from headwater.commands.events import follow_events, show_events
    from headwater.contract.known_values import checked_filters

    keys = ("update_id", "request_id", "flow", "dataset", "event_type", "level", "since", "until")
    chosen = {key: getattr(parsed, key) for key in keys}
    if parsed.sql is not None:
        _refuse_beside(
            "--sql", "Put the condition into the query.", {**chosen, "follow": parsed.follow or None}
        )
        return _query(parsed)
    project = _project(parsed)
    filters = {**checked_filters(project, chosen), "limit": parsed.limit}
    if parsed.follow:
        _refuse_beside("--follow", "Leave it out.", {"until": parsed.until})
        return follow_events(project, filters, as_json=parsed.as_json)
    return show_events(project, filters, as_json=parsed.as_json)


def _refuse_beside(option: str, remedy: str, others: Mapping[str, object]) -> None:
    for name, value in others.items():
        if value is not None:
            other = "type" if name == "event_type" else name.replace("_", "-")
            raise UsageError(f"--{other} can't be given beside {option}.", remedy=remedy)


def _query(parsed: argparse.Namespace) -> int:
    from headwater.commands.run import become_program

    _project(parsed)  # a folder that is not a pipeline is reported without Spark
    roots = [f"--{name}={value}" for name in ("storage", "warehouse") if (value := getattr(parsed, name))]
    parameters = [f"--param={key}={value}" for key, value in parsed.parameters]
    shape = [f"--limit={parsed.limit}", *(["--json"] if parsed.as_json else [])]
    become_program("query_events.py", [parsed.pipeline, *roots, *parameters, *shape, f"--sql={parsed.sql}"])
    return 1


def _quality(parsed: argparse.Namespace) -> int:
    from headwater.commands.quality import show_quality

    return show_quality(
        _project(parsed),
        dataset=parsed.dataset,
        updates=parsed.updates,
        since=parsed.since,
        as_json=parsed.as_json,
    )


def _files(parsed: argparse.Namespace) -> int:
    from headwater.commands.files import show_files
    from headwater.storage.listing import looked_over

    project = _project(parsed)
    with looked_over(project.state_folder / "checkpoints"):
        return show_files(project, parsed.flow, parsed.limit, as_json=parsed.as_json)


def _lateness(parsed: argparse.Namespace) -> int:
    from headwater.commands.lateness import show_lateness

    columns = (parsed.event_time, parsed.arrival)
    return show_lateness(_project(parsed), parsed.table, *columns, as_json=parsed.as_json)


def _quarantine(parsed: argparse.Namespace) -> int:
    from headwater.commands.quarantine import quarantine

    return quarantine(_project(parsed), parsed, parsed.argv[2:])


def _maintenance(parsed: argparse.Namespace) -> int:
    from headwater.commands.maintenance import maintenance

    return maintenance(_project(parsed), parsed, parsed.argv[1:])


def _project(parsed: argparse.Namespace) -> PipelineProject:
    return open_project(
        parsed.pipeline,
        storage=parsed.storage,
        warehouse=parsed.warehouse,
        parameters=dict(parsed.parameters),
    )


@dataclass(frozen=True)
class _Verb:
    """A verb. ``answer`` is None where its arguments name one themselves, as verbs of verbs do."""

    name: str
    purpose: str
    arguments: Callable[[Parser], None]
    answer: Callable[[argparse.Namespace], int] | None = None


_VERBS = (
    _Verb("init", "Write a small pipeline that runs at once.", add_init_arguments, _init),
    _Verb("convert", "Write the pipeline.yml for settings of Lakeflow (JSON, YAML or an asset bundle).", add_convert_arguments, _convert),
    _Verb("run", "Take in what is new: one update of the pipeline.", add_run_arguments, _run),
    _Verb("stop", "End the running update after the batches in flight.", add_stop_arguments, _stop),
    _Verb("backfill", "Fill a range of a table from its definition, beside the live stream.", add_backfill_arguments, _backfill),
    _Verb("validate", "Resolve the graph, look for what will go wrong, and write manifest.json beside pipeline.yml.", add_validate_arguments, _run),
    _Verb("graph", "Show the graph of the manifest.", add_graph_arguments, _graph),
    _Verb("explain", "How a materialized view is refreshed: by what changed or whole, and why.", add_explain_arguments, _explain),
    _Verb("status", "The last update, flow by flow, and how fresh the tables are.", add_status_arguments, _status),
    _Verb("lag", "How far each flow is behind its sources.", add_project_arguments, _lag),
    _Verb("metrics", "Figures for Prometheus: the last update, lag, state, freshness, rules.", add_project_arguments, _metrics),
    _Verb("advise", "What to do about lag, state, files and rules, with numbers; --choose: which kind of table fits.", add_advise_arguments, _advise),
    _Verb("verify", "Whether the pipeline is as one in production should be: lines that pass or fail.", add_verify_arguments, _verify),
    _Verb("checkpoints", "The checkpoints: what they hold, whether they are intact, copies of them.", add_checkpoints_verb),
    _Verb("repair", "Repair a flow's checkpoint. Shows the plan; --yes carries it out.", add_repair_verb),
    _Verb("rename", "Give a table another name, with its checkpoints. Shows the plan; --yes carries it out.", add_rename_verb),
    _Verb("move", "Have another pipeline own a table, with its checkpoints. Shows the plan; --yes carries it out.", add_move_verb),
    _Verb("relocate", "Give a pipeline other roots, with its tables and checkpoints. Shows the plan; --yes carries it out.", add_relocate_verb),
    _Verb("drop", "Remove a table with its checkpoints. Shows the plan; --yes carries it out.", add_drop_verb),
    _Verb("maintenance", "Tidy tables and storage. Shows what is due; --yes does it.", add_maintenance_arguments, _maintenance),
    _Verb("events", "What the event log says, newest last.", add_events_arguments, _events),
    _Verb("quality", "How many rows kept and broke each rule, update by update.", add_quality_arguments, _quality),
    _Verb("files", "Which files were taken in from folders, and when.", add_files_arguments, _files),
    _Verb("lateness", "How late the rows of a table came, and how long a watermark should wait.", add_lateness_arguments, _lateness),
    _Verb("quarantine", "Rows that rules kept out: list, show, replay, discard.", add_quarantine_arguments, _quarantine),
)  # fmt: skip
