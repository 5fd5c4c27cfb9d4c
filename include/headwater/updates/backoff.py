"""When a flow of a continuous update starts again after a failure, and when no more.

Decision 0173.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

FIRST_SECONDS = 5.0
LONGEST_SECONDS = 300.0
# Failures in a row that a retry does not help.
MOST_TERMINAL = 5


@dataclass(frozen=True)
class Backoff:
    """The failures of a flow since it last ran well.

    Args:
        first: seconds before the second start; each further wait is twice as long.
        longest: seconds that no wait exceeds.
        most_terminal: after so many terminal failures in a row the flow stays failed. Transient ones end by themselves: there
            is no limit to them.
        failures: in a row.
        terminal: how many of these, in a row, were terminal.
    """

    first: float = FIRST_SECONDS
    longest: float = LONGEST_SECONDS
    most_terminal: int = MOST_TERMINAL
    failures: int = 0
    terminal: int = 0

    def after(self, *, transient: bool, ran_well: bool) -> Backoff:
        """The state after another failure.

        Args:
            transient: whether a retry may help.
            ran_well: whether the flow has written a batch since its last start, or had nothing left to write.
        """
        failures, terminal = (0, 0) if ran_well else (self.failures, self.terminal)
        return replace(self, failures=failures + 1, terminal=0 if transient else terminal + 1)

    @property
    def gives_up(self) -> bool:
        """Whether the flow stays failed."""
        return self.terminal >= self.most_terminal

    @property
    def seconds(self) -> float:
        """How long to wait before the next start."""
        return min(self.first * 2.0 ** min(self.failures - 1, 60), self.longest)
