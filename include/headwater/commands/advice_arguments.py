"""Arguments of ``advise`` (the pipeline, or with ``--choose`` what a table is to do) and ``verify``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum

from headwater.choosing.requirements import QUESTIONS, BadRows, Budget, Guarantee, Processing, Source
from headwater.contract.arguments import Parser, add_project_arguments
from headwater.contract.moments import count
from headwater.definitions.intervals import read_duration

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def add_advise_arguments(parser: Parser) -> None:
    """The pipeline's folder, or the answers to the questions."""
    add_project_arguments(parser, optional=True)
    what = "say which kind of table, trigger, output mode and watermark fit; asks on a terminal what no option answers"
    parser.add_argument("--choose", action="store_true", help=what)
    for question in QUESTIONS:
        parser.add_argument(
            f"--{question.option}", type=READERS[question.option], metavar="ANSWER", help=f"{question.text} ({question.answers})"
        )  # fmt: skip


def add_verify_arguments(parser: Parser) -> None:
    """How strict the exit code is."""
    add_project_arguments(parser)
    parser.add_argument("--strict", action="store_true", help="what can't be known counts as failed")


def _one_of(kind: type[StrEnum]) -> Callable[[str], StrEnum]:
    def read(text: str) -> StrEnum:
        try:
            return kind(text.strip().lower())
        except ValueError:
            known = ", ".join(kind)
            raise argparse.ArgumentTypeError(f"{text!r} is not one of: {known}") from None

    return read


def _length(text: str) -> timedelta:
    length = read_duration(text)
    if length is None or length <= timedelta(0):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a length of time such as 30 seconds, 5 minutes, 1 day"
        )
    return length


def _bytes(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None or not float(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 512MB, 4GB")
    return int(float(match[1]) * _UNITS[match[2].lower()])


READERS: dict[str, Callable[[str], object]] = {
    "source": _one_of(Source),
    "processing": _one_of(Processing),
    "latency": _length,
    "volume": count,
    "late-data": _length,
    "memory": _bytes,
    "guarantee": _one_of(Guarantee),
    "bad-rows": _one_of(BadRows),
    "budget": _one_of(Budget),
}
