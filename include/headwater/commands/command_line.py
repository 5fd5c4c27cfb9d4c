"""The verbs, and which function answers each."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from headwater import __version__
from headwater.commands.arguments import Parser, add_project_arguments, add_run_arguments, names
from headwater.commands.backfill_arguments import add_backfill_arguments
from headwater.commands.doctor_arguments import add_checkpoints_verb, add_drop_verb, add_repair_verb, doctored
from headwater.commands.failure_report import run_and_report
from headwater.commands.maintenance_arguments import add_maintenance_arguments
from headwater.commands.quarantine_arguments import add_quarantine_arguments
from headwater.errors import UsageError
from headwater.graph.pipeline_project import PipelineProject, open_project


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb and return the exit code: 0 fine, 1 failed, 2 wrong use or invalid pipeline, 3 refused."""
    given = doctored(list(sys.argv[1:] if argv is None else argv))
    return run_and_report(lambda: _dispatch(given), as_json="--json" in given)


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

    def verb(name: str, purpose: str) -> Parser:
        made: Parser = verbs.add_parser(name, help=purpose, description=purpose, allow_abbrev=False)
        return made

    init = verb("init", "Write a small pipeline that runs at once.")
    init.add_argument("folder", metavar="DIR", help="a new or empty folder")
    init.add_argument("--name", help="the pipeline's name (else the folder's)")
    init.add_argument("--json", dest="as_json", action="store_true", help="one JSON object as the last line")
    init.set_defaults(answer=_init)

    run = verb("run", "Take in what is new: one update of the pipeline.")
    add_run_arguments(run)
    run.set_defaults(answer=_run)

    filled = verb("backfill", "Fill a range of a table from its definition, beside the live stream.")
    add_backfill_arguments(filled)
    filled.set_defaults(answer=_backfill)

    validate = verb(
        "validate",
        "Resolve the graph, look for what will go wrong, and write manifest.json beside pipeline.yml.",
    )
    add_project_arguments(validate)
    validate.add_argument("--strict", action="store_true", help="warnings of the linter count as errors")
    validate.set_defaults(answer=_run, validate=True)

    graph = verb("graph", "Show the graph of the manifest.")
    add_project_arguments(graph)
    graph.add_argument("--format", choices=("mermaid", "json"), default="mermaid")
    graph.set_defaults(answer=_graph)

    for name, purpose, answer in (
        ("status", "The last update, flow by flow, and how fresh the tables are.", _status),
        ("lag", "How far each flow is behind its sources.", _lag),
    ):
        shown = verb(name, purpose)
        add_project_arguments(shown)
        shown.set_defaults(answer=answer)
        if name == "status":
            measures = "also rates, state and watermark lag of each stream's newest batch"
            shown.add_argument("--metrics", action="store_true", help=measures)
    add_checkpoints_verb(
        verb("checkpoints", "The checkpoints: what they hold, whether they are whole, copies of them.")
    )
    add_repair_verb(verb("repair", "Make a flow's checkpoint good. Shows the plan; --yes carries it out."))
    add_drop_verb(verb("drop", "Remove a table with its checkpoints. Shows the plan; --yes carries it out."))
    upkeep = verb("maintenance", "Tidy tables and storage. Shows what is due; --yes does it.")
    add_maintenance_arguments(upkeep)
    upkeep.set_defaults(answer=_maintenance)
    _add_events(verb("events", "What the event log says, newest last."))
    _add_quality(verb("quality", "How many rows kept and broke each rule, update by update."))
    files = verb("files", "Which files were taken in from folders, and when.")
    add_project_arguments(files)
    files.add_argument("--flow", help="only this flow")
    files.add_argument("--limit", type=int, default=0, metavar="N", help="only the newest N")
    files.set_defaults(answer=_files)
    _add_lateness(
        verb("lateness", "How late the rows of a table came, and how long a watermark should wait.")
    )
    kept_out = verb("quarantine", "Rows that rules kept out: list, show, replay, discard.")
    add_quarantine_arguments(kept_out)
    kept_out.set_defaults(answer=_quarantine)
    return parser


