"""What ``headwater backfill`` takes. ``jobs/run_backfill.py`` reads the same arguments."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from headwater.backfills.backfill_range import BackfillMode, BackfillRange, RangeKind, read_range
from headwater.contract.arguments import Parser, add_project_arguments, names
from headwater.errors import UsageError


@dataclass(frozen=True)
class BackfillArguments:
    """The arguments of a backfill. ``chosen``: the range; None with ``then_stream``, which takes all that is there.

    ``mode``: None for what fits the table and the range. ``keys``: the columns by which ``merge`` finds rows. ``again``: do it though this range was done before.
    ``allow_fewer_rows``: replace rows also by fewer of them.
    """

    pipeline: str
    tables: tuple[str, ...]
    chosen: BackfillRange | None
    mode: BackfillMode | None
    storage: str | None = None
    warehouse: str | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    dry_run: bool = False
    again: bool = False
    allow_fewer_rows: bool = False
    then_stream: bool = False
    request_id: str | None = None
    as_json: bool = False


def add_backfill_arguments(parser: argparse.ArgumentParser) -> None:
    """What the verb takes."""
    add_project_arguments(parser)
    lists: dict[str, Any] = {"type": names, "action": "extend", "default": []}
    parser.add_argument("--tables", metavar="A,B", help="the tables to fill", required=True, **lists)
    parser.add_argument(
        "--range",
        dest="kind",
        choices=[str(kind) for kind in RangeKind],
        default=None,
        help="event-time (default): rows of the table by a column; where: by a condition; else what the source gave: "
        "versions of a Delta table, offsets of Kafka, files by their time of change",
    )
    parser.add_argument("--where", metavar="CONDITION", help="the rows of the table that are meant, in SQL")
    parser.add_argument("--column", metavar="COLUMN", help="the table's column with the event time")
    parser.add_argument("--from", dest="start", metavar="FIRST", help="where the range begins")
    parser.add_argument(
        "--to", dest="end", metavar="END", help="where it ends; times and offsets: before this"
    )
    parser.add_argument(
        "--mode",
        choices=[str(mode) for mode in BackfillMode],
        default=None,
        help="replace-where (default for event times and conditions), append, or merge by key (default for targets of AUTO CDC)",
    )
    parser.add_argument("--keys", metavar="A,B", help="with --mode merge: the columns of the key", **lists)
    parser.add_argument("--dry-run", action="store_true", help="count what would be done, and write nothing")
    parser.add_argument("--again", action="store_true", help="do it though this range was done before")
    parser.add_argument(
        "--allow-fewer-rows", action="store_true", help="replace also where fewer rows come than leave"
    )
    parser.add_argument(
        "--then-stream",
        action="store_true",
        help="for a table that never ran: load all history as one batch, then start the stream where that ended",
    )
    parser.add_argument(
        "--request-id", metavar="ID", help="joins the attempts of one request in the event log"
    )


def parse_backfill_arguments(argv: Sequence[str]) -> BackfillArguments:
    """Read the arguments of a backfill; raises UsageError, InvalidRange."""
    parser = Parser(prog="headwater backfill", allow_abbrev=False)
    add_backfill_arguments(parser)
    return backfill_arguments(parser.parse_args(list(argv)))


def backfill_arguments(parsed: argparse.Namespace) -> BackfillArguments:
    """The arguments of a parsed command line; raises UsageError, InvalidRange where they contradict each other."""
    values = vars(parsed)
    same = {name: values[name] for name in BackfillArguments.__dataclass_fields__ if name in values}
    common = {**same, "tables": tuple(dict.fromkeys(parsed.tables)), "parameters": dict(parsed.parameters)}
    if parsed.then_stream:
        given = {
            "--range": parsed.kind, "--where": parsed.where, "--column": parsed.column, "--from": parsed.start, "--to": parsed.end,
            "--mode": parsed.mode, "--keys": parsed.keys, "--again": parsed.again,
        }  # fmt: skip
        for option, value in given.items():
            if value:
                raise UsageError(
                    f"{option} can't be given beside --then-stream: it loads all that the sources have.",
                    remedy="Leave it out.",
                )
        return BackfillArguments(**{**common, "keys": (), "chosen": None, "mode": None})
    usual = RangeKind.EVENT_TIME if parsed.where is None else RangeKind.WHERE
    kind = RangeKind(parsed.kind or usual)
    chosen = read_range(kind, parsed.start, parsed.end, parsed.column, parsed.where)
    mode = BackfillMode(parsed.mode) if parsed.mode else None
    if mode is BackfillMode.REPLACE_WHERE and not kind.of_rows:
        raise UsageError(
            f"replace-where needs a range of the table's rows, and one by {kind} is of the source.",
            remedy="Give --range event-time with --column, or --where, or --mode append or merge.",
        )
    if parsed.keys and mode is not BackfillMode.MERGE:
        raise UsageError("--keys is for --mode merge.", remedy="Leave it out, or give --mode merge.")
    return BackfillArguments(**{**common, "keys": tuple(parsed.keys), "chosen": chosen, "mode": mode})
