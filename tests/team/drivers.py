"""The drivers that run on this machine, counted while the services of Compose files run."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator

import psutil

SUBMIT, LAUNCHER = "org.apache.spark.deploy.SparkSubmit", "org.apache.spark.launcher.Main"


class Drivers(threading.Thread):
    """Counts the drivers of each pipeline, twice a second: the JVMs that run an update of it. ``together``: those that were several of one
    pipeline, or more than the pool has slots."""

    def __init__(self, pipelines: Collection[str], slots: int = 2) -> None:
        super().__init__(daemon=True)
        self.pipelines, self.slots = pipelines, slots
        self.ended = threading.Event()
        self.most_of_one, self.most_of_all = 0, 0
        self.together: list[str] = []
        self.forks = 0
        self.now: dict[str, psutil.Process] = {}
        self.seen: set[str] = set()

    def run(self) -> None:
        while not self.ended.wait(0.5):
            all_found = list(_drivers(self.pipelines))
            found = [(name, process) for name, process, _ in without_forks(all_found)]
            self.forks += len(all_found) - len(found)
            counts = Counter(name for name, _ in found)
            self.now = dict(found)
            self.seen |= set(self.now)
            self.most_of_one = max(self.most_of_one, *counts.values(), 0)
            self.most_of_all = max(self.most_of_all, len(found))
            if max(counts.values(), default=0) > 1 or len(found) > self.slots:
                self.together.append(f"{time.strftime('%X')} {found}")


def without_forks(found: list[tuple[str, psutil.Process, int]]) -> list[tuple[str, psutil.Process, int]]:
    """Drivers but for those whose parent is one: a JVM that starts a program (`chmod`) is there twice until that has begun."""
    pids = {process.pid for _, process, _ in found}
    return [one for one in found if one[2] not in pids]


def _drivers(pipelines: Collection[str]) -> Iterator[tuple[str, psutil.Process, int]]:
    for process in psutil.process_iter(["cmdline", "ppid"]):
        words = process.info["cmdline"] or []
        # Before it there is a JVM that only makes the command line of this one.
        if (
            SUBMIT in words
            and LAUNCHER not in words
            and any(word.endswith("run_update.py") for word in words)
        ):
            for name in pipelines:
                if any(word.endswith(f"pipelines/{name}") for word in words):
                    yield name, process, process.info["ppid"]
