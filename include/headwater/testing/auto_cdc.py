"""What AUTO CDC must come to: the final rows, computed from all events at once, in plain Python.

The oracle for a flow of your own: give it every event that was ever sent, in any order, and compare with the table.
Semantics: an event of a key with a greater sequence wins; of two with the same sequence a delete wins, then the greater
payload compared column by column, NULL below all. Where nulls are ignored in type 1, each column takes the greatest
of its values of one sequence. Type 2 keeps one row per run of events that agree in the tracked columns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]
Predicate = Callable[[Row], bool | None]
Sequence = Callable[[Row], Any]
# The sequence of a snapshot's rows.
_AT, _GONE = "__at", "__gone"
# The value of a column that an event does not set.
_UNSAID: Any = object()


def expected_scd1(
    events: Iterable[Row],
    *,
    keys: Collection[str],
    sequence_by: str | Sequence,
    apply_as_deletes: Predicate | None = None,
    apply_as_truncates: Predicate | None = None,
    column_list: Collection[str] | None = None,
    except_column_list: Collection[str] = (),
    ignore_null_updates: bool | Collection[str] = False,
    columns_to_update: str | None = None,
) -> list[dict[str, Any]]:
    """The rows of a type 1 target after all ``events``, ordered by key.

    Args:
        events: every change event ever sent, as rows of the source; the order does not matter.
        keys: the key columns.
        sequence_by: the column that orders events of a key, or a function of the row.
        apply_as_deletes: whether a row is a delete; ``apply_as_truncates``: whether it is a truncate.
        column_list: the columns of the target; else all but ``except_column_list``.
        ignore_null_updates: whether (or for which columns) a null leaves the value as it was.
        columns_to_update: the column with the names of those that an event sets (None: all).
    """
    winner = _winner_by_column if ignore_null_updates or columns_to_update else _winner
    by_key, cleared = _sorted(
        events, keys, sequence_by, apply_as_deletes, apply_as_truncates, winner, columns_to_update
    )
    rows = []
    for history in by_key.values():
        alive = [(at, row) for at, row in history if cleared is None or at >= cleared]
        names = _columns(history, column_list, except_column_list)
        state: dict[str, Any] | None = None
        for _, row in alive:
            state = None if row is None else _written(state, row, names, ignore_null_updates)
        if state is not None:
            rows.append(state)
    return rows


def expected_scd2(
    events: Iterable[Row],
    *,
    keys: Collection[str],
    sequence_by: str | Sequence,
    apply_as_deletes: Predicate | None = None,
    column_list: Collection[str] | None = None,
    except_column_list: Collection[str] = (),
    ignore_null_updates: bool | Collection[str] = False,
    columns_to_update: str | None = None,
    track_history_column_list: Collection[str] | None = None,
    track_history_except_column_list: Collection[str] = (),
) -> list[dict[str, Any]]:
    """The rows of a type 2 target after all ``events``, with ``__START_AT`` and ``__END_AT``, ordered by key and start.

    Arguments as for :func:`expected_scd1`; ``track_history_*`` as for ``dp.create_auto_cdc_flow``.
    """
    winner = _winner if columns_to_update is None else _winner_that_names(columns_to_update, keys)
    by_key, _ = _sorted(events, keys, sequence_by, apply_as_deletes, None, winner)
    rows: list[dict[str, Any]] = []
    for history in by_key.values():
        names = _columns(history, column_list, except_column_list)
        tracked = (
            list(track_history_column_list)
            if track_history_column_list is not None
            else [n for n in names if n not in keys and n not in track_history_except_column_list]
        )
        current: dict[str, Any] | None = None
        for at, row in history:
            if row is None:
                if current is not None:
                    current["__END_AT"] = at
                current = None
                continue
            values = _written(current, row, names, ignore_null_updates)
            if current is not None and all(values[name] == current[name] for name in tracked):
                current.update(values)
                continue
            if current is not None:
                current["__END_AT"] = at
            current = {**values, "__START_AT": at, "__END_AT": None}
            rows.append(current)
    return rows


def expected_bitemporal(
    events: Iterable[Row],
    *,
    keys: Collection[str],
    sequence_by: str | Sequence,
    system_sequence_by: str | Sequence,
    **arguments: Any,
) -> list[dict[str, Any]]:
    """The rows of a bitemporal target after all ``events``, ordered by key, start and the time from which they were believed.

    What is believed at a time is the type 2 history of the events that are known by then; of two events of a key with one sequence
    the one that became known later counts. A row has the longest time for which it was believed.

    Args:
        system_sequence_by: the column that says since when an event is known, or a function of the row.
        arguments: as for :func:`expected_scd2`.
    """
    known = (
        (lambda row: row[system_sequence_by]) if isinstance(system_sequence_by, str) else system_sequence_by
    )
    at = (lambda row: row[sequence_by]) if isinstance(sequence_by, str) else sequence_by
    by_key: dict[Any, list[Row]] = defaultdict(list)
    for row in events:
        by_key[tuple(row[key] for key in keys)].append(row)
    result: list[dict[str, Any]] = []
    for key in sorted(by_key, key=_comparable):
        open_rows: list[dict[str, Any]] = []
        for moment in sorted({known(row) for row in by_key[key]}):
            latest: dict[Any, Any] = {}
            for row in by_key[key]:
                if known(row) <= moment:
                    latest[at(row)] = max(latest.get(at(row), known(row)), known(row))
            visible = [row for row in by_key[key] if latest.get(at(row)) == known(row)]
            belief = expected_scd2(visible, keys=keys, sequence_by=sequence_by, **arguments)
            open_rows = _believed(open_rows, belief, moment, result)
    return sorted(
        result,
        key=lambda row: (_comparable(row[key] for key in keys), row["__START_AT"], row["__SYSTEM_START_AT"]),
    )


def _believed(
    open_rows: list[dict[str, Any]], belief: list[dict[str, Any]], moment: Any, result: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The rows that are believed from a moment on: those that are no longer end, new ones begin."""
    rest = list(belief)
    staying = []
    for row in open_rows:
        values = {name: value for name, value in row.items() if not name.startswith("__SYSTEM_")}
        if values in rest:
            rest.remove(values)
            staying.append(row)
        else:
            row["__SYSTEM_END_AT"] = moment
    begun = [{**row, "__SYSTEM_START_AT": moment, "__SYSTEM_END_AT": None} for row in rest]
    result += begun
    return [*staying, *begun]


