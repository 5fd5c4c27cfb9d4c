"""The form of a triggered run, and the selection parsed from it: anybody may post anything, so it is checked again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow.sdk import Param

from headwater.definitions.names import NAME_PATTERN, check_dotted_name, check_name
from headwater.errors import InvalidName

_NAME = NAME_PATTERN.pattern
# ``[catalog.][schema.]table``.
QUALIFIED = rf"^{_NAME}(\.{_NAME}){{0,2}}$"
_DOTTED = rf"^{_NAME}(\.{_NAME})*$"


@dataclass(frozen=True)
class Selection:
    """The requested part of a pipeline; empty: all of it, incrementally."""

    tables: tuple[str, ...] = ()
    full_refresh: tuple[str, ...] = ()
    full_refresh_all: bool = False
    flows: tuple[str, ...] = ()
    reset_checkpoint: tuple[str, ...] = ()
    refresh_failed: bool = False

    def __bool__(self) -> bool:
        return bool(self.tables or self.full_refresh or self.full_refresh_all or self.of_the_whole)

    @property
    def of_the_whole(self) -> bool:
        """Whether it names what only an update of the whole pipeline can take: flows, or what failed."""
        return bool(self.flows or self.reset_checkpoint or self.refresh_failed)

    def arguments(self) -> list[str]:
        """The selection as arguments of ``headwater run``."""
        argv: list[str] = []
        if self.tables:
            argv += ["--tables", ",".join(self.tables)]
        if self.full_refresh_all:
            argv.append("--full-refresh-all")
        elif self.full_refresh:
            argv += ["--full-refresh", ",".join(self.full_refresh)]
        if self.flows:
            argv += ["--flows", ",".join(self.flows)]
        if self.reset_checkpoint:
            argv += ["--reset-checkpoint", ",".join(self.reset_checkpoint)]
        return [*argv, "--refresh-failed"] if self.refresh_failed else argv


def table_params(datasets: Sequence[str]) -> dict[str, Param]:
    """The fields of the form that name tables; ``datasets`` are offered for choosing."""
    names = {"type": "array", "items": {"type": "string", "pattern": QUALIFIED}}
    if datasets:
        names["examples"] = list(datasets)
    return {
        "tables": Param([], title="Only these tables", description="None chosen: all.", **names),
        "full_refresh": Param(
            [],
            title="Refresh from scratch",
            description="These tables are emptied and refilled from all that their sources still hold.",
            **names,
        ),
    }


def selection_params(datasets: Sequence[str]) -> dict[str, Param]:
    """The fields of the form of an update; ``datasets`` are offered for choosing."""
    return {
        **table_params(datasets),
        "full_refresh_all": Param(
            False,
            type="boolean",
            title="Refresh all from scratch",
            description="Every table is emptied and refilled from all that the sources still hold.",
        ),
    }


def flow_params(flows: Sequence[str]) -> dict[str, Param]:
    """Further fields, where one task runs the whole update; ``flows`` are offered for choosing."""
    names = {"type": "array", "items": {"type": "string", "pattern": _DOTTED}}
    if flows:
        names["examples"] = list(flows)
    return {
        "flows": Param(
            [], title="Only these flows", description="Others of their tables do not run.", **names
        ),
        "reset_checkpoint": Param(
            [],
            title="Reset checkpoints",
            description="These flows read their sources from the beginning, and their tables keep their rows: rows may double.",
            **names,
        ),
        "refresh_failed": Param(
            False,
            type="boolean",
            title="Refresh what failed",
            description="What did not complete in the last update, and what reads it. Leave the other fields as they are.",
        ),
    }


def maintenance_params(tables: Sequence[str]) -> dict[str, Param]:
    """The fields of the form of maintenance; ``tables`` are offered for choosing."""
    span = {"type": ["null", "string"], "pattern": r"^\s*\d+(\.\d+)?\s*[A-Za-z]+\s*$"}
    return {
        "dry_run": Param(
            False, type="boolean", title="Dry run", description="Only show what is due, in the log of `plan`."
        ),
        "tables": table_params(tables)["tables"],
        "retention": Param(
            None,
            title="Keep removed files for",
            description="`7 days`, `0 hours`; else what pipeline.yml or the table says. What a reader needs stays in any case.",
            **span,
        ),
        "keep": Param(
            None,
            title="Keep old epochs and copies for",
            description="`30 days`; else what pipeline.yml says.",
            **span,
        ),
    }


def read_selection(params: Mapping[str, Any], only: Sequence[str] = ()) -> Selection:
    """The selection in a run's parameters; ``only``: the tables of a task that runs no others.

    Raises:
        InvalidName: if a value is not a list of plain names.

    """
    tables = _names(params, "tables")
    refresh = _names(params, "full_refresh")
    if only:
        tables, refresh = tuple(only), tuple(name for name in refresh if name in only)
    everything, failed = _switch(params, "full_refresh_all"), _switch(params, "refresh_failed")
    flows, resets = _flows(params, "flows"), _flows(params, "reset_checkpoint")
    chosen = Selection(tables, refresh, everything, flows, resets, failed)
    if only and (chosen.of_the_whole or everything):
        raise InvalidName(
            "A submit for each table can't take flows, resets of checkpoints or what failed, nor refresh all: each would refresh all.",
            where="tasks: per_table",
            remedy="Run it by hand: `headwater run`, or with `tasks: watched`.",
        )
    if everything and (tables or flows):
        raise InvalidName(
            "Every table is to be emptied and refilled, and some are named, too.",
            where="full_refresh_all",
            remedy="To refill some tables name them in full_refresh; to refill all leave `tables` and `flows` empty.",
        )
    if failed and (tables or refresh or everything or flows or resets):
        raise InvalidName(
            "What failed chooses the tables, and others are named, too.",
            where="refresh_failed",
            remedy="Leave one of them out.",
        )
    return chosen


def _switch(params: Mapping[str, Any], key: str) -> bool:
    value = params.get(key, False)
    if not isinstance(value, bool):
        raise InvalidName(f"{value!r} is neither true nor false.", where=key)
    return value


def _flows(params: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = params.get(key) or []
    if not isinstance(value, list | tuple):
        raise InvalidName(f"{value!r} is not a list of names.", where=key, remedy="Give a JSON list.")
    return tuple(check_dotted_name(name, "flow", key) for name in value)


def _names(params: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = params.get(key) or []
    if not isinstance(value, list | tuple):
        raise InvalidName(f"{value!r} is not a list of names.", where=key, remedy="Give a JSON list.")
    for name in value:
        for part in str(name).split(".") if isinstance(name, str) else [name]:
            check_name(part, "dataset", key)
    return tuple(value)
