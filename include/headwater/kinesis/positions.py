"""Where a batch of a stream ends: fixed by sequence numbers, so that the batch can be read again.

Kinesis has no call for a shard's newest sequence number, so the planner reads: from the position, one request; where
that does not reach the newest record, from shortly before its time. A stream's entry in the checkpoint is
``{"created": ms, "since": ms or "trim_horizon", "shards": {id: position}}``; a position has ``"closed": true`` once the
shard was read to its end. A shard joins in the batch after its parents were closed, and that batch reads none of it.

Decision 0023.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from headwater.errors import SourcePositionLost
from headwater.kinesis.shards import KinesisStream, Position, Shard

# How long before the newest record the planner starts its search, in milliseconds.
_NEAR_MS = 2000
_AT_ONCE = 8
Entry = dict[str, Any]


class StreamPlanner:
    """Plans the batches of one stream for one run of a query."""

    def __init__(self, stream: KinesisStream) -> None:
        self._stream = stream
        # With AvailableNow: shards and their ends as they were when they were first asked for.
        self.frozen = False
        self._shards: dict[str, Shard] | None = None
        self._ends: dict[str, Position] = {}

    def begin(self, since: int | str | None) -> Entry:
        """The stream's first entry. ``since``: milliseconds since 1970, ``"trim_horizon"``, or None for from now on."""
        at = self._stream.now_ms() if since is None else since
        shards = self._stream.shards()
        roots = [shard for shard in shards.values() if not any(parent in shards for parent in shard.parents)]
        return {
            "created": self._stream.created_ms(),
            "since": at,
            "shards": {shard.id: {"at": at} for shard in roots},
        }

    def advance(self, entry: Mapping[str, Any], limit: int | None = None) -> Entry:
        """The entry at the end of the next batch; the same one where there is nothing. ``limit``: records per shard.

        Raises:
            SourcePositionLost: the stream is another one, or a shard is gone that was not read to its end.
        """
        shards = self._listing()
        shard_positions: Mapping[str, Position] = entry["shards"]
        self._check(entry, shards)
        # Closed shards that are no longer listed have expired; they were read to their end.
        listed = [shard_id for shard_id in shard_positions if shard_id in shards]

        def moved(shard_id: str) -> Position:
            return self._end(shards[shard_id], shard_positions[shard_id], limit)

        with ThreadPoolExecutor(_AT_ONCE) as threads:
            positions = dict(zip(listed, _each(threads, moved, listed), strict=True))
        for shard in shards.values():
            if shard.id not in shard_positions and all(
                parent in shard_positions and shard_positions[parent].get("closed")
                for parent in shard.parents
                if parent in shards
            ):
                positions[shard.id] = {"at": entry["since"]}
        return {"created": entry["created"], "since": entry["since"], "shards": positions}

    def _listing(self) -> dict[str, Shard]:
        if self._shards is None or not self.frozen:
            self._shards = self._stream.shards()
        return self._shards

    def _check(self, entry: Mapping[str, Any], shards: Mapping[str, Shard]) -> None:
        if self._stream.created_ms() != entry["created"]:
            raise SourcePositionLost(
                f"The Kinesis stream {self._stream.name!r} was deleted and recreated: its sequence numbers start over as well.",
                remedy="--reset-checkpoint FLOW reads the new stream from initialPosition on and keeps the table's rows.",
            )
        gone = [key for key, at in entry["shards"].items() if key not in shards and not at.get("closed")]
        if gone:
            raise SourcePositionLost(
                f"Shard {gone[0]} of the Kinesis stream {self._stream.name!r} has expired, and was not read to its end.",
                remedy="Its unread records are gone. --reset-checkpoint FLOW goes on from initialPosition, and rows may "
                "double. Update more often than the stream's retention period, or make that longer.",
            )

    def _end(self, shard: Shard, position: Position, limit: int | None) -> Position:
        if position.get("closed"):
            return position
        newest = self._ends.get(shard.id) if self.frozen else None
        if newest is None:
            newest = self._ends[shard.id] = self._newest(shard, position)
        if limit is None or newest.get("after") in (None, position.get("after")):
            return newest
        return self._after(shard, position, newest, limit)

    def _newest(self, shard: Shard, position: Position) -> Position:
        """The position behind the shard's newest record."""
        newest = position
        for number, page in enumerate(self._stream.pages(shard.id, position)):
            if page.records:
                newest = {"after": page.records[-1].sequence}
            if page.last or page.behind_ms == 0:
                return {**newest, "closed": True} if page.last or shard.closed else newest
            if number == 0 and page.records:
                last = int(page.records[-1].arrival.timestamp() * 1000)
                near = self._near(shard, last + page.behind_ms - _NEAR_MS)
                if near is not None and int(near["after"]) > int(page.records[-1].sequence):
                    return near
        return newest

    def _near(self, shard: Shard, at_ms: int) -> Position | None:
        nearest: Position | None = None
        for page in self._stream.pages(shard.id, {"at": at_ms}):
            if page.records:
                nearest = {"after": page.records[-1].sequence}
            if page.last or page.behind_ms == 0:
                ended = nearest is not None and (page.last or shard.closed)
                return {**nearest, "closed": True} if nearest is not None and ended else nearest
        return nearest

    def _after(self, shard: Shard, position: Position, newest: Position, limit: int) -> Position:
        """The position ``limit`` records further, or the newest one where it comes first."""
        taken = 0
        for page in self._stream.pages(shard.id, position, limit):
            for record in page.records:
                taken += 1
                if int(record.sequence) >= int(newest["after"]):
                    return newest
                if taken == limit:
                    return {"after": record.sequence}
            if page.last or page.behind_ms == 0:
                break
        return newest


def _each(
    threads: ThreadPoolExecutor, function: Callable[[str], Position], names: Iterable[str]
) -> list[Position]:
    return list(threads.map(function, names))
