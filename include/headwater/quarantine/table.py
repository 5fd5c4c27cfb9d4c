"""Queries over a quarantine table, and marks on its rows, by delta-rs: no JVM. Semantics: docs/expectations.md.

Decision 0065.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from headwater.delta_log.conditions import log_unreadable, words_of
from headwater.delta_log.table_history import table_exists
from headwater.errors import StorageFailed, UnknownQuarantinedRow
from headwater.quarantine import columns as c
from headwater.quarantine.columns import RowStatus
from headwater.storage.delta_tables import delta_errors, delta_table
from headwater.storage.place import Place

if TYPE_CHECKING:
    from deltalake import WriterProperties

# Whatever version of Headwater made it.
_ALWAYS_THERE = {c.REASON, c.ID, c.RULES, c.FLOW, c.BATCH, c.ROW, c.STATUS}


@dataclass(frozen=True)
class RowFilter:
    """Which rows: by ``ids`` (or their beginnings), ``flow``, ``rule`` or ``status``; all of them where nothing is said."""

    ids: tuple[str, ...] = ()
    flow: str | None = None
    rule: str | None = None
    status: RowStatus | None = None

    @property
    def where(self) -> str:
        """The condition in SQL, as delta-rs and Spark both read it."""
        parts = [f"{c.STATUS} = {literal(self.status)}"] if self.status else []
        parts += [f"{c.FLOW} = {literal(self.flow)}"] if self.flow else []
        parts += [f"array_contains({c.RULES}, {literal(self.rule)})"] if self.rule else []
        if self.ids:
            beginnings = " OR ".join(f"substr({c.ID}, 1, {len(text)}) = {literal(text)}" for text in self.ids)
            parts.append(f"({beginnings})")
        return " AND ".join(parts) or "true"


@dataclass(frozen=True)
class RuleSummary:
    """How many rows a quarantine table has for one combination of broken rules. Times are UTC."""

    reason: str
    flow: str
    status: str
    rows: int
    first: datetime | None
    last: datetime | None


def is_quarantine(table: Place) -> bool:
    """Whether this is a quarantine, and not a user's table that happens to have such a name."""
    if not table_exists(table):
        return False

    return {field.name for field in delta_table(table).schema().fields} >= _ALWAYS_THERE


def summaries(table: Place) -> list[RuleSummary]:
    """Counts by reason, flow and status; empty where there is no table yet."""
    groups = _query(
        table,
        f"select {c.REASON} as reason, {c.FLOW} as flow, {c.STATUS} as status, count(*) as rows, "  # noqa: S608 - our names
        f"min({c.QUARANTINED_AT}) as first, max({c.QUARANTINED_AT}) as last from q group by 1, 2, 3 order by 4 desc, 1",
    )
    return [RuleSummary(**row) for row in groups]


def held_rows(table: Place) -> int:
    """How many rows wait for a replay or a discard; raises SourceUnreachable where the table can't be read."""
    counts = _query(table, f"select count(*) as n from q where {c.STATUS} = {literal(RowStatus.HELD)}")  # noqa: S608
    return int(counts[0]["n"]) if counts else 0


def known_names(table: Place) -> tuple[list[str], list[str]]:
    """The flows and the rules that have rows there."""
    records = _query(table, f"select distinct {c.FLOW} as flow, {c.RULES} as rules from q")  # noqa: S608 - our names
    flows = dict.fromkeys(row["flow"] for row in records)
    return list(flows), list(dict.fromkeys(rule for row in records for rule in row["rules"] or ()))


def rows(table: Place, chosen: RowFilter, limit: int | None = None) -> list[dict[str, Any]]:
    """The newest rows that match, newest last, with the managed columns only."""
    tail = f"limit {int(limit)}" if limit is not None else ""
    named = ", ".join(c.MANAGED)
    order = f"order by {c.QUARANTINED_AT} desc, {c.OFFSET} desc, {c.ID} {tail}"
    return _query(table, f"select {named} from q where {chosen.where} {order}")[::-1]  # noqa: S608 - literals are quoted


@dataclass(frozen=True)
class Discarded:
    """Rows that one commit marked. ``at``: when, as the rows say; ``before``: it was that of an earlier call, for the same reason."""

    rows: int
    at: datetime
    before: bool = False


