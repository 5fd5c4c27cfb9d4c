"""A watch and a reader that are killed between any two of their steps, in processes of their own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

# What Airflow does with a watch and a reader, step by step: its database and the reader's effect are files.
PROGRAM = """
import json, os, signal, sys
from pathlib import Path
from headwater.change_feed.change_filter import ChangeFilter
from headwater.change_feed.change_watch import ChangeWatch
from headwater.change_feed.consumer import ChangeConsumer
from headwater.storage.place import place_of

folder, kill_at = Path(sys.argv[1]), sys.argv[3]
table, home = place_of(sys.argv[2]), place_of(sys.argv[4])

def step(name):
    if name == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)

def note(name, found):
    with open(folder / name, "a") as file:
        file.write(json.dumps([found.start_version, found.end_version]) + "\\n")
        file.flush()
        os.fsync(file.fileno())

watch = ChangeWatch("shop.orders", table, ChangeFilter(), home / "watch.json")
reader = ChangeConsumer(home / "reader.json", "shop.orders", table)
step("before the look")
news = watch.look()
step("before the event is stored")
if news:
    note("events", news)
step("before the watch remembers")
if news:
    watch.acknowledge(news)
step("before the reader begins")
stored = (folder / "events").read_text().splitlines() if (folder / "events").exists() else []
done = int((folder / "runs").read_text()) if (folder / "runs").exists() else 0
for _ in range(done, len(stored)):
    with reader.alone():
        unfinished = reader.has_begun()
        while found := reader.next_range():
            step("before the work")
            note("work", found)
            step("before the position moves")
            reader.done(found)
            if not unfinished:
                break
            unfinished = False
    done += 1
    (folder / "runs").write_text(str(done))
step("after all")
"""
STEPS = (
    "before the look",
    "before the event is stored",
    "before the watch remembers",
    "before the reader begins",
    "before the work",
    "before the position moves",
    "after all",
)


@pytest.mark.parametrize("step", STEPS)
def test_every_commit_is_worked_on_and_only_a_repetition_has_the_same_bounds(orders, home, tmp_path, step):
    """Killed there at every commit: nothing is lost, and repetitions are recognised by their end."""

    def run(kill_at=""):
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(orders.path), kill_at, str(home)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == (-signal.SIGKILL if kill_at else 0), done.stderr

    def lines(name):
        return [tuple(json.loads(line)) for line in (tmp_path / name).read_text().splitlines()]

    for ids in ([1, 2], [3]):
        orders.append(ids)
        run(step)
        run()
    work, events = lines("work"), lines("events")
    assert list(dict.fromkeys(work)) == [(0, 0), (1, 1)]
    assert {end for _, end in events} == {0, 1}
    assert len(work) == (4 if step == "before the position moves" else 2)
    assert len(events) == (4 if step == "before the watch remembers" else 2)
