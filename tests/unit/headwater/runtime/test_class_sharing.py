"""Which archive of classes a driver gets, with which options, and when it gets none."""

import json
import os
from pathlib import Path

import pytest

from headwater.errors import UsageError
from headwater.runtime import class_archive as file_module
from headwater.runtime import class_sharing as subject
from headwater.runtime import shared_classes as making
from headwater.runtime import submit
from headwater.runtime.class_archive import ClassArchive
from headwater.runtime.class_list import merged_list, packaged_list
from headwater.runtime.class_sharing import Ingredients, class_archive, shareable, sharing_options
from headwater.runtime.shared_classes import KEPT, ArchiveNotMade, make_archive
from headwater.runtime.submit import submit_conf

RELEASE = 'IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"\n'


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A Java, a Spark and a cache of this test's own; two jars beside."""
    for name in (
        "SPARK_CONF_DIR",
        "SPARK_SUBMIT_OPTS",
        "JDK_JAVA_OPTIONS",
        "JAVA_TOOL_OPTIONS",
        subject.SETTING,
    ):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "java/lib/server").mkdir(parents=True)
    (tmp_path / "java/release").write_text(RELEASE)
    (tmp_path / "java/lib/server/libjvm.so").write_text("machine code")
    (tmp_path / "spark/jars").mkdir(parents=True)
    for jar in ("spark/jars/core.jar", "one.jar", "two.jar"):
        (tmp_path / jar).write_text("classes")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(subject, "java_environment", lambda: {"JAVA_HOME": str(tmp_path / "java")})
    return tmp_path


@pytest.fixture
def class_path(machine: Path) -> str:
    return f"{machine}/one.jar{os.pathsep}{machine}/two.jar"


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch):
    """In place of Java: counts its calls, and writes an archive as long as it ``works``."""

    class Java:
        works = True
        calls = 0

        def make(self, archive: ClassArchive, extra_class_path: str) -> None:
            self.calls += 1
            if not self.works:
                raise ArchiveNotMade("no room")
            archive.file.write_bytes(b"mapped classes " * 100)
            archive.note()

    double = Java()
    monkeypatch.setattr(making, "_make", double.make)
    return double


class TestItsName:
    def test_it_changes_with_what_the_jvm_compares(self, machine: Path, class_path: str):
        """Another Java, jar, jar of Spark or order is another archive; the same ones are the same."""

        def name() -> str:
            archive = class_archive(class_path)
            assert archive is not None
            return archive.file.name

        names = [name()]
        assert name() == names[0]
        assert class_archive(os.pathsep.join(reversed(class_path.split(os.pathsep)))) != class_archive(
            class_path
        )
        for change in (
            lambda: (machine / "java/release").write_text(RELEASE.replace("Debian", "Another")),
            lambda: (machine / "java/lib/server/libjvm.so").write_text("other code"),
            lambda: (machine / "one.jar").write_text("more classes"),
            lambda: os.utime(machine / "two.jar", (1, 1)),
            lambda: os.utime(machine / "spark/jars/core.jar", (1, 1)),
            lambda: (machine / "spark/jars/second.jar").write_text("classes"),
        ):
            change()
            names.append(name())
        assert len(set(names)) == len(names)

    def test_it_lies_beside_the_jars(self, machine: Path, class_path: str):
        """In the cache, in a folder of its own."""
        archive = class_archive(class_path)
        assert archive is not None
        assert archive.file.parent == machine / "cache" / "classes"
        assert archive.major == 17

    def test_the_list_of_classes_counts(self):
        """A release with another list has another archive."""
        one = Ingredients(("17",), (("a.jar", 1, 2),), "abc")
        assert one.name != Ingredients(("17",), (("a.jar", 1, 2),), "abd").name


