"""Spark's offset log, its log of finished batches, and the file with the query's id."""

from __future__ import annotations

import json
from collections.abc import Iterator

from headwater.checkpoints.conditions import (
    CommitsDamaged,
    MetadataLost,
    OffsetsDamaged,
    OffsetsLost,
    OffsetsTooNew,
)
from headwater.checkpoints.log_entries import (
    EntryFault,
    fault_of,
    put_aside,
    put_back,
    remains,
    rewrite_commit,
)
from headwater.checkpoints.offsets import query_id, read_offsets
from headwater.delta_log.table_history import flow_commits
from headwater.errors import CheckpointUnreadable
from headwater.files.json_lines import lines_of
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.sink_checks import last_remedy, write_metadata
from headwater.storage.object_path import ObjectPath
from headwater.storage.walking import in_order

_REPAIRS = (Repair.RESTORE, Repair.REBUILD, Repair.FULL_REFRESH)


def metadata_was_lost(start: FlowStart) -> Iterator[Damage]:
    """Without the query id Spark refuses to start; with a wrong one Delta would take a batch twice."""
    if not start.planned:
        return
    try:
        if query_id(start.folder) is not None:
            return
    except CheckpointUnreadable:
        pass
    file = start.folder / "metadata"
    recorded = start.state.query_id
    written = {
        commit.transaction[0]
        for commit in (flow_commits(start.table, *start.identity.names) if start.table else ())
        if commit.epoch == start.state.epoch and commit.transaction is not None
    } - {start.application}
    candidates = written or ({recorded} if recorded else set())
    agreed = (
        next(iter(candidates))
        if len(candidates) == 1 and (recorded is None or recorded in candidates)
        else None
    )

    def mend() -> str:
        assert agreed is not None
        write_metadata(start, agreed)
        return f"the lost query id was written back: {agreed}"

    yield Damage(
        MetadataLost(
            f"The file with the query id of {start.flow!r} is gone or damaged.",
            where=file,
            remedy=f"The next start writes it back: the id is {agreed}."
            if agreed
            else start.restoring(f"rebuild the position: {start.command('rebuild')}"),
        ),
        (
            f"recorded with the flow: {recorded or 'none'}",
            f"in the table's log: {', '.join(written) or 'none'}",
        ),
        (Repair.MEND,) if agreed else _REPAIRS,
        mend if agreed else None,
    )


def last_mark_is_damaged(start: FlowStart) -> Iterator[Damage]:
    """Spark refuses to start with an empty or truncated mark; the batch that it marked can be repeated."""
    batch = max(start.committed, default=None)
    if batch is None or (fault := fault_of(start.folder / "commits" / str(batch))) is None:
        return
    file = start.folder / "commits" / str(batch)
    later = batch < max(start.planned, default=-1)
    recorded = not later and _is_recorded(start, batch)

    def mend() -> str:
        if later or recorded:
            rewrite_commit(start.folder, batch, batch + int(later))
            origin = f"what batch {batch + 1} began with" if later else "the event log, which has the batch"
            return f"the damaged mark of batch {batch} was rewritten from {origin}"
        put_aside(file)
        again = "the table has it already" if start.repeatable else "its rows reach the sink a second time"
        return f"the damaged mark of batch {batch} was put aside; the batch comes again, and {again}"

    safe = later or recorded or (start.repeatable and batch in start.planned)
    comes = "" if later or recorded else ": the batch comes again and changes nothing"
    yield Damage(
        CommitsDamaged(
            f"The mark that batch {batch} of {start.flow!r} is done is damaged: {fault.description}.",
            where=file,
            remedy=f"The next start repairs it{comes}."
            if safe
            else f"Let the batch come again: {start.command('mend')}. Its rows reach the sink a second time.",
        ),
        (fault.description, f"last planned batch: {max(start.planned, default=None)}"),
        (Repair.MEND, Repair.RESTORE),
        mend,
        unasked=safe,
    )


def last_mark_was_lost(start: FlowStart) -> Iterator[Damage]:
    """A batch whose mark is gone is repeated. A table skips it; another target would get its rows a second time."""
    batch = max(start.planned, default=None)
    if batch is None or batch in start.committed or not _is_recorded(start, batch):
        return

    def mend() -> str:
        rewrite_commit(start.folder, batch, batch)
        return f"the lost mark of batch {batch} was written back: the event log has the batch"

    yield Damage(
        CommitsDamaged(
            f"The mark that batch {batch} of {start.flow!r} is done is gone: its rows would reach the sink a second time.",
            where=start.folder / "commits" / str(batch),
            remedy="The next start repairs it.",
        ),
        (f"last planned batch: {batch}", f"last batch in the event log: {start.last_recorded()}"),
        (Repair.MEND, Repair.RESTORE),
        mend,
    )


