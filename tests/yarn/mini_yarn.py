"""Hadoop's MiniYARNCluster: a real resource manager and node manager on loopback. Needs a JDK, and 85 MB of jars once."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.runtime.cache import cache_root
from headwater.runtime.class_sharing import spark_home
from headwater.runtime.ivy import Coordinate, retrieve
from headwater.runtime.jar_lock import fingerprint, pinned_jars, verify
from headwater.runtime.java import java_environment

HERE = Path(__file__).parent
_START_SECONDS = 120


def _jars() -> Path:
    """The folder of the pinned jars, fetched on the first call."""
    jars = pinned_jars("mini_yarn", HERE / "jars.lock.json")
    folder = cache_root() / "jars" / f"mini_yarn-{fingerprint(jars)}"
    if not folder.exists():
        fresh = folder.with_suffix(".fetched")
        retrieve(
            [Coordinate(jar.organisation, jar.name, jar.revision) for jar in jars],
            fresh,
            folder.with_suffix(".ivy"),
        )
        for jar in jars:
            (fresh / jar.organisation / jar.name / jar.revision / jar.file_name).rename(fresh / jar.file_name)
        verify(fresh, jars)
        fresh.rename(folder)
    verify(folder, jars)
    return folder


@contextmanager
def mini_yarn(folder: Path) -> Iterator[Path]:
    """Run a cluster inside the block; gives the folder for HADOOP_CONF_DIR."""
    conf, classes = folder / "conf", folder / "classes"
    conf.mkdir(parents=True)
    class_path = f"{classes}:{_jars()}/*:{spark_home()}/jars/*"
    compiler = [
        "javac",
        "-nowarn",
        "-proc:none",
        "-cp",
        class_path,
        "-d",
        str(classes),
        str(HERE / "MiniYarn.java"),
    ]
    subprocess.run(compiler, check=True, capture_output=True)
    log = folder / "yarn.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", class_path, "MiniYarn", str(conf)],
            stdout=stream,
            stderr=stream,
            cwd=folder,
            env={**os.environ, **java_environment()},
            start_new_session=True,
        )
    try:
        ends = time.monotonic() + _START_SECONDS
        while "READY" not in (said := log.read_text(errors="replace")):
            assert process.poll() is None, said[-4000:]
            assert time.monotonic() < ends, said[-4000:]
            time.sleep(0.2)
        yield conf
    finally:
        # Containers lead sessions of their own: only the node manager ends them, when it is asked to stop.
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