def _add_events(parser: Parser) -> None:
    from headwater.commands.moments import count, moment

    add_project_arguments(parser)
    parser.add_argument("--update-id", metavar="ID")
    parser.add_argument("--request-id", metavar="ID")
    parser.add_argument("--flow")
    parser.add_argument("--dataset")
    kinds = "only these types: flow_progress, update_progress, ..."
    parser.add_argument("--type", dest="event_type", type=names, action="extend", metavar="A,B", help=kinds)
    parser.add_argument("--level", choices=("INFO", "WARN", "ERROR", "METRICS"))
    spans = "a time in ISO form (UTC), or how long ago: 90 minutes, 7d"
    parser.add_argument("--since", type=moment, metavar="WHEN", help=spans)
    parser.add_argument("--until", type=moment, metavar="WHEN", help=spans)
    parser.add_argument("--limit", type=count, default=50, metavar="N")
    parser.add_argument("--follow", action="store_true", help="print new events as they come, until Ctrl-C")
    parser.add_argument(
        "--sql",
        metavar="TEXT",
        help="SQL over event_log('<pipeline-id>') and details:path.to.value; starts Spark",
    )
    parser.set_defaults(answer=_events)


def _add_quality(parser: Parser) -> None:
    from headwater.commands.moments import count, moment

    add_project_arguments(parser)
    parser.add_argument("--dataset", help="only the rules on this one")
    parser.add_argument("--updates", type=count, default=20, metavar="N", help="the newest N updates")
    parser.add_argument("--since", type=moment, metavar="WHEN", help="a time in ISO form, or how long ago")
    parser.set_defaults(answer=_quality)


def _add_lateness(parser: Parser) -> None:
    add_project_arguments(parser)
    parser.add_argument("table", metavar="TABLE", help="a table of the pipeline")
    parser.add_argument("--event-time", metavar="COLUMN", default="event_time", help="when it happened")
    parser.add_argument("--arrival", metavar="COLUMN", default="arrival_timestamp", help="when it came")
    parser.set_defaults(answer=_lateness)


# Each verb's module is loaded when it is asked for: `run` with nothing new should not pay for the others.


def _init(parsed: argparse.Namespace) -> int:
    from headwater.commands.init import init

    return init(parsed.folder, parsed.name, as_json=parsed.as_json)


def _run(parsed: argparse.Namespace) -> int:
    from headwater.commands.arguments import run_arguments
    from headwater.commands.run import run

    return run(run_arguments(parsed))


def _backfill(parsed: argparse.Namespace) -> int:
    from headwater.commands.backfill import backfill

    return backfill(_project(parsed), parsed, parsed.argv[1:])


def _graph(parsed: argparse.Namespace) -> int:
    from headwater.commands.graph import show_graph

    return show_graph(_project(parsed), as_json=parsed.as_json or parsed.format == "json")


def _status(parsed: argparse.Namespace) -> int:
    from headwater.commands.status import show_status

    return show_status(_project(parsed), as_json=parsed.as_json, metrics=parsed.metrics)


def _lag(parsed: argparse.Namespace) -> int:
    from headwater.commands.lag import show_lag

    return show_lag(_project(parsed), as_json=parsed.as_json)


def _events(parsed: argparse.Namespace) -> int:
    from headwater.commands.events import follow_events, show_events

    keys = ("update_id", "request_id", "flow", "dataset", "event_type", "level", "since", "until")
    given = {key: getattr(parsed, key) for key in keys}
    if parsed.sql is not None:
        _refuse_beside(
            "--sql", "Put the condition into the query.", {**given, "follow": parsed.follow or None}
        )
        return _query(parsed)
    filters = {**given, "limit": parsed.limit}
    if parsed.follow:
        _refuse_beside("--follow", "Leave it out.", {"until": parsed.until})
        return follow_events(_project(parsed), filters, as_json=parsed.as_json)
    return show_events(_project(parsed), filters, as_json=parsed.as_json)


def _refuse_beside(option: str, remedy: str, others: Mapping[str, object]) -> None:
    for name, value in others.items():
        if value is not None:
            other = "type" if name == "event_type" else name.replace("_", "-")
            raise UsageError(f"--{other} can't be given beside {option}.", remedy=remedy)


def _query(parsed: argparse.Namespace) -> int:
    from headwater.commands.run import become_program

    _project(parsed)  # a folder that is no pipeline is told without Spark
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

    return show_files(_project(parsed), parsed.flow, parsed.limit, as_json=parsed.as_json)


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
