"""What ``headwater quarantine`` takes. ``jobs/replay_quarantine.py`` reads the arguments of ``replay``, too."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from headwater.contract.arguments import Parser, add_project_arguments
from headwater.contract.moments import count
from headwater.quarantine.table import RowFilter

_PURPOSES = {
    "list": "Quarantined rows of all tables, counted by reason.",
    "show": "Quarantined rows of a table, newest last.",
    "discard": "Mark held rows as not wanted.",
    "replay": "Put held rows through the flow's current code and rules, once.",
}


@dataclass(frozen=True)
class ReplayArguments:
    """The arguments of ``replay``. ``corrections``: SQL expressions by column; ``method``: auto, source or row."""

    pipeline: str
    table: str
    storage: str | None
    warehouse: str | None
    parameters: dict[str, str]
    chosen: RowFilter
    corrections: dict[str, str]
    method: str
    as_json: bool

    @property
    def of_rows(self) -> bool:
        """Whether it is about kept rows alone, and not about files that can't be read."""
        return bool(self.corrections) or self.method == "row"


def add_quarantine_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions of the verb and their arguments."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, dest="action")
    for name, purpose in _PURPOSES.items():
        action = actions.add_parser(name, help=purpose, description=purpose, allow_abbrev=False)
        add_project_arguments(action)
        if name == "list":
            continue
        _add_rows(action)
        if name == "show":
            action.add_argument("--status", choices=("held", "pending", "replaying", "replayed", "discarded"))
            action.add_argument("--limit", type=count, default=20, metavar="N")
        if name == "discard":
            action.add_argument("--reason", required=True, help="why; it is kept with the rows")
            action.add_argument(
                "--all", dest="everything", action="store_true", help="all held rows of the table"
            )
        if name == "replay":
            _add_replay(action)


def parse_replay_arguments(argv: Sequence[str]) -> ReplayArguments:
    """Read the arguments of a replay; raises UsageError."""
    parser = Parser(prog="headwater quarantine replay", allow_abbrev=False)
    add_project_arguments(parser)
    _add_rows(parser)
    _add_replay(parser)
    parsed = parser.parse_args(list(argv))
    return ReplayArguments(
        parsed.pipeline,
        parsed.table,
        parsed.storage,
        parsed.warehouse,
        dict(parsed.parameters),
        row_filter(parsed),
        dict(parsed.corrections),
        parsed.method,
        parsed.as_json,
    )


def row_filter(parsed: argparse.Namespace) -> RowFilter:
    """Which rows a command is about."""
    return RowFilter(tuple(parsed.ids), parsed.flow, parsed.rule)


def _add_rows(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE", help="the table whose rules kept the rows out")
    parser.add_argument(
        "--id", dest="ids", action="append", default=[], metavar="ID",
        help="a row, by the beginning of its id; may be repeated",
    )  # fmt: skip
    parser.add_argument("--flow", help="only rows of this flow")
    parser.add_argument("--rule", help="only rows that broke this rule")


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", dest="corrections", type=_correction, action="append", default=[], metavar="COLUMN=SQL",
        help="correct a column of the kept rows by a SQL expression over them; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--from", dest="method", choices=("auto", "source", "row"), default="auto",
        help="source: run the flow's query over the records of the source; row: judge the kept rows again",
    )  # fmt: skip


def _correction(text: str) -> tuple[str, str]:
    column, sign, expression = text.partition("=")
    if not sign or not column.strip() or not expression.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form column=expression")
    return column.strip(), expression.strip()