def _is_recorded(start: FlowStart, batch: int) -> bool:
    """Whether a batch that went to no table is known to be done: it is recorded after its mark was written.

    Not for a stateful flow: the watermark in its mark is not recorded elsewhere.
    """
    if start.repeatable or start.state.state_settings or batch not in start.planned:
        return False
    if fault_of(start.folder / "offsets" / str(batch)) is not None:
        return False
    recorded = start.last_recorded()
    return recorded is not None and recorded >= batch


def offsets_are_damaged(start: FlowStart) -> Iterator[Damage]:
    """The two newest entries of the offset log are read at each start."""
    for batch in start.planned[-2:][::-1]:
        fault = fault_of(start.folder / "offsets" / str(batch))
        if fault is None:
            continue
        if fault is EntryFault.NEWER:
            yield _too_new(start, batch)
        elif batch == start.planned[-1]:
            yield from _last_entry(start, batch, fault)
        else:
            yield from _entry_before(start, batch, f"is damaged ({fault.description})", OffsetsDamaged)


def offsets_are_missing(start: FlowStart) -> Iterator[Damage]:
    """Entries that Spark needs, or that keep it from repeating a finished batch."""
    planned, committed = start.planned, start.committed
    if committed and committed[-1] > (planned[-1] if planned else -1):
        yield from _end_is_missing(start)
    elif planned and planned[-1] > 0 and planned[-1] - 1 not in planned:
        yield from _entry_before(start, planned[-1] - 1, "is gone", OffsetsLost)


def first_batch_left_remains(start: FlowStart) -> Iterator[Damage]:
    """A driver died while writing the first entry: Spark takes the half-written file for another query's checkpoint."""
    left = remains(start.folder)
    # Checksums alone are left to another check, which removes them.
    if all(file.suffix == ".crc" and file.name[1:-4].isdigit() for file in left):
        return

    def mend() -> str:
        for file in left:
            put_aside(file)
        return f"what a driver had left of its first batch was put aside: {', '.join(file.name for file in left)}"

    yield Damage(
        OffsetsDamaged(
            f"The driver of {start.flow!r} died while it planned the first batch; Spark would not begin where its half-written "
            "files are.",
            where=left[0],
            remedy="The next start repairs it: nothing was read yet.",
        ),
        tuple(str(file) for file in left[:10]),
        (Repair.MEND,),
        mend,
    )


def checksums_are_left(start: FlowStart) -> Iterator[Damage]:
    """Spark can't write an entry where the checksum of a lost one is left."""
    folders = [start.folder / name for name in ("offsets", "commits")]
    left = [
        file
        for folder in folders
        for file in (in_order(folder.glob(".*.crc")) if folder.is_dir() else ())
        if file.name[1:-4].isdigit() and not (folder / file.name[1:-4]).exists()
    ]
    if not left:
        return

    def mend() -> str:
        for file in left:
            file.unlink(missing_ok=True)
        return f"checksums of entries that are gone were removed: {', '.join(file.name for file in left)}"

    yield Damage(
        CommitsDamaged(
            f"In the logs of {start.flow!r} lie checksums of entries that are gone; Spark could not write those again.",
            where=left[0],
            remedy="The next start repairs it.",
        ),
        tuple(str(file) for file in left[:10]),
        (Repair.MEND,),
        mend,
    )


def positions_are_others(start: FlowStart) -> Iterator[Damage]:
    """A store keeps no checksums, so ``verify`` compares what is readable there with what the event log has of it."""
    if not start.deep or not isinstance(start.folder, ObjectPath):
        return
    for batch in start.planned[-2:][::-1]:
        recorded = start.position(batch) if batch in start.committed else None
        if recorded is None or fault_of(start.folder / "offsets" / str(batch)) is not None:
            continue
        there = read_offsets(start.folder, batch).sources
        if len(there) == len(recorded) and [*map(_value, there)] != [*map(_value, recorded)]:
            yield Damage(
                OffsetsDamaged(
                    f"The position of batch {batch} of {start.flow!r} is not the one that the event log has of it.",
                    where=start.folder / "offsets" / str(batch),
                    remedy=_otherwise(start),
                ),
                (
                    f"in the checkpoint: {'; '.join(map(str, there))}",
                    f"recorded: {'; '.join(map(str, recorded))}",
                ),
                _REPAIRS,
            )


def _value(position: str | None) -> object:
    try:
        return json.loads(position) if position is not None else None
    except json.JSONDecodeError:
        return position


