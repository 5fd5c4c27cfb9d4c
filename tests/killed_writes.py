"""A program: runs a verb of Headwater from one state of a folder again and again, killed before one of its writes, and then to its end.

Called with the folder, a flow's checkpoint below it, and the verb. Prints a line of JSON: what the verb left unharmed, and what was left after
each kill and a second run. It is a process of its own since forks of one that has used delta-rs stand still.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import deltalake  # noqa: F401 - loaded once, for all children
import pyarrow.parquet  # noqa: F401

import headwater.commands.repair
import headwater.event_log.reader
import headwater.event_log.writer  # noqa: F401
from headwater.commands.command_line import main

_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate"}
_SPREAD, _LAST = 5, 7
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_QUERY_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _writes(event: str, arguments: tuple[Any, ...]) -> bool:
    if event == "open":
        return bool((arguments[2] or 0) & _WRITING)
    return event in _CHANGES


def _kill_before(number: int, folder: Path) -> list[str]:
    """End this process, as SIGKILL does, before its ``number``-th write below a folder; 0 for never. Gives the list of its writes."""
    writes: list[str] = []

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if _writes(event, arguments) and str(arguments[0]).startswith(str(folder)):
            writes.append(str(arguments[0]))
            if len(writes) == number:
                os._exit(9)

    sys.addaudithook(hook)
    return writes


def _in_a_child(do: Callable[[], Any]) -> Any:
    """What it gives, as JSON; None where the child was killed."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.close(read)
        os.write(write, json.dumps(do()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def _run(verb: list[str], folder: Path, killed: int = 0) -> dict[str, Any]:
    writes = _kill_before(killed, folder)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
        code = main(verb)
    return {"code": code, "writes": len(writes), "said": said.getvalue()[-1000:]}


def _live(checkpoint: Path) -> dict[str, str]:
    """The files of the live epoch, without what is another in each repair."""
    epoch = checkpoint / str(json.loads((checkpoint / "flow.json").read_text())["epoch"])
    files = (file for file in epoch.rglob("*") if file.is_file() and not file.name.startswith("."))
    return {
        str(file.relative_to(epoch)): _QUERY_ID.sub("ID", file.read_text(errors="replace")) for file in files
    }


def _chosen(writes: int) -> list[int]:
    """The last ones, where one state becomes the other, and some of the copies before."""
    return sorted({*range(1, writes, max(writes // _SPREAD, 1)), *range(max(writes - _LAST, 1), writes + 1)})


def killed_among(folder: Path, checkpoint: Path, verb: list[str]) -> dict[str, Any]:
    """What the verb leaves unharmed (``whole``, ``live``), and ``after`` each kill: the killed run, the second one, the live files."""
    kept = folder.with_name(f"{folder.name}.before")
    shutil.copytree(folder, kept)

    def again() -> None:
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)

    whole = _in_a_child(lambda: _run(verb, folder))
    left = {"whole": whole, "live": _live(checkpoint), "after": []}
    for number in _chosen(whole["writes"]):
        again()
        killed = _in_a_child(lambda number=number: _run(verb, folder, number))
        left["after"].append([number, killed, _in_a_child(lambda: _run(verb, folder)), _live(checkpoint)])
    return left


if __name__ == "__main__":
    print(json.dumps(killed_among(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])))
