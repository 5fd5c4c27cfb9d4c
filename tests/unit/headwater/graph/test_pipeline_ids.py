"""An id belongs to one pipeline: two folders with one id beside each other are refused, elsewhere they are noticed."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from headwater.commands.command_line import main
from headwater.graph.conditions import PipelineIdTaken
from headwater.graph.pipeline_ids import Home, known_homes, note_home, taking_turns
from headwater.graph.pipeline_project import PipelineProject, open_project


def pipeline(root: Path, folder: str, text: str = "name: orders\n") -> Path:
    """A pipeline's folder."""
    path = root / folder
    path.mkdir(parents=True)
    (path / "pipeline.yml").write_text(text)
    return path


def opened(folder: Path, **options: object) -> PipelineProject:
    """The pipeline, in a storage that all have."""
    environment = {"HEADWATER_STORAGE": str(folder.parent.parent / "storage")}
    return open_project(folder, **{"environment": environment, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["name: orders\n", "name: Other\nid: orders\n", "name: ${env:NAME}\n", 'name: "ord\\x65rs"\n']
)
def test_a_copied_template(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]):
    """Both folders are refused, with both names and what to do, however the id is spelled; verbs too."""
    environment = {"NAME": "orders", "HEADWATER_STORAGE": str(tmp_path / "storage")}
    folders = [pipeline(tmp_path / "p", "orders"), pipeline(tmp_path / "p", "copy", text)]
    for one, other in (folders, folders[::-1]):
        with pytest.raises(PipelineIdTaken, match="have the same id, 'orders'") as caught:
            opened(one, environment=environment)
        assert caught.value.where == str(other)
        assert "pipeline.yml" in caught.value.remedy
    if "env" not in text:
        assert main(["status", str(folders[0])]) == 2
        assert "PIPELINE_ID_TAKEN" in capsys.readouterr().err
    opened(folders[0], environment=environment, alone=True)


@pytest.mark.parametrize(
    ("folder", "text"),
    [
        ("p/other", "name: other\n"),
        ("p/other", "name: orders_2\n"),
        ("p/other", "name: orders\nid: mine\n"),
        ("p/orders.old", "name: orders\n"),
        ("p/.orders", "name: orders\n"),
        ("p/broken", "name: orders\nnothing: known\n"),
        ("q/orders", "name: orders\n"),
        ("p/deep/orders", "name: orders\n"),
    ],
)
def test_what_is_no_second_pipeline(tmp_path: Path, folder: str, text: str):
    """Other ids, copies that are set aside, folders that can't run, other checkouts."""
    first = pipeline(tmp_path / "p", "orders")
    pipeline(tmp_path, folder, text)
    assert opened(first).pipeline_id == "orders"


def test_checkouts_beside_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Two checkouts whose root is the pipeline, each worked in from inside, have a storage each and share nothing."""
    for name in ("main", "feature"):
        monkeypatch.chdir(pipeline(tmp_path, name))
        assert open_project(".", environment={}).storage == tmp_path / name / ".headwater" / "storage"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PipelineIdTaken):
        open_project("main", environment={})


def test_a_link_is_the_same_pipeline(tmp_path: Path):
    """Beside itself under another name; and a deployment's link is looked at where it lies, not where it leads."""
    first = pipeline(tmp_path / "p", "orders")
    (tmp_path / "p" / "current").symlink_to(first)
    assert opened(first).folder == opened(tmp_path / "p" / "current").folder == first
    releases = [pipeline(tmp_path / "releases", name) for name in ("r1", "r2")]
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "orders").symlink_to(releases[1])
    assert opened(tmp_path / "live" / "orders").folder == releases[1]


def test_storages_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A storage that each keeps in its own folder is not shared."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        pipeline(tmp_path / "p", name, "name: orders\nstorage: state\n")
    assert opened(tmp_path / "p" / "a", environment={}).storage == tmp_path / "p" / "a" / "state"
    with pytest.raises(PipelineIdTaken):
        opened(tmp_path / "p" / "a")


def test_storages_that_are_given_for_a_call(tmp_path: Path):
    """Each may have been given its own; one that has written this storage is refused company."""
    one, other = (pipeline(tmp_path / "p", name, "name: orders\n") for name in ("a", "b"))
    for folder in (one, other):
        with opened(folder, storage=tmp_path / folder.name).lease("me"):
            pass
    with pytest.raises(PipelineIdTaken, match="'b' and 'a' have the same id"):
        opened(other, storage=tmp_path / "a")
    assert opened(one, storage=tmp_path / "a").storage == tmp_path / "a"


def test_a_moved_deployment_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """Folder after folder, each time a new one: storage remembers them, and says nothing."""
    for number in range(15):
        folder = pipeline(tmp_path / f"r{number}", "orders")
        with opened(folder, storage=tmp_path / "storage").lease("me"):
            pass
        shutil.rmtree(folder)
    homes = known_homes(tmp_path / "storage" / "pipelines" / "orders")
    assert [Path(home.folder).parent.name for home in homes] == [f"r{number}" for number in range(5, 15)]
    assert not caplog.records


def test_two_folders_in_turn_are_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """The third update, back in the first folder, warns with both."""
    folders = [pipeline(tmp_path / name, "orders") for name in ("x", "y")]
    for number, folder in enumerate((folders[0], folders[0], folders[1], folders[0], folders[1])):
        with caplog.at_level(logging.WARNING), opened(folder, storage=tmp_path / "storage").lease("me"):
            pass
        assert len(caplog.records) == max(0, number - 2), number
    assert f"{folders[1]} and {folders[0]}" in caplog.records[-1].getMessage()


def test_a_return_after_long():
    """Who comes back after more than a week has not taken turns."""
    day = 86400
    assert taking_turns([Home("a", 0), Home("b", day), Home("a", 2 * day)]) is not None
    assert taking_turns([Home("a", 0), Home("b", day), Home("a", 20 * day)]) is None
    assert taking_turns([Home("a", 0), Home("b", day)]) is None
    assert taking_turns([]) is None


def test_a_damaged_record_stops_nothing(tmp_path: Path):
    """It is only a note: it is begun again."""
    note_home(tmp_path, Path("/a"), now=0)
    for text in ("{", '[{"at": 1}]', '[{"folder": "/a", "at": null}]', "[1]"):
        (tmp_path / "system" / "folders.json").write_text(text)
        note_home(tmp_path, Path("/b"), now=1)
        assert [home.folder for home in known_homes(tmp_path)] == ["/b"]


def test_a_folder_is_noted_once_an_hour(tmp_path: Path):
    """Not at every step of an update; after that its moment is the newest one."""
    for now, at in ((1000, 1000), (4599, 1000), (4600, 4600)):
        note_home(tmp_path, Path("/a"), now=now)
        assert known_homes(tmp_path) == [Home("/a", at)]
