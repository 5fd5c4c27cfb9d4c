"""What stands in files that sources read: one content is told from another, also of folders and of files that are not there."""

from __future__ import annotations

from pathlib import Path

from headwater.graph.files_read import ABSENT, changed_files, content_digest, files_digest, spelled_path


def test_contents(tmp_path: Path) -> None:
    """Another content, another name in a folder and a file that comes or goes are changes; hidden names and caches are none."""
    folder, file = tmp_path / "conf", tmp_path / "conf" / "a.json"
    folder.mkdir()
    file.write_text("1")
    files = {name: content_digest(tmp_path / name) for name in ("conf", "conf/a.json", "conf/b.json")}
    assert files["conf/b.json"] == ABSENT
    (folder / ".swp").write_text("")
    (folder / "__pycache__").mkdir()
    assert changed_files(files, tmp_path) == []
    file.write_text("2")
    assert changed_files(files, tmp_path) == ["conf/a.json"]
    (folder / "b.json").write_text("")
    assert changed_files(files, tmp_path) == ["conf", "conf/a.json", "conf/b.json"]


def test_a_link_to_another_file(tmp_path: Path) -> None:
    """A mounted setting is a link that points elsewhere after a change."""
    for name in ("1", "2"):
        (tmp_path / name).write_text(name)
    link = tmp_path / "setting"
    link.symlink_to(tmp_path / "1")
    assert spelled_path(str(link), tmp_path) == "setting"
    before = content_digest(link)
    link.unlink()
    link.symlink_to(tmp_path / "2")
    assert content_digest(link) != before


def test_long_files(tmp_path: Path, monkeypatch) -> None:
    """A long file is not read: its size and the time of its change decide."""
    monkeypatch.setattr("headwater.graph.files_read._MOST_BYTES", 2)
    file = tmp_path / "a"
    file.write_text("123")
    before = content_digest(file)
    assert before.startswith("3-")
    file.write_text("1234")
    assert content_digest(file) != before


def test_spelling(tmp_path: Path) -> None:
    """Files of the pipeline's folder have the same name on every machine, others their own place."""
    assert spelled_path(f"{tmp_path}/x/../a.json", tmp_path) == "a.json"
    assert spelled_path("/etc/a.json", tmp_path) == "/etc/a.json"


def test_one_digest() -> None:
    """It is that of all files in any order, and none where there are none."""
    assert files_digest({}) == ""
    assert (
        files_digest({"a": "1", "b": "2"})
        == files_digest({"b": "2", "a": "1"})
        != files_digest({"a": "2", "b": "1"})
    )