class TestNoArchive:
    def test_where_there_is_none_yet(self, class_path: str):
        """A driver starts as if there were no such thing."""
        assert sharing_options(class_path) == ""

    @pytest.mark.parametrize("missing", ["java/release", "java/lib/server/libjvm.so", "one.jar"])
    def test_where_something_is_not_there(self, machine: Path, class_path: str, missing: str):
        """No error: Java or Spark will say what they miss."""
        (machine / missing).unlink()
        assert class_archive(class_path) is None

    def test_where_a_folder_is_on_the_class_path(self, machine: Path, class_path: str):
        """Java refuses to share classes beside a folder with files; an empty one is no obstacle."""
        (machine / "spark/conf").mkdir()
        assert class_archive(class_path) is not None
        (machine / "spark/conf/spark-defaults.conf").write_text("spark.x y")
        assert class_archive(class_path) is None

    def test_jars_of_spark_come_before_such_a_folder(self, machine: Path, monkeypatch, class_path: str):
        """With ours go Spark's own jars, so that a folder of settings, which may differ from run to run, comes after all of them."""
        wider = f"{class_path}{os.pathsep}{machine}/spark/jars/*"
        assert shareable(class_path) == wider
        archive = class_archive(wider)
        (machine / "settings").mkdir()
        (machine / "settings/spark-defaults.conf").write_text("spark.x y")
        monkeypatch.setenv("SPARK_CONF_DIR", str(machine / "settings"))
        assert class_archive(class_path) is None
        assert class_archive(wider) == archive
        monkeypatch.setenv(subject.SETTING, "off")
        assert shareable(class_path) == class_path

    def test_a_spark_that_is_not_known_is_not_named(self, monkeypatch, machine: Path, class_path: str):
        """The `spark-submit` on PATH may be another Spark than the package: its jars are its own affair."""
        monkeypatch.delenv("SPARK_HOME")
        monkeypatch.setattr(subject.sys, "executable", str(machine / "python"))
        assert shareable(class_path) == class_path
        (machine / "spark-submit").write_text("")
        assert "/pyspark/jars/*" in shareable(class_path)

    def test_off(self, java, monkeypatch: pytest.MonkeyPatch, class_path: str):
        """The setting turns it off for archives that are there, and a misspelt one is named."""
        make_archive(class_path)
        assert sharing_options(class_path)
        monkeypatch.setenv(subject.SETTING, "off")
        assert sharing_options(class_path) == ""
        assert make_archive(class_path) is None
        monkeypatch.setenv(subject.SETTING, "no")
        with pytest.raises(UsageError, match="HEADWATER_CLASS_SHARING is 'no'"):
            sharing_options(class_path)

    @pytest.mark.parametrize(
        "theirs",
        ["-Xshare:off", "-XX:SharedArchiveFile=/a", "-XX:AOTCache=/a", "-XX:ArchiveClassesAtExit=/a", "-XX:+AutoCreateSharedArchive",
         "-XX:StartFlightRecording=filename=/a", "-XX:+FlightRecorder", "-javaagent:/a.jar", "-agentpath:/a.so", "-agentlib:jdwp=x"],
    )  # fmt: skip
    def test_where_the_user_arranged_it(self, java, monkeypatch, class_path: str, theirs: str):
        """Options of a pipeline or of the environment that concern sharing, or see classes as they load, are left alone."""
        make_archive(class_path)
        assert sharing_options(class_path, f"-Da=b {theirs}") == ""
        monkeypatch.setenv("SPARK_SUBMIT_OPTS", theirs)
        assert sharing_options(class_path) == ""


class TestUse:
    def test_options_of_a_pipeline_come_after_ours(self, java, monkeypatch, machine: Path):
        """They are merged, and win; a master elsewhere gets none of it."""
        monkeypatch.setattr(submit, "ensure_jars", lambda _: [machine / "one.jar"])
        archive = make_archive(submit.driver_class_path())
        assert archive is not None
        options = submit_conf({"spark.driver.extraJavaOptions": "-Xlog:gc -Dtheirs=1"})[
            "spark.driver.extraJavaOptions"
        ]
        assert options.endswith(f"{archive.options()} -Xlog:gc -Dtheirs=1")
        assert "TieredStopAtLevel=1" in submit_conf({})["spark.driver.extraJavaOptions"]
        assert "SharedArchiveFile" in submit_conf({})["spark.driver.extraJavaOptions"]
        assert "SharedArchiveFile" not in submit_conf({}, local=False)["spark.driver.extraJavaOptions"]

    def test_nothing_of_it_reaches_standard_output(self):
        """Java's default is warnings on standard output, where a report of JSON may stand."""
        for major, tags in ((17, "cds*=off"), (25, "cds*=off,aot*=off")):
            options = ClassArchive(Path("/cache/a.jsa"), major).options().split()
            assert options == [
                "-XX:SharedArchiveFile=/cache/a.jsa", "-Xshare:auto", "-Xlog:disable", f"-Xlog:all=warning,{tags}:stderr",
            ]  # fmt: skip

    def test_a_path_with_spaces_stays_one_word(self):
        """Spark cuts the options at spaces that are not quoted."""
        assert (
            '-XX:SharedArchiveFile="/my cache/a.jsa" ' in ClassArchive(Path("/my cache/a.jsa"), 17).options()
        )


class TestDamage:
    def test_it_is_compared_when_it_was_touched(self, java, monkeypatch, class_path: str):
        """A whole one is read once when its file looks different; a damaged one is not used, and the next replaces it."""
        archive = make_archive(class_path)
        assert archive is not None
        reads = []
        monkeypatch.setattr(
            file_module,
            "sha256",
            lambda file, read=file_module.sha256: (reads.append(file.suffix), read(file))[1],
        )
        assert archive.is_whole()
        assert ".jsa" not in reads
        os.utime(archive.file, (1, 1))
        assert archive.is_whole()
        assert archive.is_whole()
        assert reads.count(".jsa") == 1
        content = bytearray(archive.file.read_bytes())
        content[700] ^= 1
        archive.file.write_bytes(content)
        assert sharing_options(class_path) == ""
        assert not archive.file.exists()
        make_archive(class_path)
        assert java.calls == 2
        assert "SharedArchiveFile" in sharing_options(class_path)

    @pytest.mark.parametrize("notes", ["", "[]", "{}", "null"])
    def test_notes_that_are_none(self, java, class_path: str, notes: str):
        """Without a record of them nothing is known of the archive: it is not used."""
        archive = make_archive(class_path)
        assert archive is not None
        archive.notes.write_text(notes)
        assert sharing_options(class_path) == ""


