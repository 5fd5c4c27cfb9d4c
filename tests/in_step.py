"""Many small scenarios in one pipeline: each has a source file, a landing folder and names of its own; their updates are shared.

A scenario is a generator that is called with its :class:`Share`. Where it would run an update it yields, and goes on with what
that came to for its own flows; a selection that it yields (``{"full_refresh": ("t",)}``) is an update of its own tables alone, at
once. The words ``names`` of its text stand for tables and flows of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

from tests.pipeline_case import PRELUDE, PipelineCase, UpdateReport

from headwater.checkpoints.layout import FlowCheckpoint
from headwater_spark.execution.outcome import FlowOutcome

Selected = dict[str, tuple[str, ...]]
Steps = Generator[Selected | None, UpdateReport, None]


class Share(PipelineCase):
    """A scenario's part of the pipeline; looks like a pipeline of its own."""

    def __init__(self, whole: PipelineCase, name: str, names: Sequence[str]) -> None:
        self.whole, self.own_name = whole, name
        self._words = re.compile(rf"\b({'|'.join(names)})(_quarantine)?\b")
        super().__init__(whole.root / "shares" / name)
        self.folder, self.storage, self.warehouse = whole.folder, whole.storage, whole.warehouse

    @property
    def file(self) -> str:
        """The name of its source file."""
        return f"transformations/{self.own_name}.py"

    def own(self, text: str) -> str:
        """A text with the scenario's own names in it."""
        return self._words.sub(rf"\1_{self.own_name}\2", text)

    def rewrite(self, source: str) -> None:
        """Write its source, or put another text in its place."""
        prelude = PRELUDE.replace("spark.conf.get('landing')", repr(str(self.landing)))
        self.write(self.file, prelude + self.own(source))

    def leave(self) -> None:
        """Its flows run no more."""
        (self.folder / self.file).unlink()

    def line_of(self, fragment: str, name: str = "") -> str:
        """Where a piece of its source stands: ``file:line``."""
        return super().line_of(fragment, name or self.file)

    def table(self, name: str) -> Path:
        """The folder of one of its tables."""
        return super().table(self.own(name))

    def checkpoint(self, table: str, flow: str | None = None) -> FlowCheckpoint:
        """The checkpoint of one of its flows."""
        return super().checkpoint(self.own(table), None if flow is None else self.own(flow))

    def events(self, **conditions: Any) -> list[dict[str, Any]]:
        """Records of the event log; ``flow`` is one of its own."""
        if "flow" in conditions:
            conditions["flow"] = self.own(conditions["flow"])
        return super().events(**conditions)

    def update(self, **_: Any) -> UpdateReport:
        """A scenario yields instead."""
        raise AssertionError("yield for an update")

    def report(self, report: UpdateReport) -> UpdateReport:
        """What an update came to for its own flows, under the names of its text."""
        return OwnReport(report, self)


class OwnReport(UpdateReport):
    """An update, as one of its scenarios sees it."""

    def __init__(self, report: UpdateReport, share: Share) -> None:
        super().__init__(report.result)
        own = [one for one in report.result.outcomes if one.flow.endswith(f"_{share.own_name}")]
        object.__setattr__(self, "_own", {one.flow.removesuffix(f"_{share.own_name}"): one for one in own})

    _own: dict[str, FlowOutcome]

    def __getitem__(self, flow: str) -> FlowOutcome:
        return self._own[flow]

    @property
    def statuses(self) -> dict[str, str]:
        """How each of its flows ended."""
        return {name: str(outcome.status) for name, outcome in self._own.items()}

    @property
    def state(self) -> str:
        """COMPLETED if all of them have, else FAILED."""
        return "COMPLETED" if set(self.statuses.values()) == {"COMPLETED"} else "FAILED"

    @property
    def error(self) -> Exception | None:
        """The first error of its flows."""
        return next((outcome.error for outcome in self._own.values() if outcome.error), None)


Scenario = Callable[[Share], Steps]


def in_step(root: Path, names: Sequence[str], scenarios: Sequence[Scenario]) -> None:
    """Run scenarios side by side, with as many updates as the longest of them has.

    Raises an ExceptionGroup with what failed; each error has a note with its scenario and what that was to prove.
    """
    whole = PipelineCase(root)
    running = []
    for number, scenario in enumerate(scenarios):
        share = Share(whole, f"s{number}", names)
        running.append((scenario, share, scenario(share)))
    report: UpdateReport | None = None
    errors: list[Exception] = []
    while True:
        left = []
        for scenario, share, steps in running:
            try:
                selected = steps.send(share.report(report)) if report else next(steps)
                while selected is not None:
                    own = {key: tuple(map(share.own, given)) for key, given in selected.items()}
                    selected = steps.send(share.report(whole.update(**own)))
            except StopIteration:
                share.leave()
            except Exception as error:
                error.add_note(f"{scenario.__name__}: {scenario.__doc__}")
                errors.append(error)
                share.leave()
            else:
                left.append((scenario, share, steps))
        if not left:
            break
        running, report = left, whole.update()
    if errors:
        raise ExceptionGroup("scenarios that failed", errors)
