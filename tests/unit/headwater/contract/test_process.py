"""How a driver's process ends: with its report alone on standard output, whatever the sources print or leave running."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import atexit, subprocess, sys, threading, time
from headwater.contract import process
from headwater.contract.printing import print_json

process.PATIENCE = 1.0

def main(argv):
    print("printed by a source")
    subprocess.run([sys.executable, "-c", "print('printed by a child')"], check=True)
    atexit.register(print, "printed at the end")
    if "--hang" in argv:
        threading.Thread(target=time.sleep, args=(600,), name="poller").start()
    if "--json" in argv:
        print_json({"argv": argv, "sign": "\\u00fc"})
    return 3

process.run_process(main)
"""


def ended(tmp_path: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run the program to its end."""
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    command = [sys.executable, str(program), *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_with_json_standard_output_is_one_object(tmp_path: Path):
    """What sources, their processes and their exit handlers print goes to standard error."""
    done = ended(tmp_path, "--json")
    assert json.loads(done.stdout) == {"argv": ["--json"], "sign": "\u00fc"}
    assert done.stdout.count("\n") == 1
    for printed in ("by a source", "by a child", "at the end"):
        assert f"printed {printed}" in done.stderr
    assert done.returncode == 3


def test_without_json_everything_is_as_it_is_printed(tmp_path: Path):
    """For people, what a source prints stands where it always stands."""
    done = ended(tmp_path)
    assert "printed by a source" in done.stdout
    assert done.returncode == 3


def test_a_thread_of_the_sources_holds_nobody_up(tmp_path: Path):
    """A thread that is still at work when all is done is named, and left behind; the exit code is the answer's."""
    done = ended(tmp_path, "--hang", "--json")
    assert done.returncode == 3
    assert "poller" in done.stderr
    assert json.loads(done.stdout)["argv"] == ["--hang", "--json"]
