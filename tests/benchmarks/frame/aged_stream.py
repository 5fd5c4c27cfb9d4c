"""Makes a stream from one table to another look as it does after thousands of batches, each of which took in one commit.

Nothing is run for that: the last commit of a table is repeated with files of its own, and the checkpoint is renumbered. What Spark,
Delta and Headwater read of it is as after so many batches: logs of commits, files, the last hundred entries of the checkpoint.

Decision 0202.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from headwater.checkpoints.offsets import numbered
from headwater.files.json_lines import lines_of

# As many entries as Spark keeps of a checkpoint's logs.
_KEPT = 100
_EACH_TABLE_ONCE = ("metaData", "protocol")


def repeat_last_commit(table: Path, version: int) -> None:
    """Append the table's last commit again and again up to a version; the one before it, a multiple of ten, has a checkpoint."""
    log = table / "_delta_log"
    last = max(int(file.stem) for file in log.glob("*.json"))
    lines = lines_of((log / f"{last:020}.json").read_text())
    actions = [action for action in map(json.loads, lines) if not action.keys() & set(_EACH_TABLE_ONCE)]
    for number in range(last + 1, version + 1):
        repeated = [_repeated(table, action, number, number - last) for action in actions]
        (log / f"{number:020}.json").write_text("\n".join(map(json.dumps, repeated)) + "\n")
        if number == version - 1:
            DeltaTable(str(table)).create_checkpoint()


def _repeated(table: Path, action: dict[str, Any], version: int, later: int) -> dict[str, Any]:
    """A line of a commit so many commits later; a file is linked, so that its rows are there once more."""
    if "add" in action:
        path = f"part-{version:05}-repeated.parquet"
        os.link(table / action["add"]["path"], table / path)
        return {"add": action["add"] | {"path": path}}
    if "txn" in action:
        return {"txn": action["txn"] | {"version": action["txn"]["version"] + later}}
    if "commitInfo" in action:
        info = action["commitInfo"]
        batch = int(info["operationParameters"].get("epochId", 0)) + later
        parameters = info["operationParameters"] | {"epochId": str(batch)}
        return {"commitInfo": info | {"operationParameters": parameters, "txnId": f"repeated-{version}"}}
    return action


def last_batch(table: Path) -> int:
    """The batch of the stream that made the table's last commit."""
    newest = max((table / "_delta_log").glob("*.json"))
    actions = map(json.loads, lines_of(newest.read_text()))
    return next(int(action["txn"]["version"]) for action in actions if "txn" in action)


def renumber_checkpoint(checkpoint: Path, batch: int, source_version: int) -> None:
    """Make a batch the newest of a checkpoint: it ended after a version of its Delta source, those before it a version earlier each."""
    for log in ("offsets", "commits"):
        folder = checkpoint / log
        lines = lines_of((folder / str(max(numbered(folder)))).read_text())
        for file in list(folder.iterdir()):
            file.unlink()
        for number in range(max(0, batch - _KEPT + 1), batch + 1):
            if log == "offsets":
                place = {
                    "reservoirVersion": source_version + 1 - (batch - number),
                    "index": -1,
                    "isStartingVersion": False,
                }
                lines[-1] = json.dumps(json.loads(lines[-1]) | place)
            (folder / str(number)).write_text("\n".join(lines))