def discard(table: Place, chosen: RowFilter, reason: str, at: datetime | None = None) -> Discarded:
    """Mark held rows as discarded, in one commit; where that was done before, for the same reason, nothing is.

    ``at``: the moment that the rows say, of now where none is given.

    Raises:
        UnknownQuarantinedRow: where no held row matches, and none that was discarded for this reason.
        StorageFailed: the table could not be written; the same call may be made again.
    """
    waiting = RowFilter(chosen.ids, chosen.flow, chosen.rule, RowStatus.HELD)
    records = _query(table, f"select {c.ID} as id from q where {waiting.where}")  # noqa: S608 - literals are quoted
    before = None if records else _discarded_before(table, chosen, reason)
    if before is not None:
        return before
    if not records:
        raise UnknownQuarantinedRow(
            "No held row matches.",
            where=table,
            remedy="`headwater quarantine list` and `show` say what is there.",
        )
    return _mark_discarded(table, [row["id"] for row in records], reason, at or datetime.now(UTC))


def _mark_discarded(table: Place, ids: list[str], reason: str, at: datetime) -> Discarded:
    from deltalake.exceptions import DeltaError

    # delta-rs writes the condition into its log, and can't spell functions there.
    which = f"{c.ID} IN ({', '.join(map(literal, ids))})"
    now = f"to_timestamp({literal(at.isoformat())})"
    updates = {c.STATUS: literal(RowStatus.DISCARDED), c.STATUS_AT: now, c.STATUS_REASON: literal(reason)}
    # A row that is replayed meanwhile stays what it is then.
    still = f"{which} AND {c.STATUS} = {literal(RowStatus.HELD)}"
    try:
        opened = delta_table(table)
        done = opened.update(predicate=still, updates=updates, writer_properties=_without_bounds())
        return Discarded(int(done["num_updated_rows"]), at)
    except (DeltaError, OSError) as error:
        # Where a store's answer to the commit gets lost, the commit is tried again, and meets itself.
        marked = _query(table, f"select count(*) as n from q where {which} and {c.STATUS_AT} = {now}")[0]["n"]  # noqa: S608 - literals are quoted
        if marked:
            return Discarded(int(marked), at)
        raise _not_marked(error, table) from error


def marked_at(table: Place, at: datetime) -> int:
    """How many rows say that they were discarded at a moment; none where there is no table."""
    moment = f"to_timestamp({literal(at.isoformat())})"
    counts = _query(table, f"select count(*) as n from q where {c.STATUS_AT} = {moment}")  # noqa: S608 - literals are quoted
    return int(counts[0]["n"]) if counts else 0


def _not_marked(error: Exception, table: Place) -> StorageFailed:
    return StorageFailed(
        f"The rows could not be marked: {words_of(error)}",
        where=table,
        remedy="No row was changed, or another process wrote the table meanwhile. Run the same command again: what it finds done it "
        "leaves as it is.",
    )


def _discarded_before(table: Place, chosen: RowFilter, reason: str) -> Discarded | None:
    """What the last discard for a reason marked, where one that is run again, as after a kill, has nothing left to do."""
    done = RowFilter(chosen.ids, chosen.flow, chosen.rule, RowStatus.DISCARDED)
    same = f"{done.where} and {c.STATUS_REASON} = {literal(reason)}"
    last = f"select {c.STATUS_AT} as at, count(*) as n from q where {same} group by 1 order by 1 desc limit 1"  # noqa: S608 - literals are quoted
    return next((Discarded(row["n"], row["at"], before=True) for row in _query(table, last)), None)


def _without_bounds() -> WriterProperties:
    """delta-rs writes wrong bounds of NaN and of long decimals, which users' columns may have; without any, nobody passes over the file."""
    from deltalake import ColumnProperties, WriterProperties

    return WriterProperties(default_column_properties=ColumnProperties(statistics_enabled="NONE"))


def literal(value: str) -> str:
    """A text as a SQL literal."""
    return "'" + str(value).replace("'", "''") + "'"


def _query(table: Place, sql: str) -> list[dict[str, Any]]:
    if not table_exists(table):
        return []
    import pyarrow as pa
    from deltalake import QueryBuilder
    from deltalake.exceptions import DeltaError

    try:
        with delta_errors(table):
            answer = QueryBuilder().register("q", delta_table(table)).execute(sql).read_all()
    except DeltaError as error:
        raise log_unreadable(error, table) from None
    records: list[dict[str, Any]] = pa.table(answer).to_pylist()
    return records
