"""Empty objects that mark folders for Hadoop, told from empty files, on Azure's stores alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.storage import azure, azure_marks
from headwater.storage.azure_marks import is_marked, without_marks
from headwater.storage.listing import Listed

EMPTY, FULL = Listed(0, 0.0), Listed(3, 0.0)


class Place:
    """A folder of a store. ``marks``: the objects that are put as marks."""

    def __init__(self, key: str = "in", scheme: str = azure.SCHEME) -> None:
        self.key, self.bucket = key, SimpleNamespace(store=SimpleNamespace(scheme=scheme))

    def __truediv__(self, name: str) -> Place:
        return Place(f"{self.key}/{name}", self.bucket.store.scheme)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The objects that a request is made about."""
    asked: list[str] = []
    monkeypatch.setattr(azure_marks, "_is_mark", lambda _, key: asked.append(key) or "mark" in key)
    return asked


def test_marks_among_the_names_of_a_folder(asked: list[str]):
    """They are folders; an empty file stays a file, and what goes with a folder needs no request."""
    files = {"mark": EMPTY, "empty": EMPTY, "sub": EMPTY, "full": FULL, "sub2": FULL}
    place: Any = Place()
    assert without_marks(place, (files, {"sub", "sub2", "other"})) == (
        {"empty": EMPTY, "full": FULL, "sub2": FULL}, {"mark", "sub", "sub2", "other"},
    )  # fmt: skip
    assert asked == ["in/mark", "in/empty"]


def test_other_stores_have_none(asked: list[str]):
    """Nothing is asked there, nor of a bucket itself."""
    other: Any = Place("mark", "s3")
    assert without_marks(other, ({"mark": EMPTY}, {"sub"})) == ({"mark": EMPTY}, {"sub"})
    for key, scheme, marked in (
        ("mark", "s3", False),
        ("", azure.SCHEME, False),
        ("mark", azure.SCHEME, True),
    ):
        place: Any = Place(key, scheme)
        assert is_marked(place) is marked
    assert asked == ["mark"]


@pytest.mark.parametrize(
    ("size", "attributes", "marked"),
    [(0, {"hdi_isfolder": "true"}, True), (0, {"hdi_isfolder": "TRUE"}, True), (0, {}, False), (3, {"hdi_isfolder": "true"}, False)],
)  # fmt: skip
def test_what_makes_a_mark(
    monkeypatch: pytest.MonkeyPatch, size: int, attributes: dict[str, str], marked: bool
):
    """An empty object with the word that Hadoop puts along; one that has gone meanwhile is none."""
    answer = SimpleNamespace(meta={"size": size}, attributes=attributes)
    bucket: Any = SimpleNamespace(client=None)
    monkeypatch.setattr("obstore.get", lambda *_: answer)
    assert azure_marks._is_mark(bucket, "k") is marked

    def gone(*_: Any) -> None:
        raise FileNotFoundError

    monkeypatch.setattr("obstore.get", gone)
    assert not azure_marks._is_mark(bucket, "k")
