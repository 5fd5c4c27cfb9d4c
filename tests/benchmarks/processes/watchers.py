"""A loop of triggers as a triggerer runs them: python -m tests.benchmarks.processes.watchers KIND SECONDS FOLDER...

KIND: ``nothing``; ``files``: Airflow's own trigger for a file, one for each folder; ``data``: a watch of the pipeline of each folder's name.
In the middle of the time a file lands in each folder, which has to be announced once. What is printed: resident memory in MB with the
second, by how many seconds the loop was late, the CPU seconds, and the announcements.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import tests.dags.airflow_home  # noqa: F401 - before Airflow
from airflow.jobs import triggerer_job_runner  # noqa: F401 - what a triggerer has loaded
from airflow.providers.standard.triggers.file import FileDeleteTrigger
from airflow.triggers.shared_stream import AdvanceItem, AdvanceOutcome
from tests.benchmarks.frame.process_memory import resident

from headwater_airflow.triggers.data_arrival import DataArrivalTrigger

POLL_SECONDS = 1.0
_STORED = AdvanceOutcome(acked=1, failed=0)
_BEAT = 0.05


async def files(folder: Path) -> AsyncIterator[str]:
    """Airflow's trigger ends with its event, and Airflow makes another."""
    while True:
        async for _ in FileDeleteTrigger(str(folder / "new.json"), poke_interval=POLL_SECONDS).run():
            yield folder.name


async def data(folder: Path) -> AsyncIterator[str]:
    """A watch as the triggerer makes it of what the database has."""
    arguments = json.loads(json.dumps(DataArrivalTrigger(folder.name).serialize()[1]))
    stream = DataArrivalTrigger.create_shared_stream_producer(arguments)
    async for payload, news in stream.open_stream():
        yield payload["pipeline"]
        await stream.advance([AdvanceItem(news, _STORED)])


async def run(kind: str, seconds: float, folders: list[Path]) -> None:
    """Watch for so many seconds, and print what was seen."""
    announced: list[str] = []

    async def watch(folder: Path) -> None:
        async for name in {"files": files, "data": data}[kind](folder):
            announced.append(name)  # noqa: PERF401 - a watch does not end, and each of its events counts at once

    tasks = [asyncio.create_task(watch(folder)) for folder in folders if kind != "nothing"]
    began, used = time.monotonic(), time.process_time()
    memory: list[tuple[float, float]] = []
    late: list[float] = []
    landed = False
    while (now := time.monotonic() - began) < seconds:
        if not memory or now - memory[-1][0] >= 1.0:
            memory.append((now, resident()))
        if not landed and now >= seconds / 2:
            landed = True
            for folder in folders:
                (folder / "new.json").write_text("{}")
        before = time.monotonic()
        await asyncio.sleep(_BEAT)
        late.append(time.monotonic() - before - _BEAT)
    used = time.process_time() - used
    failed = [task for task in tasks if task.done()]
    assert not failed, failed[0].exception()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print(json.dumps({"memory": memory, "late": late, "cpu": used, "announced": sorted(announced)}))


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], float(sys.argv[2]), [Path(name) for name in sys.argv[3:]]))
