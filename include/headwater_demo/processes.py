"""The child processes of the local stack: started with a log file each, and all ended at the end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

import psutil

# Every process of a stack carries the stack's folder under this name in its environment, and so do
# the processes that those start: that is how all of them are found again, and nobody else's.
STACK_VARIABLE = "HEADWATER_STACK"
_GRACE_SECONDS = 25.0


@dataclass
class Child:
    """A running child process, the leader of a process group of its own."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def is_running(self) -> bool:
        """Whether the process itself has not ended yet."""
        return self.process.poll() is None

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the process and those that stayed in its group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def stop(self, grace_seconds: float = _GRACE_SECONDS) -> None:
        """Asks the process to end, and kills its group if it takes longer than the grace."""
        if self.is_running:
            # Airflow's scheduler waits for its tasks until it is asked a second time.
            for _ in range(2):
                self.signal_group(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(grace_seconds / 2)
        self.kill()

    def kill(self) -> None:
        """End the process group at once."""
        self.signal_group(signal.SIGKILL)
        self.process.wait()

    def log_tail(self, lines: int = 20) -> str:
        """Return the last lines that the process wrote."""
        return (
            "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""
        )


def start_child(
    name: str, command: Sequence[str | Path], log: Path, *, env: Mapping[str, str], cwd: Path | None = None
) -> Child:
    """Start a process in its own group, its output appended to ``log``; its files are private to the user."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=0o077,
        )
    return Child(name, process, log)


@dataclass
class ProcessTable:
    """All processes of one stack; as a context manager it ends every one of them, however it is left.

    Attributes:
        folder: the stack's folder, which marks its processes.
        children: what was started, in the order of starting.

    """

    folder: Path
    children: list[Child] = field(default_factory=list)
    _closed: bool = False

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment for a process of this stack: ours, the mark, and ``extra``."""
        # Without SPT_NOENV, processes that set their title overwrite the place where the mark is read.
        return {**os.environ, **(extra or {}), STACK_VARIABLE: str(self.folder), "SPT_NOENV": "1"}

    def start(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
    ) -> Child:
        """Start a process that belongs to this stack. ``log`` is the file for what it writes."""
        if self._closed:
            # Threads that start processes may still be running.
            raise RuntimeError(f"{name} is not started: the stack is being ended")
        child = start_child(name, command, log, env=self.environment(env), cwd=cwd)
        self.children.append(child)
        return child

    def dead(self) -> list[Child]:
        """Those that have ended without being stopped."""
        return [child for child in self.children if not child.is_running]

    def stop_all(self) -> None:
        """End all processes of this stack; none can be started in it afterwards."""
        self._closed = True
        for child in self.children:
            child.signal_group(signal.SIGTERM)
        for child in reversed(self.children):
            child.stop()
        self.children.clear()
        self.sweep()

    def sweep(self) -> int:
        """End every process that carries this stack's mark, also of an earlier run that was killed.

        Returns:
            How many there were.

        """
        marked = [process for process in psutil.process_iter() if self._is_ours(process)]
        for process in marked:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate()
        _, alive = psutil.wait_procs(marked, timeout=10)
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(alive, timeout=5)
        return len(marked)

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            mark: str | None = process.environ().get(STACK_VARIABLE)
        except (psutil.Error, OSError):
            return False
        return mark == str(self.folder) and process.pid != os.getpid()

    def __enter__(self) -> Self:
        self._earlier = signal.signal(signal.SIGTERM, _leave)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A second Ctrl-C must not leave half of them behind.
        interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            self.stop_all()
        finally:
            signal.signal(signal.SIGINT, interrupt)
            signal.signal(signal.SIGTERM, self._earlier)


def _leave(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
