"""Arguments of the verbs. ``jobs/run_update.py`` reads the same ones, so they are defined once, here."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NoReturn

from headwater.errors import UsageError
from headwater.graph.update_plan import Selection
from headwater.suggestions import nearest

# What chooses a part of the pipeline; the first are lists of names.
_SELECTING = ("tables", "full_refresh", "reset_checkpoint", "flows", "full_refresh_all")
_UNKNOWN_OPTION = re.compile(r"unrecognized arguments: (?P<given>--?[\w-]+)")
_WRONG_CHOICE = re.compile(r"invalid choice: '(?P<given>[^']*)' \(choose from (?P<choices>.*)\)")


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are errors like all others, so that ``--json`` holds for them too."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does, but that nothing may be left over: a verb says so itself, by its own usage."""
        parsed, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return parsed, rest

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with the nearest name, where a name is wrong, and the usage line as its remedy."""
        usage = " ".join(self.format_usage().split())
        near = _nearest_choice(message) or self._nearest_option(message)
        meant = f"Did you mean {near!r}? " if near else ""
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", remedy=meant + usage)

    def _nearest_option(self, message: str) -> str | None:
        """The option nearest to an unknown one, parsed from argparse's message."""
        match = _UNKNOWN_OPTION.match(message)
        return None if match is None else nearest(match["given"], self._option_string_actions)


def _nearest_choice(message: str) -> str | None:
    """The choice nearest to an invalid one, parsed from argparse's message."""
    match = _WRONG_CHOICE.search(message)
    if match is None:
        return None
    choices = re.findall(r"[\w-]+", match["choices"])
    return nearest(match["given"], choices)


@dataclass(frozen=True)
class RunArguments:
    """The arguments of ``run`` and ``validate``.

    ``attempt`` and ``max_attempts``: which try of a request this is, from 1 (Airflow's retries).
    ``requested_at``: when the request was made, by the clock of whoever makes it (Airflow: the start of the run).
    ``announced_together``: whether its tables are announced when the whole update has ended well, not one by one.
    ``continuous``: whether the update keeps running; None as the pipeline's ``trigger`` says.
    ``validate``: resolve the graph and write the manifest, run nothing; ``strict``: its warnings are errors.
    """

    pipeline: str
    storage: str | None = None
    warehouse: str | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    as_json: bool = False
    tables: tuple[str, ...] = ()
    full_refresh: tuple[str, ...] = ()
    full_refresh_all: bool = False
    reset_checkpoint: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()
    refresh_failed: bool = False
    dry_run: bool = False
    request_id: str | None = None
    attempt: int = 1
    max_attempts: int = 1
    requested_at: datetime | None = None
    announced_together: bool = False
    no_skip: bool = False
    continuous: bool | None = None
    validate: bool = False
    strict: bool = False

    @property
    def selective(self) -> bool:
        """Whether anything but a plain incremental update is requested."""
        chosen = (self.tables, self.full_refresh, self.reset_checkpoint, self.flows)
        return any((*chosen, self.full_refresh_all, self.refresh_failed, self.dry_run, self.validate))

    @property
    def selection(self) -> Selection:
        """The requested part of the pipeline."""
        return Selection(
            self.tables,
            self.full_refresh,
            self.full_refresh_all,
            self.reset_checkpoint,
            self.flows,
            self.refresh_failed,
        )

    def to_argv(self) -> list[str]:
        """The arguments as a command line that parses to the same."""
        argv = [self.pipeline]
        for flag, value in (
            ("--storage", self.storage),
            ("--warehouse", self.warehouse),
            ("--tables", ",".join(self.tables)),
            ("--full-refresh", ",".join(self.full_refresh)),
            ("--reset-checkpoint", ",".join(self.reset_checkpoint)),
            ("--flows", ",".join(self.flows)),
            ("--request-id", self.request_id),
            ("--requested-at", self.requested_at and self.requested_at.isoformat()),
        ):
            if value:
                argv.append(f"{flag}={value}")
        argv += [f"--param={key}={value}" for key, value in self.parameters.items()]
        if (self.attempt, self.max_attempts) != (1, 1):
            argv += [f"--attempt={self.attempt}", f"--max-attempts={self.max_attempts}"]
        switches = {
            "--full-refresh-all": self.full_refresh_all,
            "--refresh-failed": self.refresh_failed,
            "--dry-run": self.dry_run,
            "--announced-together": self.announced_together,
            "--no-skip": self.no_skip,
            "--validate": self.validate,
            "--strict": self.strict,
            "--json": self.as_json,
        }
        if self.continuous is not None:
            argv.append("--continuous" if self.continuous else "--no-continuous")
        return argv + [flag for flag, given in switches.items() if given]