def expected_from_snapshots(
    snapshots: Iterable[tuple[Any, Iterable[Row]]],
    *,
    keys: Collection[str],
    stored_as_scd_type: int = 1,
    track_history_column_list: Collection[str] | None = None,
    track_history_except_column_list: Collection[str] = (),
) -> list[dict[str, Any]]:
    """The rows of a target that followed ``snapshots``, ordered by key (and start).

    Args:
        snapshots: (version, rows) of each snapshot, in the order of their versions.
        stored_as_scd_type: 1 or 2.

    The other arguments are as for :func:`expected_scd2`.
    """
    events: list[dict[str, Any]] = []
    rows: dict[Any, Row] = {}
    for version, state in snapshots:
        before, rows = rows, {tuple(row[key] for key in keys): row for row in state}
        gone = [row for key, row in before.items() if key not in rows]
        events += [{**row, _AT: version, _GONE: False} for row in rows.values()]
        events += [{**row, _AT: version, _GONE: True} for row in gone]
    if stored_as_scd_type == 1:
        return [dict(rows[key]) for key in sorted(rows, key=_comparable)]
    return expected_scd2(
        events,
        keys=keys,
        sequence_by=_AT,
        apply_as_deletes=lambda row: bool(row[_GONE]),
        except_column_list=(_AT, _GONE),
        track_history_column_list=track_history_column_list,
        track_history_except_column_list=track_history_except_column_list,
    )


def _sorted(
    events: Iterable[Row],
    keys: Collection[str],
    sequence_by: str | Sequence,
    is_delete: Predicate | None,
    is_truncate: Predicate | None,
    winner: Callable[[list[Row | None]], Row | None],
    selecting: str | None = None,
) -> tuple[dict[Any, list[tuple[Any, Row | None]]], Any]:
    """For each key its events, oldest first, one per sequence (a delete is None); and the last truncate."""
    sequence: Sequence = (lambda row: row[sequence_by]) if isinstance(sequence_by, str) else sequence_by
    by_key: dict[Any, dict[Any, list[Row | None]]] = defaultdict(lambda: defaultdict(list))
    cleared = None
    for row in events:
        at = sequence(row)
        if is_truncate is not None and is_truncate(row):
            cleared = at if cleared is None else max(cleared, at)
            continue
        deleted = is_delete is not None and is_delete(row)
        by_key[tuple(row[key] for key in keys)][at].append(None if deleted else _said(row, selecting, keys))
    ordered = sorted(by_key.items(), key=lambda item: _comparable(item[0]))
    return {
        key: [(at, winner(same)) for at, same in sorted(events.items())] for key, events in ordered
    }, cleared


def _names(row: Row, selecting: str) -> list[str] | None:
    """What an event names, as columns are compared: case makes no difference."""
    names = row[selecting]
    return None if names is None else [name.lower() for name in names if name is not None]


def _said(row: Row, selecting: str | None, keys: Collection[str]) -> Row:
    """An event without the columns that it does not set."""
    if selecting is None:
        return row
    chosen = _names(row, selecting)
    values = {name: value for name, value in row.items() if name != selecting}
    return {
        n: v if chosen is None or n in keys or n.lower() in chosen else _UNSAID for n, v in values.items()
    }


def _winner(same: list[Row | None]) -> Row | None:
    rows = [row for row in same if row is not None]
    return max(rows, key=lambda row: _comparable(row.values())) if len(rows) == len(same) else None


def _winner_that_names(selecting: str, keys: Collection[str]) -> Callable[[list[Row | None]], Row | None]:
    def winner(same: list[Row | None]) -> Row | None:
        # What an event names is compared last.
        rows = [
            row and {**{n: row[n] for n in row if n != selecting}, selecting: _names(row, selecting)}
            for row in same
        ]
        winning = _winner(rows)
        return None if winning is None else _said(winning, selecting, keys)

    return winner


def _winner_by_column(same: list[Row | None]) -> Row | None:
    rows = [row for row in same if row is not None]
    if len(rows) < len(same):
        return None
    said = {name: [row[name] for row in rows if row[name] is not _UNSAID] for name in rows[0]}
    return {
        name: max(values, key=lambda value: _comparable([value]), default=_UNSAID)
        for name, values in said.items()
    }


def _comparable(values: Iterable[Any]) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is not None, value) for value in values)


def _columns(
    history: list[tuple[Any, Row | None]], chosen: Collection[str] | None, left_out: Collection[str]
) -> list[str]:
    sample = next((row for _, row in history if row is not None), {})
    return list(chosen) if chosen is not None else [name for name in sample if name not in left_out]


def _written(
    state: Mapping[str, Any] | None, row: Row, names: list[str], ignore_nulls: bool | Collection[str]
) -> dict[str, Any]:
    def value(name: str) -> Any:
        ignored = ignore_nulls if isinstance(ignore_nulls, bool) else name in ignore_nulls
        if row[name] is _UNSAID or (row[name] is None and ignored):
            return None if state is None else state[name]
        return row[name]

    return {name: value(name) for name in names}
