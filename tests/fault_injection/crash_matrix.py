"""The crash points of a micro-batch, times the kinds of flows: each cell is a place where a driver is killed.

The numbers are those of the list that the tests go by: 1 to 5, 7 and 8 are the steps of a batch (offsets, files, commits of
one table and the next, the mark that it is done), 6 and 14 a merge, 9 state, 10 a checkpoint of Delta's log, 11 a
compaction meanwhile, 12 other drivers beside, 13 a driver whose Python process alone is killed, 15 a full refresh, 16 a backfill.
That a backfill and a stream write at once has tests of its own (test_backfills_beside_a_live_stream).

Decision 0097.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from contextlib import redirect_stdout
from itertools import chain

from deltalake import DeltaTable
from tests.fault_injection.stops import Stop
from tests.pipeline_case import PipelineCase

from headwater.commands.command_line import main
from headwater_spark.execution.schedule import MAX_CONCURRENT_FLOWS

KINDS = {
    "bronze": "append",
    "judged": "quarantine",
    "latest": "auto_cdc_1",
    "history": "auto_cdc_2",
    "standings": "materialized_view",
    "outbox": "kafka",
}
STREAMS = ("bronze", "judged", "latest", "history", "outbox")
TABLES = ("bronze", "judged", "latest", "history", "standings")
# What an update of each kind has to run: the fewer flows, the sooner its driver stands where it is wanted.
_TABLES_OF_KIND = {
    "append": ("bronze",),
    "quarantine": ("bronze", "judged"),
    "aggregate": ("bronze", "running"),
    "auto_cdc_1": ("bronze", "doubled", "latest"),
    "auto_cdc_2": ("bronze", "doubled", "history"),
    "materialized_view": ("bronze", "doubled", "standings"),
    "kafka": ("bronze", "outbox"),
}
LOG = r"/_delta_log/\d+\.json$"
# Where a driver stands while others are started.
BESIDE_OTHERS = Stop(12, "append", "writing", r"/checkpoints/bronze/\w+/\d+/commits/\d+$")


def matrix(*, kafka: bool) -> list[Stop]:
    """Every cell; those of the sink only where there is a broker."""
    cells = chain(
        _batches(), _commits(), _state_and_log(), _compactions(), _drivers(), _resets(), _backfills()
    )
    return [cell for cell in cells if kafka or cell.kind != "kafka"]


def kills(cells: Sequence[Stop]) -> list[tuple[Stop, ...]]:
    """Which cells one kill serves: flows that don't read each other stand still side by side, each at its own point.

    All wait for ``bronze``, which therefore stands by itself; resets and backfills go table by table.
    """
    chosen: list[tuple[Stop, ...]] = []
    beside: dict[bool, dict[str, list[Stop]]] = {False: {}, True: {}}
    for cell in cells:
        if cell.kind == "append" or cell.arguments or cell.backfill is not None:
            chosen.append((cell,))
        else:
            beside[cell.alone].setdefault(cell.kind, []).append(cell)
    for by_kind in beside.values():
        while any(by_kind.values()):
            longest = sorted(by_kind.values(), key=len, reverse=True)[:MAX_CONCURRENT_FLOWS]
            chosen.append(tuple(left.pop() for left in longest if left))
    return chosen


def tables_of(cells: Sequence[Stop]) -> str:
    """The tables that lead to these cells."""
    return ",".join(dict.fromkeys(table for cell in cells for table in _TABLES_OF_KIND[cell.kind]))


def _batches() -> list[Stop]:
    stops = []
    for name in STREAMS:
        kind, folder = KINDS[name], rf"/checkpoints/{name}/\w+/\d+"
        offsets, commits = rf"{folder}/offsets/\d+$", rf"{folder}/commits/\d+$"
        # Rows of a torn batch reach Kafka again, so somebody has to say that they may.
        say_so = {"afterwards": send_again} if name == "outbox" else {}
        stops += [
            Stop(1, kind, "writing", offsets),
            Stop(2, kind, "written", offsets),
            Stop(7, kind, "writing", commits),
            Stop(8, kind, "torn", commits, **say_so),
        ]
    return stops


def _commits() -> list[Stop]:
    stops = [
        Stop(3, "quarantine", "writing", rf"/judged_quarantine{LOG}"),
        Stop(4, "quarantine", "written", rf"/judged_quarantine{LOG}"),
    ]
    for name in TABLES:
        merged = name in ("latest", "history")
        # Before the table, the quarantine has been written; a merge closes and opens rows in one commit.
        before = {"judged": 4, "latest": 6, "history": 14}.get(name, 3)
        stops += [
            Stop(before, KINDS[name], "writing", rf"/shop/{name}{LOG}"),
            Stop(5, KINDS[name], "written", rf"/shop/{name}{LOG}"),
        ]
        if merged:
            memory = rf"/auto_cdc/{name}/events{LOG}"
            stops += [
                Stop(3, KINDS[name], "writing", memory),
                Stop(4, KINDS[name], "written", memory),
            ]
    return stops


def _state_and_log() -> list[Stop]:
    stops = [Stop(9, "aggregate", "written", r"/checkpoints/running/\w+/\d+/state/\d+/\d+/\d+\.\w+$")]
    pointer = r"/shop/{}/_delta_log/_last_checkpoint$"
    for moment in ("writing", "written"):
        stops += [Stop(10, KINDS[name], moment, pointer.format(name)) for name in TABLES]
    return stops


def _compactions() -> list[Stop]:
    return [
        Stop(
            11,
            KINDS[name],
            "written",
            rf"/checkpoints/{name}/\w+/\d+/offsets/\d+$",
            meanwhile=lambda case, name=name: compact(case, name),  # type: ignore[misc]
        )
        for name in ("bronze", "judged")
    ]


def _drivers() -> list[Stop]:
    return [Stop(13, KINDS[name], "writing", rf"/shop/{name}{LOG}", alone=True) for name in TABLES]


def _resets() -> list[Stop]:
    return [
        Stop(15, KINDS[name], moment, rf"/shop/{name}{LOG}", (wanted,))
        for name in TABLES
        for wanted in ["--full-refresh-all" if name == "bronze" else f"--full-refresh={name}"]
        for moment in ("writing", "written")
    ]


def _backfills() -> list[Stop]:
    def last_version(case: PipelineCase, name: str) -> tuple[str, ...]:
        version = str(case.version("doubled"))
        return (f"--tables={name}", "--range=version", f"--from={version}", f"--to={version}")

    # What is merged by key and sequence is the same however often it comes, and with it what the stream writes.
    return [
        Stop(
            16,
            KINDS[name],
            moment,
            rf"/shop/{name}{LOG}",
            backfill=lambda case, n=name: last_version(case, n),
        )  # type: ignore[misc]
        for name in ("latest", "history")
        for moment in ("writing", "written")
    ]


def compact(case: PipelineCase, name: str) -> None:
    """Compact a table; where nothing reads it, take away what the compaction left over at once."""
    table = DeltaTable(str(case.table(name)))
    table.optimize.compact()
    if name != "bronze":
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def send_again(case: PipelineCase) -> None:
    """Carry out the remedy that a sink's torn mark asks for."""
    shown = io.StringIO()
    arguments = [str(case.folder), "send", "--action=mend", "--yes", "--json"]
    roots = [f"--storage={case.storage}", f"--warehouse={case.warehouse}"]
    with redirect_stdout(shown):
        code = main(["repair", *arguments, *roots])
    answer = json.loads(shown.getvalue().splitlines()[-1])
    assert (code, answer["state"]) == (0, "COMPLETED"), answer