def _too_new(start: FlowStart, batch: int) -> Damage:
    file = start.folder / "offsets" / str(batch)
    return Damage(
        OffsetsTooNew(
            f"The offset log of {start.flow!r} was written by a newer Spark than this one.",
            where=file,
            remedy="Run the update with that version of Spark, or newer. Do not edit the file.",
        ),
        (f"first line: {next(iter(lines_of(file.read_text(errors='replace'))), '')[:20]}",),
        (Repair.RESTORE, Repair.FULL_REFRESH),
    )


def _last_entry(start: FlowStart, batch: int, fault: EntryFault) -> Iterator[Damage]:
    file = start.folder / "offsets" / str(batch)
    in_table = start.written is not None and start.written >= batch
    done = batch in start.committed
    position = start.position(batch)

    def mend() -> str:
        if done or in_table:
            assert position is not None
            put_back(start.folder, batch, position, start.entry_settings)
            return f"the position of batch {batch} was written back from what was recorded of it"
        if start.planned == [batch]:
            # Spark starts over only where there is no state. First: as long as the plan is there, a killed start is repeated.
            put_aside(start.folder / "state")
        put_aside(file)
        return f"the damaged plan of batch {batch} was put aside; nothing of it had been written"

    known = position is not None and start.can_put_back(batch)
    safe = known if done or in_table else start.repeatable
    yield Damage(
        OffsetsDamaged(
            f"The position of batch {batch} of {start.flow!r} is damaged: {fault.description}.",
            where=file,
            remedy="The next start repairs it." if safe else _otherwise(start),
        ),
        (
            fault.description,
            f"batch {batch} is {'' if done else 'not '}marked as done, and {'in' if in_table else 'not in'} the table",
            f"its position is {'' if position else 'not '}known from elsewhere",
        ),
        (Repair.MEND,) if safe else _REPAIRS,
        mend if safe else None,
    )


def _entry_before(
    start: FlowStart, batch: int, what: str, condition: type[CheckpointUnreadable]
) -> Iterator[Damage]:
    """The entry before the last: the beginning of the last batch."""
    following = batch + 1
    done = following in start.committed and fault_of(start.folder / "offsets" / str(following)) is None
    position = start.position(batch)

    def mend() -> str:
        put_back(start.folder, batch, position, start.entry_settings)
        origin = (
            "from what was recorded of it" if position else f"as that of batch {following}, which is done"
        )
        return f"the position of batch {batch} was written back, {origin}"

    # A finished batch is not read again, so its beginning does not matter.
    safe = (position is not None or done) and start.can_put_back(batch)
    yield Damage(
        condition(
            f"The position of batch {batch} of {start.flow!r} {what}; Spark needs the two newest.",
            where=start.folder / "offsets" / str(batch),
            remedy="The next start repairs it." if safe else _otherwise(start),
        ),
        (
            f"batch {following} is {'' if done else 'not '}done",
            f"known from elsewhere: {position is not None}",
        ),
        (Repair.MEND,) if safe else _REPAIRS,
        mend if safe else None,
    )


def _end_is_missing(start: FlowStart) -> Iterator[Damage]:
    last = start.planned[-1] if start.planned else -1
    lost = range(last + 1, start.committed[-1] + 1)
    positions = {batch: start.position(batch) for batch in lost}
    needed = [batch for batch in lost if batch >= lost[-1] - 1]
    all_recorded = all(positions[batch] is not None and start.can_put_back(batch) for batch in needed)
    unwritten = start.repeatable and (start.written is None or start.written <= last) and last >= 0

    def mend() -> str:
        if all_recorded:
            for batch in needed:
                put_back(start.folder, batch, positions[batch], start.entry_settings)
            return f"the position of batch {lost[-1]} was written back from what was recorded of it"
        for batch in lost:
            put_aside(start.folder / "commits" / str(batch))
        return f"the marks of batches without a position were put aside; nothing of them is in the table: {list(lost)}"

    safe = all_recorded or unwritten
    shown = f"batch {lost[0]}" if len(lost) == 1 else f"batches {lost[0]} to {lost[-1]}"
    yield Damage(
        OffsetsLost(
            f"The position of {shown} of {start.flow!r} is gone, and marked as done: Spark would run an earlier batch "
            "again, and then fail.",
            where=start.folder / "offsets",
            remedy="The next start repairs it." if safe else _otherwise(start),
        ),
        (
            f"last position: {last if last >= 0 else 'none'}, last mark: {start.committed[-1]}, in the table: {start.written}",
            f"known from elsewhere: {all_recorded}",
        ),
        (Repair.MEND,) if safe else _REPAIRS,
        mend if safe else None,
    )


def _otherwise(start: FlowStart) -> str:
    return f"Rebuild the position: {start.command('rebuild')}; or {last_remedy(start)}"
