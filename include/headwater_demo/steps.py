"""Shows how far the stack is: one line a step, with its time; moving on a terminal, plain elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


@dataclass
class Step:
    """One line of the display."""

    name: str
    _progress: Progress
    _task: TaskID
    detail: str = ""

    def say(self, detail: str) -> None:
        """Show what the step is at."""
        self.detail = detail
        self._progress.update(self._task, detail=escape(detail))


class Steps:
    """The display; used as a context manager, its steps may run in several threads."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[detail]}"),
            console=console,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Show a step while the block runs; a step whose block raises is marked as failed."""
        started = time.monotonic()
        task = self._progress.add_task(name, total=1, detail="")
        step = Step(name, self._progress, task)
        try:
            yield step
        except BaseException:
            self._progress.update(task, description=f"[red]{name}")
            self._progress.stop_task(task)
            raise
        self._progress.update(task, completed=1)
        if not self._console.is_terminal:
            self._console.print(
                f"✓ {name} ({time.monotonic() - started:.1f} s) {step.detail}",
                soft_wrap=True,
                highlight=False,
                markup=False,
            )
