"""What ``checkpoints`` and ``repair`` take."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headwater.contract.arguments import Parser, add_project_arguments
from headwater.graph.pipeline_project import PipelineProject, open_project
from headwater.preflight.damage import Repair
from headwater.suggestions import nearest

ACTIONS = ("list", "inspect", "verify", "diagnose", "snapshot", "restore")


def doctored(argv: Sequence[str]) -> list[str]:
    """The command line with ``list`` put behind ``checkpoints`` where no action is named."""
    arguments = list(argv)
    if arguments[:1] == ["checkpoints"] and (len(arguments) < 2 or not _names_an_action(arguments[1])):
        arguments.insert(1, "list")
    return arguments


def _names_an_action(word: str) -> bool:
    """Whether a word is an action, or a misspelled one: then the parser names the nearest."""
    misspelled = nearest(word, ACTIONS) is not None and not Path(word).exists()
    return word in ACTIONS or misspelled


def add_checkpoints_verb(parser: Parser) -> None:
    """``checkpoints [ACTION] PIPELINE_DIR [FLOW]``."""
    parser.add_argument(
        "action",
        choices=ACTIONS,
        metavar="ACTION",
        help="list (default): every epoch of every flow; inspect: batches, offsets, heads, state; verify: all checks of a "
        "start, and checksums; diagnose: findings with remedies and their cost; snapshot: copy the live epoch; "
        "restore: go on from a copy",
    )
    add_project_arguments(parser)
    parser.add_argument("flow", metavar="FLOW", nargs="?", help="only this flow; needed by restore")
    parser.add_argument("--snapshot", metavar="NAME", help="restore: which one (else the newest)")
    parser.add_argument("--yes", action="store_true", help="restore: carry it out")
    parser.set_defaults(answer=_checkpoints)


def add_repair_verb(parser: Parser) -> None:
    """``repair PIPELINE_DIR FLOW --action ...``."""
    add_project_arguments(parser)
    parser.add_argument("flow", metavar="FLOW")
    parser.add_argument("--action", required=True, choices=[str(action) for action in Repair])
    parser.add_argument(
        "--batch", type=int, metavar="N", help="rewind: the last batch to keep (else the newest whole one)"
    )
    parser.add_argument("--snapshot", metavar="NAME", help="restore: which one (else the newest)")
    parser.add_argument(
        "--from-start", action="store_true", help="new-epoch: read everything again; the table keeps its rows"
    )
    parser.add_argument(
        "--from-version",
        type=int,
        metavar="V",
        help="new-epoch: the first version of the Delta source to read",
    )
    parser.add_argument(
        "--from-offsets", type=_offsets, metavar="JSON", help="new-epoch: one offset a source, as a JSON list"
    )
    parser.add_argument(
        "--from-time", type=_millis, metavar="TIME", help="new-epoch: ISO 8601, UTC where no zone is given; older files, commits "
        "and messages count as read",
    )  # fmt: skip
    parser.add_argument(
        "--yes", action="store_true", help="carry the plan out; without it nothing is changed"
    )
    parser.set_defaults(answer=_repair)


def add_drop_verb(parser: Parser) -> None:
    """``drop PIPELINE_DIR TABLE...``."""
    add_project_arguments(parser)
    parser.add_argument("tables", metavar="TABLE", nargs="+")
    parser.add_argument("--yes", action="store_true", help="carry it out; without it nothing is changed")
    parser.set_defaults(answer=_drop)


def _drop(parsed: argparse.Namespace) -> int:
    from headwater.commands.drop import drop_tables

    return drop_tables(_project(parsed), parsed.tables, yes=parsed.yes, as_json=parsed.as_json)


def _checkpoints(parsed: argparse.Namespace) -> int:
    from headwater.commands.checkpoints import answer_checkpoints
    from headwater.commands.repair import RepairRequest, repair
    from headwater.doctor.repair_plan import RepairOptions
    from headwater.errors import UsageError

    unused = [
        f"--{name}" for name in ("snapshot", "yes") if getattr(parsed, name) and parsed.action != "restore"
    ]
    if unused:
        raise UsageError(f"{' and '.join(unused)} belong to `checkpoints restore`.")
    if parsed.action == "restore":
        if parsed.flow is None:
            raise UsageError("Name the flow whose checkpoint is to be restored.")
        options = RepairOptions(snapshot=parsed.snapshot)
        request = RepairRequest(Repair.RESTORE, parsed.flow, options, parsed.yes)
        return repair(_project(parsed), request, as_json=parsed.as_json)
    return answer_checkpoints(parsed.action, _project(parsed), parsed.flow, as_json=parsed.as_json)


def _repair(parsed: argparse.Namespace) -> int:
    from headwater.commands.repair import RepairRequest, repair
    from headwater.doctor.repair_plan import OWNERS, RepairOptions
    from headwater.errors import UsageError

    options = RepairOptions(
        parsed.batch,
        parsed.snapshot,
        parsed.from_start,
        parsed.from_version,
        parsed.from_offsets,
        parsed.from_time,
    )
    action = Repair(parsed.action)
    if (foreign := options.foreign_to(action)) is not None:
        raise UsageError(
            f"--{foreign.replace('_', '-')} belongs to --action {OWNERS[foreign]}, not to {action}."
        )
    request = RepairRequest(action, parsed.flow, options, parsed.yes)
    return repair(_project(parsed), request, as_json=parsed.as_json)


def _project(parsed: argparse.Namespace) -> PipelineProject:
    return open_project(
        parsed.pipeline,
        storage=parsed.storage,
        warehouse=parsed.warehouse,
        parameters=dict(parsed.parameters),
    )


def _offsets(text: str) -> tuple[Any, ...]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not JSON") from None
    return tuple(value) if isinstance(value, list) else (value,)


def _millis(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time of the form 2026-01-31T12:00:00") from None
    return round((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp() * 1000)
