"""A unit test that starts a JVM fails, whichever way it takes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater_spark.session import start_session


def test_a_session_of_spark():
    """Neither Spark's own way to a session nor ours gives one."""
    for start in (SparkSession.builder.getOrCreate, lambda: start_session("unit", {})):
        with pytest.raises(pytest.fail.Exception, match="starts a JVM"):
            start()


@pytest.mark.parametrize("program", ["java", "spark-submit", "keytool"])
def test_a_program_that_is_one(tmp_path: Path, program: str):
    """Started as a process, by name or by path; what the code under test catches does not hide it."""
    (tmp_path / program).write_text("#!/bin/sh\n")
    (tmp_path / program).chmod(0o755)
    with pytest.raises(pytest.fail.Exception, match="starts a JVM"):
        subprocess.run([str(tmp_path / program), "-jar", "x"], check=False)
    assert not issubclass(pytest.fail.Exception, Exception)


def test_which_java_there_is(tmp_path: Path):
    """A Java may be asked for its version: that is how one is found."""
    (tmp_path / "java").write_text("#!/bin/sh\necho 21\n")
    (tmp_path / "java").chmod(0o755)
    answer = subprocess.run([str(tmp_path / "java"), "-version"], capture_output=True, text=True, check=False)
    assert answer.stdout == "21\n"
