"""How a program that runs users' sources begins and ends as a process: sources print, and start threads that never end."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

from headwater.contract.printing import json_alone, prepare_streams

# How long threads of the sources may go on when all is done; an update that never ends would keep a worker's slot.
PATIENCE = 15.0
_log = logging.getLogger(__name__)


def run_process(main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Call ``main`` with the process's arguments and end with its exit code.

    With ``--json`` standard output has its answer alone: what else is printed, by whomever, goes to standard error.
    """
    argv = sys.argv[1:]
    prepare_streams()
    if "--json" in argv:
        json_alone()
    code = main(argv)
    # Python waits for every thread that is no daemon; this one ends the process where that takes too long.
    threading.Thread(target=_end_anyway, args=(code,), daemon=True, name="headwater-end").start()
    sys.exit(code)


def _end_anyway(code: int) -> None:
    time.sleep(PATIENCE)
    own = (threading.main_thread(), threading.current_thread())
    left = [thread.name for thread in threading.enumerate() if thread not in own and not thread.daemon]
    _log.warning(
        "All is done, and the process does not end: %s. It is ended now; start threads of your own with daemon=True.",
        f"still at work are the threads {', '.join(left)}" if left else "an exit handler is still at work",
    )
    sys.stdout.flush()
    os._exit(code)
