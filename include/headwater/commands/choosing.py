"""``advise --choose``: questions about a table, and what fits the answers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from headwater.choosing.choice import Choice, choose
from headwater.choosing.requirements import QUESTIONS, Question, Requirements
from headwater.commands.advice_arguments import READERS
from headwater.contract.printing import print_json
from headwater.errors import UsageError


def show_choice(parsed: argparse.Namespace, *, as_json: bool) -> int:
    """Print what fits the options; on a terminal the rest is asked for, else it is assumed, and said."""
    if parsed.pipeline is not None:
        raise UsageError(
            "--choose is about a table to come: it takes no pipeline.", remedy="Leave the folder out."
        )
    given = {question.option: getattr(parsed, _field(question)) for question in QUESTIONS}
    if sys.stdin.isatty() and not as_json:
        given = {question.option: given[question.option] or _ask(question) for question in QUESTIONS}
    needs = _requirements(given)
    choice = choose(needs)
    assumed = [option for option, value in given.items() if value is None]
    if as_json:
        print_json({"requirements": _answers(needs), "assumed": assumed, "choice": choice.as_dict()})
        return 0
    if assumed:
        answers = _answers(needs)
        print(f"Assumed: {', '.join(f'--{option} {answers[option]!r}' for option in assumed)}")
    _show(choice)
    return 0


def _show(choice: Choice) -> None:
    lines = {
        "workload": choice.workload,
        "table": f"{choice.table}: {choice.declaration}",
        "pipeline.yml": choice.trigger,
        "output mode": choice.output_mode,
        "watermark": choice.watermark or "none",
        "limit": choice.limit or "none",
        "rules": choice.rule,
    }
    for name, text in lines.items():
        first, *rest = text.split("\n")
        print(f"{name:<13} {first}")
        for line in rest:
            print(f"{'':<13} {line}")
    print("\nWhy:")
    for reason in choice.reasons:
        print(f"- {reason}")


def _requirements(given: Mapping[str, object]) -> Requirements:
    chosen = {option.replace("-", "_"): value for option, value in given.items() if value is not None}
    return replace(Requirements(), **chosen)  # type: ignore[arg-type]  # each reader gives its field's type


def _ask(question: Question) -> object:
    default = _answers(Requirements())[question.option]
    while True:
        answer = input(f"{question.text} [{question.answers}] ({default}) ").strip()
        if not answer:
            return None
        try:
            return READERS[question.option](answer)
        except argparse.ArgumentTypeError as error:
            print(error)


def _answers(needs: Requirements) -> dict[str, str]:
    """The requirements as options take them."""
    return {question.option: _text(getattr(needs, _field(question))) for question in QUESTIONS}


def _text(value: object) -> str:
    return f"{value.total_seconds():g} seconds" if isinstance(value, timedelta) else str(value)


def _field(question: Question) -> str:
    return question.option.replace("-", "_")
