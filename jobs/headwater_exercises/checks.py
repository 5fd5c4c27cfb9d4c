"""What an answer to an exercise has to show: each check is a line with what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from headwater.checkpoints.offsets import committed_offsets
from headwater_exercises.workbench import Workbench, plan_of


class AnswerWrong(AssertionError):
    """Checks of an exercise have failed; the message names them."""


@dataclass(frozen=True)
class Line:
    """One check: whether it holds, what it asks, and what was measured."""

    holds: bool
    asks: str
    measured: object

    def __str__(self) -> str:
        return f"{'ok   ' if self.holds else 'WRONG'} {self.asks}: {self.measured}"


def check(number: int, bench: Workbench, **functions: Callable[..., Any]) -> None:
    """Check the answer to an exercise, after its updates, and print a line for each check.

    Args:
        number: of the exercise.
        bench: where its pipeline ran.
        functions: functions of the answer that are looked at by themselves.

    Raises:
        AnswerWrong: a check does not hold.

    """
    lines = list(_CHECKS[number](bench, **functions))
    for line in lines:
        print(line)
    wrong = [line for line in lines if not line.holds]
    if wrong:
        raise AnswerWrong(
            f"{len(wrong)} of {len(lines)} checks of exercise {number} failed:\n" + "\n".join(map(str, wrong))
        )
    print(f"Exercise {number} is done.")


def _basic(bench: Workbench) -> Iterator[Line]:
    rows = bench.rows("clicks")
    ids = sorted(row["event_id"] for row in rows)
    yield Line(ids == ["e1", "e3", "e4"], "only the clicks are there, each once", ids)
    columns = list(rows[0]) if rows else []
    yield Line(columns == ["event_id", "user_id", "event_timestamp"], "with three columns", columns)
    read = [batch.rows for batch in bench.batches("clicks")]
    yield Line(
        read == [3, 2], "each update reads what is new, and one without news has no batch; rows read", read
    )
    parts = sorted(
        path.name for path in bench.checkpoint("clicks").iterdir() if not path.name.startswith(".")
    )
    yield Line(
        {"commits", "metadata", "offsets"} <= set(parts),
        "the checkpoint was made for you; it has",
        ", ".join(parts),
    )
    position = committed_offsets(bench.checkpoint("clicks"))
    yield Line(
        position is not None and '"reservoirVersion":2' in (position.sources[0] or ""),
        "and says which version of the source comes next",
        position.sources[0] if position else None,
    )


def _watermarks(bench: Workbench) -> Iterator[Line]:
    delays = (0, 60, 180)
    late = [sum(batch.late_rows for batch in bench.batches(f"after_{delay}_minutes")) for delay in delays]
    state = [bench.batches(f"after_{delay}_minutes")[-1].state_rows or 0 for delay in delays]
    yield Line(late == [6, 3, 0], "events left out, by delay", dict(zip(delays, late, strict=True)))
    yield Line(
        state[0] < state[1] < state[2],
        "a longer delay keeps more in the state; its rows at the end",
        dict(zip(delays, state, strict=True)),
    )
    for delay, left_out in zip(delays, (6, 3, 0), strict=True):
        newest = datetime(2026, 1, 1, 18, 20, tzinfo=UTC).timestamp() - 60 * delay
        rows = bench.rows(f"after_{delay}_minutes")
        closed = all(row["window_start"].timestamp() + 1800 <= newest for row in rows)
        counted = sum(row["events"] for row in rows)
        yield Line(
            closed and 0 < counted <= 15 - left_out,
            f"with {delay} minutes only closed windows are written; events in them",
            counted,
        )


def _enrichment(
    bench: Workbench, with_users: Callable[..., Any], with_users_sent: Callable[..., Any]
) -> Iterator[Line]:
    events, users = bench.table("raw.events"), bench.table("raw.users")
    bench.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        shuffled, sent = plan_of(with_users(events, users)), plan_of(with_users_sent(events, users))
    finally:
        bench.spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    yield Line(
        "SortMergeJoin" in shuffled or "ShuffledHashJoin" in shuffled,
        "without a hint both sides are shuffled",
        _joins(shuffled),
    )
    yield Line("BroadcastHashJoin" in sent, "with it the dimension is broadcast", _joins(sent))
    rows = [sorted(map(str, bench.rows(name))) for name in ("shuffled", "sent")]
    yield Line(rows[0] == rows[1], "both give the same rows", len(rows[0]))
    unknown = sum(row["user_name"] is None for row in bench.rows("sent"))
    yield Line(
        (len(rows[0]), unknown) == (300, 30),
        "every event is there, also those of unknown users",
        f"{unknown} without a name",
    )
    slow, fast = bench.seconds("shuffled"), bench.seconds("sent")
    yield Line(fast < slow, "a batch is faster with it", f"{slow:.2f} s and {fast:.2f} s")


def _joins(plan: str) -> str:
    return ", ".join(sorted({word.strip("+-:()") for word in plan.split() if word.endswith("Join")}))


def _duplicates(bench: Workbench) -> Iterator[Line]:
    for name in ("kept_for_ever", "forgotten_in_time"):
        ids = [row["event_id"] for row in bench.rows(name)]
        yield Line(len(ids) == len(set(ids)) == 50, f"{name} has each event once", f"{len(ids)} rows")
        read = sum(batch.rows for batch in bench.batches(name))
        yield Line(
            read - len(ids) == 23, "all duplicates were removed", f"{read - len(ids)} of 23, {read} rows read"
        )
    state = {
        name: [batch.state_rows or 0 for batch in bench.batches(name)]
        for name in ("kept_for_ever", "forgotten_in_time")
    }
    growing, bounded = state["kept_for_ever"], state["forgotten_in_time"]
    yield Line(growing == [10, 20, 30, 40, 50], "the state of the one grows with every event", growing)
    yield Line(max(bounded[3:]) <= max(bounded[:3]), "that of the other does not", bounded)


def _sessions(bench: Workbench) -> Iterator[Line]:
    rows = sorted(bench.rows("user_sessions"), key=lambda row: (row["user_id"], row["session_start"]))
    given = [(row["user_id"], row["duration_minutes"], row["page_views"], row["pages"]) for row in rows]
    expected = [("u1", 45, 2, 2), ("u1", 0, 1, 1), ("u2", 0, 1, 1)]
    yield Line(given == expected, "user, minutes, page views, pages of each session that is over", given)
    starts = [f"{row['session_start']:%H:%M}" for row in rows]
    yield Line(
        starts == ["10:00", "11:30", "10:20"],
        "a gap of 45 minutes ends a session, one of 25 does not; starts",
        starts,
    )
    yield Line(
        all(row["user_id"] != "u9" for row in rows), "a session that may go on is not written", len(rows)
    )


def _tuning(bench: Workbench) -> Iterator[Line]:
    rows = [sorted(map(str, bench.rows(name))) for name in ("slow", "tuned")]
    yield Line(rows[0] == rows[1] != [], "both give the same rows", len(rows[0]))
    seconds = [sum(batch.seconds for batch in bench.batches(name)) for name in ("slow", "tuned")]
    yield Line(
        seconds[1] * 3 <= seconds[0],
        "a third of the time, or less",
        f"{seconds[0]:.2f} s and {seconds[1]:.2f} s",
    )
    parts: dict[str, float] = {}
    for batch in bench.batches("slow"):
        for name, value in batch.phases.items():
            if name != "triggerExecution":  # the whole of it
                parts[name] = parts.get(name, 0) + value
    first = max(parts, key=lambda name: parts[name])
    yield Line(first == "addBatch", "most of its time goes into", f"{first}, {parts[first]:.2f} s")


_CHECKS: dict[int, Callable[..., Iterator[Line]]] = {
    1: _basic,
    2: _watermarks,
    3: _enrichment,
    4: _duplicates,
    5: _sessions,
    6: _tuning,
}
