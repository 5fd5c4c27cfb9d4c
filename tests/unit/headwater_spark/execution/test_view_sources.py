"""What the sources of a view are at before it is refreshed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.written_table import commit

from headwater.errors import SourceUnreachable
from headwater.incremental.costs import SourceSize
from headwater.incremental.source_changes import ChangeKind, SourceChange
from headwater_spark.execution import view_sources as module


class Sources:
    """Flows over tables of a warehouse; a source is a name, with ``~`` before it where it is read as a stream."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, **flows: tuple[str, ...]) -> None:
        self.root = root
        entries = [
            SimpleNamespace(name=name, sources=[self._source(one) for one in read])
            for name, read in flows.items()
        ]
        manifest = SimpleNamespace(flows=entries)
        self.context: Any = SimpleNamespace(
            pipeline=SimpleNamespace(project=SimpleNamespace(warehouse=root), manifest=manifest)
        )
        self.entry: Any = entries[0]
        monkeypatch.setattr(
            module,
            "source_table",
            lambda source, warehouse: warehouse / source.key if source.is_table else None,
        )
        monkeypatch.setattr(module, "source_key", lambda source: source.key)
        monkeypatch.setattr(module, "source_fingerprint", lambda source, _: source.known)

    @staticmethod
    def _source(text: str) -> Any:
        name = text.removeprefix("~")
        known = None if name == "unknown" else f"at {name}"
        return SimpleNamespace(
            key=name,
            location=f"/l/{name}",
            streaming=text != name,
            is_table=name.startswith("t"),
            known=known,
        )


def test_what_all_are_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By their keys; nothing is known where one of them is not."""
    sources = Sources(tmp_path, monkeypatch, view=("t1", "files"))
    assert module.fingerprints(sources.context, sources.entry) == {"t1": "at t1", "files": "at files"}
    sources = Sources(tmp_path, monkeypatch, view=("t1", "unknown"))
    assert module.fingerprints(sources.context, sources.entry) is None
    assert module.other_sources(sources.context, sources.entry) == {"unknown": None}


def test_how_many_read_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A flow that reads it twice is one of them; streams, other flows and what is no table do not count."""
    sources = Sources(
        tmp_path, monkeypatch, one=("t1", "t1", "t2", "files"), other=("t1", "~t2"), away=("t1", "t2")
    )
    assert module.readers(sources.context, ["one", "other"]) == Counter(
        {tmp_path / "t1": 2, tmp_path / "t2": 1}
    )


def test_tables_that_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each once, at its version now; streams, tables that are not there, and what is no table are left out."""
    sources = Sources(tmp_path, monkeypatch, view=("t1", "t2", "t1", "~t3", "t4", "files"))
    for name in ("t1", "t2", "t2", "t3"):
        commit(tmp_path / name)
    noted = module.noted_tables(sources.context, sources.entry)
    assert [(one.key, one.folder, one.head.version) for one in noted] == [
        ("/l/t1", tmp_path / "t1", 0),
        ("/l/t2", tmp_path / "t2", 1),
    ]


@pytest.mark.parametrize(("files", "size"), [([10, 20], 30), ([], 7), (None, 7)])
def test_the_size_of_a_source(monkeypatch: pytest.MonkeyPatch, files: list[int] | None, size: int):
    """That of its files at the version that is read; at least what changed, where the log does not say."""

    def listed(folder: Path, version: int) -> Any:
        assert (folder, version) == (Path("t"), 4)
        if files is None:
            raise SourceUnreachable("gone")
        return [SimpleNamespace(bytes=one) for one in files]

    monkeypatch.setattr(module, "snapshot_files", listed)
    table: Any = SimpleNamespace(key="k", folder=Path("t"), head=SimpleNamespace(version=4))
    change = SourceChange(ChangeKind.APPENDED, 1, 2, ({"size": 7},))
    assert module.source_size(table, change) == SourceSize("k", size, 7)
