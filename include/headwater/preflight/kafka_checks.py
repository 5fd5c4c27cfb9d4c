"""Streams from Kafka: whether the topics still have what was not read yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwater.checkpoints.conditions import SourceAgedOut, SourceGone, SourceReplaced
from headwater.definitions.source import SourceKind
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.flow_start import FlowStart, StreamSource, Topics
from headwater.preflight.source_checks import last_offsets, offset_of

_FROM_THE_START = (Repair.NEW_EPOCH, Repair.FULL_REFRESH)


def messages_are_gone(start: FlowStart) -> Iterator[Damage]:
    """Offsets that are no longer there, or not there yet: the topic was cut by its retention, or recreated."""
    for source, topics, position in _positions(start):
        yield from _of_topics(start, source, topics, position)


def topic_is_gone(start: FlowStart) -> Iterator[Damage]:
    """Spark would retry until it gives up, and then report missing partitions."""
    for source, topics, position in _positions(start):
        if _takes_loss(source):
            continue
        for topic in topics.gone(sorted(position)):
            yield Damage(
                SourceGone(
                    f"The topic {topic!r} that {start.flow!r} reads is gone.",
                    where=f"topic {topic}",
                    remedy="Put the topic back, with what was in it. A new one under its name takes a new epoch: "
                    f"{start.command('new-epoch')} --from-start",
                ),
                (f"the broker has no topic {topic}", f"position: {position[topic]}"),
                _FROM_THE_START,
            )


def _positions(start: FlowStart) -> Iterator[tuple[StreamSource, Topics, dict[str, Any]]]:
    """Each source whose broker can be asked, with the offsets at which the next batch begins: by topic and partition."""
    offsets = last_offsets(start)
    if offsets is None:
        return
    for index, source in enumerate(start.sources or ()):
        if source.kind is SourceKind.KAFKA and source.topics is not None:
            position = offset_of(start, offsets, index)
            if isinstance(position, dict):
                yield source, source.topics, position


def _takes_loss(source: StreamSource) -> bool:
    return source.options.get("failOnDataLoss", "true").lower() == "false"


def _of_topics(
    start: FlowStart, source: StreamSource, topics: Topics, position: dict[str, Any]
) -> Iterator[Damage]:
    places = [
        (topic, int(number), int(at))
        for topic, partitions in position.items()
        if isinstance(partitions, dict)
        for number, at in partitions.items()
    ]
    bounds = topics.bounds([(topic, number) for topic, number, _ in places])
    lost, ahead = [], []
    for topic, number, at in places:
        if (topic, number) not in bounds or at < 0:
            continue
        low, high = bounds[topic, number]
        if at < low:
            lost.append((f"{topic}-{number}: position {at}, oldest kept {low}", low - at))
        elif at > high:
            ahead.append(f"{topic}-{number}: position {at}, end {high}")
    if ahead:
        yield Damage(
            SourceReplaced(
                f"{start.flow!r} is past the end of what it reads ({ahead[0]}): the topic was recreated, or cut.",
                where=source.name,
                remedy=f"Read the new topic from its beginning, and keep the rows: {start.command('new-epoch')} --from-start",
            ),
            tuple(ahead[:10]),
            _FROM_THE_START,
        )
    if lost and not _takes_loss(source):
        count = sum(messages for _, messages in lost)
        yield Damage(
            SourceAgedOut(
                f"Up to {count} messages that {start.flow!r} has not read have left the topic ({lost[0][0]}).",
                where=source.name,
                remedy=f"Go on without them: {start.command('new-epoch')} --from-start. They can't be read from the topic again.",
            ),
            tuple(text for text, _ in lost[:10]),
            _FROM_THE_START,
        )