def parse_run_arguments(argv: Sequence[str]) -> RunArguments:
    """Read the arguments of an update; raises UsageError (exit code 2) where they are wrong."""
    parser = Parser(prog="headwater run", allow_abbrev=False)
    add_run_arguments(parser)
    parser.add_argument("--validate", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--strict", action="store_true", help=argparse.SUPPRESS)
    return run_arguments(parser.parse_args(list(argv)))


def run_arguments(parsed: argparse.Namespace) -> RunArguments:
    """The arguments of a parsed command line; raises UsageError where they contradict each other."""
    values = vars(parsed)
    if values.get("full_refresh") and values.get("full_refresh_all"):
        raise UsageError(
            "--full-refresh and --full-refresh-all exclude each other.", remedy="Give one of them."
        )
    narrower = next((name for name in ("tables", "flows") if values.get(name)), None)
    if values.get("full_refresh_all") and narrower is not None:
        raise UsageError(
            f"--{narrower} and --full-refresh-all exclude each other: the second empties every table.",
            remedy="To refill some tables: --full-refresh A,B. To refill all: --full-refresh-all alone.",
        )
    named = [name for name in _SELECTING if values.get(name)]
    if values.get("refresh_failed") and named:
        option = named[0].replace("_", "-")
        raise UsageError(
            f"--refresh-failed and --{option} exclude each other: the first chooses the tables.",
            remedy="Give one of them.",
        )
    known = {name: values[name] for name in RunArguments.__dataclass_fields__ if name in values}
    lists = {name: tuple(known.get(name, ())) for name in _SELECTING[:4]}
    arguments = RunArguments(**{**known, **lists, "parameters": dict(values["parameters"])})
    if arguments.attempt < 1:
        raise UsageError(f"--attempt must be 1 or more, not {arguments.attempt}.")
    return arguments


def add_project_arguments(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """The pipeline's folder, the roots, and ``--json``: what every verb takes. ``optional``: the folder may be left out."""
    parser.add_argument(
        "pipeline",
        metavar="PIPELINE_DIR",
        nargs="?" if optional else None,
        help="the folder that holds pipeline.yml",
    )
    parser.add_argument(
        "--storage", metavar="DIR", help="checkpoints, event log and manifest (else HEADWATER_STORAGE)"
    )
    parser.add_argument("--warehouse", metavar="DIR", help="tables (else HEADWATER_WAREHOUSE)")
    parser.add_argument(
        "--param",
        dest="parameters",
        metavar="K=V",
        type=_parameter,
        action="append",
        default=[],
        help="a value for spark.conf.get and ${...}, over the spec's configuration; may be repeated",
    )
    parser.add_argument(
        "--json",
        dest="as_json",
        action="store_true",
        help="one JSON object as the last line of standard output",
    )


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """What ``run`` takes."""
    add_project_arguments(parser)
    lists: dict[str, Any] = {"type": names, "action": "extend", "default": []}
    parser.add_argument("--tables", metavar="A,B", help="refresh only these tables", **lists)
    parser.add_argument("--full-refresh", metavar="A,B", help="empty these tables and refill them", **lists)
    parser.add_argument("--full-refresh-all", action="store_true", help="empty every table and refill it")
    parser.add_argument(
        "--reset-checkpoint",
        metavar="FLOW",
        help="begin a new epoch of this flow; its table keeps its rows",
        **lists,
    )
    parser.add_argument("--flows", metavar="A,B", help="run only these flows of their tables", **lists)
    parser.add_argument(
        "--refresh-failed",
        action="store_true",
        help="refresh what did not complete in the last update, and what reads it",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show the plan and what is left to read, and write nothing"
    )
    parser.add_argument("--no-skip", action="store_true", help="start Spark though no source has moved")
    parser.add_argument(
        "--continuous",
        action=argparse.BooleanOptionalAction,
        help="keep every stream running until the update is stopped; --no-continuous: end when all that is there is read "
        "(else the pipeline's trigger)",
    )
    parser.add_argument(
        "--request-id", metavar="ID", help="joins the attempts of one request in the event log"
    )
    parser.add_argument(
        "--attempt", type=int, default=1, metavar="N", help="which attempt of the request, from 1"
    )
    parser.add_argument("--max-attempts", type=int, default=1, metavar="N", help="how many the request has")
    parser.add_argument(
        "--requested-at", type=_instant, metavar="TIME",
        help="when the request was made (ISO form, UTC unless it says otherwise); kept in the event log",
    )  # fmt: skip
    parser.add_argument("--announced-together", action="store_true", help=argparse.SUPPRESS)


def names(text: str) -> list[str]:
    """Names separated by commas, for argparse."""
    parsed = [name.strip() for name in text.split(",") if name.strip()]
    if not parsed:
        raise argparse.ArgumentTypeError("give at least one name")
    return parsed


def _instant(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in ISO form (2026-01-31T08:00)") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _parameter(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form key=value")
    return key.strip(), value
