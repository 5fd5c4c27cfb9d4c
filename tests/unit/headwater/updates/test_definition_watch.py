"""A definition that changed on disk is noticed when it is whole, and one that can't run is left alone."""

from __future__ import annotations

from headwater.errors import HeadwaterError, InvalidSpec, SourceFileFailed
from headwater.updates.definition_watch import DefinitionWatch


class Disk:
    """A definition that changes from look to look."""

    def __init__(self, *seen: str | HeadwaterError | OSError, broken: tuple[str, ...] = ()) -> None:
        self.seen, self.broken, self.now = list(seen), broken, ""

    def read(self) -> str:
        found = self.seen.pop(0)
        if isinstance(found, Exception):
            raise found
        self.now = found
        return found

    def check(self) -> None:
        if self.now in self.broken:
            raise SourceFileFailed(f"{self.now} has no end")

    def looks(self) -> list[tuple[bool, str]]:
        watch = DefinitionWatch("one", self.read, self.check)
        return [watch.look() for _ in range(len(self.seen))]


def test_a_change_counts_when_it_is_whole():
    """The definition that runs is no news; files that still change are not taken, nor one that is taken back."""
    assert Disk("one", "one", "two", "three", "three").looks() == [(False, "")] * 4 + [(True, "")]
    assert Disk("two", "one", "two", "one", "one").looks() == [(False, "")] * 5


def test_what_can_not_run_is_said_once():
    """The one before goes on; each trouble is said once, and a definition that is good again is taken."""
    looks = Disk("bad", "bad", "bad", "good", "good", broken=("bad",)).looks()
    assert looks == [(False, ""), (False, "bad has no end"), (False, ""), (False, ""), (True, "")]


def test_what_can_not_be_read_is_no_change():
    """A spec that is half written, or a folder that is away, ends nothing."""
    looks = Disk(InvalidSpec("half"), InvalidSpec("half"), OSError("away"), "one").looks()
    assert looks == [(False, "half"), (False, ""), (False, "away"), (False, "")]
