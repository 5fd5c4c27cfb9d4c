"""What a notebook of the closed platform finds ready is there, or says that it is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.object_stores import store_server

from headwater.errors import UsageError
from headwater_spark.facade.noted_reads import noting_reads
from headwater_spark.loader.shims import DbUtils, FileSystem, runtime_names


@pytest.fixture
def dbutils() -> DbUtils:
    """A dbutils with one value configured."""
    return DbUtils({"color": "red"})


@pytest.mark.parametrize(
    ("scope", "key", "variable"),
    [
        ("eventhub", "connection-string", "HEADWATER_SECRET_EVENTHUB_CONNECTION_STRING"),
        ("my.scope", "Key_1", "HEADWATER_SECRET_MY_SCOPE_KEY_1"),
    ],
)
def test_a_secret(dbutils: DbUtils, monkeypatch, scope: str, key: str, variable: str):
    """A secret is the environment variable of scope and key; the error about a missing one names the variable."""
    with pytest.raises(UsageError) as caught:
        dbutils.secrets.get(scope, key)
    assert variable in caught.value.remedy
    monkeypatch.setenv(variable, "s3cret")
    assert dbutils.secrets.get(scope=scope, key=key) == "s3cret"
    assert dbutils.secrets.getBytes(scope, key) == b"s3cret"


def test_listing_a_folder(dbutils: DbUtils, tmp_path: Path):
    """Folders end in a slash and say isDir(); a missing path raises; prefixes of the platform are taken off."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.txt").write_text("hello")
    listed = {entry.name: entry for entry in dbutils.fs.ls(f"file:{tmp_path}")}
    assert set(listed) == {"folder/", "file.txt"}
    assert (listed["folder/"].isDir(), listed["file.txt"].isDir()) == (True, False)
    assert listed["folder/"].path == f"{tmp_path}/folder/"
    assert (listed["folder/"].isFile(), listed["file.txt"].isFile()) == (False, True)
    assert listed["file.txt"].size == 5
    assert listed["file.txt"].modificationTime == (tmp_path / "file.txt").stat().st_mtime_ns // 1_000_000
    assert dbutils.fs.ls(f"{tmp_path}/file.txt") == [listed["file.txt"]]
    assert dbutils.fs.head(f"dbfs:{tmp_path}/file.txt") == "hello"
    with pytest.raises(FileNotFoundError):
        dbutils.fs.ls(str(tmp_path / "nothing"))


def test_listing_a_prefix(dbutils: DbUtils, tmp_path: Path):
    """What a folder gives, a prefix of a store does; and the update knows that it can't tell whether that has changed."""
    with store_server(light=True) as server:
        server.make_bucket("lake")
        root = server.place("lake", "a b/50% é")
        (root / "file #1.txt").write_text("hello")
        (root / "v=1" / "x.json").write_text("{}")
        with noting_reads(tmp_path) as reads:
            listed = {entry.name: entry for entry in dbutils.fs.ls("s3://lake/a b/50% é/")}
            assert reads.rows
        assert list(listed) == ["file #1.txt", "v=1/"]
        assert (listed["v=1/"].isDir(), listed["file #1.txt"].isDir()) == (True, False)
        assert listed["v=1/"].path == "s3://lake/a b/50% é/v=1/"
        assert (listed["file #1.txt"].size, listed["file #1.txt"].modificationTime > 1e12) == (5, True)
        assert dbutils.fs.ls("s3://lake/a b/50% é/file #1.txt") == [listed["file #1.txt"]]
        assert dbutils.fs.head("s3://lake/a b/50% é/file #1.txt", 4) == "hell"
        for lost in ("s3://lake/nothing", "s3://lake/a"):
            with pytest.raises(FileNotFoundError):
                dbutils.fs.ls(lost)
        with pytest.raises(UsageError, match="another spelling"):
            dbutils.fs.ls("s3a://lake/a b")


def test_widgets(dbutils: DbUtils):
    """A widget's value is the configuration's, else its default; the error about one without either says where to put it."""
    dbutils.widgets.text("color", "blue")
    dbutils.widgets.text(name="day", defaultValue="today", label="Which day")
    dbutils.widgets.dropdown("size", "L", ["S", "L"])
    assert (dbutils.widgets.get("color"), dbutils.widgets.get("size")) == ("red", "L")
    assert dbutils.widgets.getAll() == {"color": "red", "day": "today", "size": "L"}
    with pytest.raises(UsageError, match="'shape'") as caught:
        dbutils.widgets.get("shape")
    assert "configuration" in caught.value.remedy


@pytest.mark.parametrize(
    "use",
    [
        lambda d: d.notebook.run("x"),
        lambda d: d.fs.rm("/x"),
        lambda d: d.secrets.listScopes(),
        lambda d: d.jobs.taskValues,
    ],
)
def test_what_is_not_there(dbutils: DbUtils, use):
    """The rest of dbutils is refused by name, not as a missing attribute."""
    with pytest.raises(UsageError, match=r"dbutils[.\w]*\.\w+ is not there"):
        use(dbutils)


def test_restarting_python_does_nothing(dbutils: DbUtils):
    """The line that follows %pip in notebooks is harmless."""
    assert dbutils.library.restartPython() is None


def test_a_folder_that_others_write_is_listed(tmp_path, monkeypatch):
    """What is renamed between the listing and the look at it is left out; it is not an error."""
    (tmp_path / "a").write_text("12")
    (tmp_path / "b.tmp").write_text("1")
    stat = Path.stat

    def renaming(self, **given):
        if self.name == "b.tmp" and os.path.lexists(self):
            self.rename(tmp_path / "b")
        return stat(self, **given)

    monkeypatch.setattr(Path, "stat", renaming)
    assert [(entry.name, entry.size) for entry in FileSystem().ls(str(tmp_path))] == [("a", 2)]


def test_nothing_is_shown():
    """``display`` and ``displayHTML`` take whatever they take in a notebook, and touch nothing of it: a stream would be started."""
    names = runtime_names(None, {})
    for show in (names["display"], names["displayHTML"]):
        assert show(object(), streamName="s", checkpointLocation="/x") is None
    assert names["dbutils"].widgets.getAll() == {}
    assert names["sc"] is None
