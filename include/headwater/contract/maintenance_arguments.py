"""What ``maintenance`` takes; ``jobs/run_maintenance.py`` reads the same."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import timedelta

from headwater.contract.arguments import Parser, add_project_arguments, names
from headwater.contract.moments import span
from headwater.maintenance.chore import ChoreKind, MaintenanceOptions


def add_maintenance_arguments(parser: Parser) -> None:
    """Arguments of the verb."""
    add_project_arguments(parser)
    parser.add_argument(
        "--tables",
        metavar="A,B",
        type=names,
        action="extend",
        default=[],
        help="only these tables, and not the storage",
    )
    parser.add_argument(
        "--only",
        metavar="A,B",
        type=_kinds,
        action="extend",
        default=[],
        help=f"only these kinds of work: {', '.join(ChoreKind)}",
    )
    parser.add_argument(
        "--retention",
        type=span,
        metavar="SPAN",
        help="vacuum: how long removed files stay (7 days, 0 hours); else the spec's, else each table's property",
    )
    parser.add_argument("--keep", type=span, metavar="SPAN", help="how long old epochs and copies stay")
    parser.add_argument(
        "--wait",
        type=span,
        metavar="SPAN",
        default=timedelta(0),
        help="how long to wait for an update to end",
    )
    parser.add_argument("--yes", action="store_true", help="do it; without it nothing is changed")


def maintenance_options(parsed: argparse.Namespace) -> MaintenanceOptions:
    """The options of a parsed command line."""
    return MaintenanceOptions(tuple(parsed.tables), tuple(parsed.only), parsed.retention, parsed.keep)


def parse_maintenance_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Read the arguments; raises UsageError (exit code 2) where they are wrong."""
    parser = Parser(prog="headwater maintenance", allow_abbrev=False)
    add_maintenance_arguments(parser)
    return parser.parse_args(list(argv))


def _kinds(text: str) -> list[ChoreKind]:
    chosen = names(text)
    unknown = [name for name in chosen if name not in list(ChoreKind)]
    if unknown:
        known = ", ".join(ChoreKind)
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is no kind of work; there are {known}")
    return [ChoreKind(name) for name in chosen]
