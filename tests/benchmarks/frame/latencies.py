"""How long events took from their sending to the commit of the table that has them, by the table's log.

The row of an event has its ``id`` and when it was ``sent`` (seconds since 1970). A commit counts from the moment at which its file
was written: the same clock of the same machine.

Decision 0202.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq

from headwater.files.json_lines import lines_of


def event_latencies(table: Path) -> dict[int, float]:
    """Seconds by the event's id, of all events in a table to which rows were only added; an error where it has one twice."""
    latencies: dict[int, float] = {}
    for commit in sorted((table / "_delta_log").glob("*.json")):
        written = commit.stat().st_mtime_ns / 1e9
        for line in lines_of(commit.read_text()):
            action = json.loads(line)
            assert "remove" not in action, f"{commit.name} removes rows"
            if "add" in action:
                file = table / unquote(action["add"]["path"])
                rows = pq.ParquetFile(file).read(columns=["id", "sent"])
                for number, sent in zip(rows["id"].to_pylist(), rows["sent"].to_pylist(), strict=True):
                    assert number not in latencies, f"event {number} is in the table twice"
                    latencies[number] = written - sent
    return latencies


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that so large a share of all values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
