"""Positions against what a topic still has."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.definitions.source import SourceKind
from headwater.preflight.flow_start import FlowStart, StreamSource
from headwater.preflight.kafka_checks import messages_are_gone, topic_is_gone
from headwater.preflight.source_checks import source_identity, sources_were_changed, topic_was_recreated


@dataclass
class Broker:
    """What a broker would say."""

    known: dict[str, str] = field(default_factory=dict)
    ends: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()

    def ids(self, names: Sequence[str]) -> dict[str, str]:
        return {name: self.known[name] for name in names if name in self.known}

    def gone(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name in self.deleted]

    def bounds(self, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], tuple[int, int]]:
        return {place: self.ends[place] for place in places if place in self.ends}


def start(folder: Path, broker: Broker, state: FlowState | None = None, **options: str) -> FlowStart:
    """A flow that stands at offset 10 of the topic ``t``."""
    checkpoint = FlowCheckpoint(folder)
    for name in ("offsets", "commits"):
        (checkpoint.epoch_folder(0) / name).mkdir(parents=True, exist_ok=True)
    lines = ["v1", "{}", json.dumps({"t": {"0": 10}})]
    (checkpoint.epoch_folder(0) / "offsets" / "0").write_text("\n".join(lines))
    (checkpoint.epoch_folder(0) / "commits" / "0").write_text("v1\n{}")
    source = StreamSource(SourceKind.KAFKA, "t", options={"subscribe": "t", **options}, topics=broker)
    return FlowStart("p", "f", "d", checkpoint, state or FlowState(), None, None, sources=(source,))


@pytest.mark.parametrize(
    ("bounds", "conditions"),
    [
        ((0, 10), []),
        ((10, 30), []),
        ((13, 30), ["SOURCE_AGED_OUT"]),
        ((0, 9), ["SOURCE_REPLACED"]),
    ],
)
def test_positions_against_ends(tmp_path: Path, bounds: tuple[int, int], conditions: list[str]):
    """Between the oldest and the next offset all is well; before and behind it is not."""
    damages = list(messages_are_gone(start(tmp_path, Broker(ends={("t", 0): bounds}))))
    assert [damage.condition for damage in damages] == conditions


@pytest.mark.parametrize("at", [-1, -2])
def test_a_position_that_is_no_offset(tmp_path: Path, at: int):
    """The latest, or the earliest, message: where that is, Spark asks when it begins, so that nothing is lost."""
    flow = start(tmp_path, Broker(ends={("t", 0): (13, 30)}))
    lines = ["v1", "{}", json.dumps({"t": {"0": at}})]
    (flow.folder / "offsets" / "0").write_text("\n".join(lines))
    assert list(messages_are_gone(flow)) == []


def test_how_many_messages_are_lost_is_told(tmp_path: Path):
    """The message counts them; who wants to go on without them by an option may."""
    broker = Broker(ends={("t", 0): (13, 30)})
    (damage,) = messages_are_gone(start(tmp_path, broker))
    assert "Up to 3 messages" in damage.error.what
    assert not list(messages_are_gone(start(tmp_path, broker, failOnDataLoss="false")))


def test_a_topic_that_was_deleted(tmp_path: Path):
    """Named before Spark looks for it; who takes losses by an option is left alone."""
    broker = Broker(deleted=("t", "another"))
    (damage,) = topic_is_gone(start(tmp_path, broker))
    assert (damage.condition, damage.evidence[1]) == ("SOURCE_GONE", "position: {'0': 10}")
    assert "--from-start" in damage.error.remedy
    assert not list(topic_is_gone(start(tmp_path, broker, failOnDataLoss="false")))
    assert not list(topic_is_gone(start(tmp_path, Broker())))


def test_a_broker_that_says_nothing(tmp_path: Path):
    """What can't be asked is not a finding; what was known of a topic is kept."""
    seen = FlowState(sources=({"kind": "kafka", "name": "t", "topics": {"t": "a"}},))
    silent = start(tmp_path, Broker(), seen)
    assert not list(messages_are_gone(silent))
    assert not list(topic_was_recreated(silent))
    assert silent.sources is not None
    assert source_identity(silent.sources[0], seen.sources[0])["topics"] == {"t": "a"}


def test_another_topic_of_the_same_name(tmp_path: Path):
    """The id tells, whatever the offsets are."""
    seen = FlowState(sources=({"kind": "kafka", "name": "t", "topics": {"t": "a"}},))
    assert not list(topic_was_recreated(start(tmp_path, Broker(known={"t": "a"}), seen)))
    (damage,) = topic_was_recreated(start(tmp_path, Broker(known={"t": "b"}), seen))
    assert (damage.condition, damage.evidence) == (
        "SOURCE_REPLACED",
        ("topic id before: a", "topic id now: b"),
    )


def test_sources_in_another_order(tmp_path: Path):
    """Two sources that change places are refused; one that has another folder is not."""
    seen = FlowState(sources=({"kind": "files", "name": "a"}, {"kind": "files", "name": "b"}))
    begun = start(tmp_path, Broker(), seen)
    file = begun.folder / "offsets" / "0"
    file.write_text('v1\n{}\n{"logOffset":0}\n{"logOffset":0}')

    def conditions(*names: str) -> list[str]:
        sources = tuple(StreamSource(SourceKind.FILES, name, path=name) for name in names)
        flow = FlowStart("p", "f", "d", begun.checkpoint, seen, None, None, sources=sources)
        return [damage.condition for damage in sources_were_changed(flow)]

    assert conditions("a", "b") == []
    assert conditions("b", "a") == ["SOURCES_CHANGED"]
    assert conditions("a", "c") == []
    assert conditions("a") == ["SOURCES_CHANGED"]


def test_a_source_that_is_read_twice(tmp_path: Path):
    """It has two lines in the offset log, and is one source: no finding, and no line is taken for another source's."""
    broker = Broker(ends={("t", 0): (0, 5)})
    begun = start(tmp_path, broker, FlowState(sources=({"kind": "kafka", "name": "t"},)))
    file = begun.folder / "offsets" / "0"
    file.write_text(file.read_text() + '\n{"t":{"0":10}}')
    assert not list(sources_were_changed(begun))
    assert not list(messages_are_gone(begun))