class TestMaking:
    def test_once(self, java, class_path: str):
        """What is there is not made again."""
        make_archive(class_path)
        make_archive(class_path)
        assert java.calls == 1

    def test_one_process_at_a_time(self, java, class_path: str):
        """A second one goes away at once, and does not wait."""
        archive = class_archive(class_path)
        assert archive is not None
        archive.file.parent.mkdir(parents=True)
        with making._alone(archive.file.with_name("making.lock")) as alone:
            assert alone
            assert make_archive(class_path) is None
        assert java.calls == 0

    def test_what_failed_is_not_tried_by_every_driver(self, java, monkeypatch, class_path: str):
        """The reason is kept for a day; by hand it is tried again."""
        java.works = False
        archive = class_archive(class_path)
        assert archive is not None
        with pytest.raises(ArchiveNotMade, match="no room"):
            make_archive(class_path)
        assert archive.refusal.read_text() == "no room\n"
        started = []
        monkeypatch.setattr(making.subprocess, "Popen", lambda command, **_: started.append(command))
        making._start_making(class_path)
        assert started == []
        os.utime(archive.refusal, (1, 1))
        making._start_making(class_path)
        assert started[0][-2:] == ["--class-path", class_path]
        java.works = True
        make_archive(class_path)
        assert not archive.refusal.exists()
        making._start_making(class_path)
        assert len(started) == 1

    def test_few_are_kept(self, java, machine: Path, class_path: str):
        """Those that were used last; tries that were given up go, too, running ones stay."""
        folder = machine / "cache" / "classes"
        abandoned, running = folder / "making.old", folder / "making.new"
        for number in range(KEPT + 2):
            (machine / "one.jar").write_text("classes" * (number + 1))
            archive = make_archive(class_path)
            assert archive is not None
            os.utime(archive.notes, (number, number))
            abandoned.mkdir(exist_ok=True)
            running.mkdir(exist_ok=True)
            (abandoned / "x").write_text("half")
            os.utime(abandoned, (1, 1))
        make_archive(class_path)
        (machine / "one.jar").write_text("last")
        make_archive(class_path)
        left = list(folder.glob("*.jsa"))
        assert len(left) == KEPT
        assert {json.loads(file.with_suffix(".json").read_text())["sha256"] for file in left}
        assert archive.file in left
        assert not abandoned.exists()
        assert running.exists()

    def test_a_cache_that_cannot_be_written(self, java, monkeypatch, machine: Path, class_path: str):
        """The program says so and ends well; no process is started for it."""
        (machine / "cache").write_text("not a folder")
        assert making.main(["--class-path", class_path]) == 0
        assert java.calls == 0

    def test_only_the_default_makes_by_itself(self, monkeypatch, class_path: str):
        """``use`` and ``off`` start no process when a driver ends."""
        registered = []
        monkeypatch.setattr(making.atexit, "register", lambda *given: registered.append(given))
        for mode in ("use", "off"):
            monkeypatch.setenv(subject.SETTING, mode)
            making.make_after_exit(f"{class_path}:{mode}")
        assert registered == []
        monkeypatch.setenv(subject.SETTING, "auto")
        making.make_after_exit(class_path)
        making.make_after_exit(class_path)
        assert len(registered) == 1


class TestTheList:
    def test_lists_are_merged(self):
        """Each class once, references after classes, and nothing that each run generates."""
        one = "# head\njava/lang/Object\norg/a/B\njdk/proxy2/$Proxy7\n@lambda-proxy org/a/B run\n"
        two = "org/a/B id: 17\n@cp org/a/B 1 2\norg/c/D\norg/c/D$$Lambda$12\ncom/x/E source: /tmp/x.jar\n"
        assert merged_list([one, two]) == "java/lang/Object\norg/a/B\norg/c/D\n@lambda-proxy org/a/B run\n"

    def test_the_packaged_one(self):
        """It has Spark's, Delta's and Java's classes, and says nothing of the machine it was recorded on."""
        names = packaged_list().decode().split("\n")
        for wanted in (
            "java/lang/Object",
            "org/apache/spark/sql/delta/DeltaLog",
            "org/apache/spark/SparkContext",
        ):
            assert wanted in names
        assert len(names) > 15_000
        assert not [name for name in names if name.startswith("/") or " /" in name]
