"""Whether the definition on disk is still the one that runs.

Decision 0174.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from headwater.errors import HeadwaterError


@dataclass
class DefinitionWatch:
    """Looks at the definition now and then.

    Args:
        running: the hash of the definition that runs.
        read: gives the hash of the one on disk; raises HeadwaterError or OSError where it can't be read.
        check: raises HeadwaterError where the one on disk can't be run, as far as that shows before Spark resolves it.
    """

    running: str
    read: Callable[[], str]
    check: Callable[[], object]
    _seen: str = field(default="", init=False)
    _refused: str = field(default="", init=False)

    def look(self) -> tuple[bool, str]:
        """Whether another definition is to be run, and what is wrong with the one on disk (each trouble once).

        A definition counts when two looks have seen the same: files are written one after another.
        """
        try:
            now = self.read()
        except (HeadwaterError, OSError) as error:
            return False, self._trouble("", error)
        before, self._seen = self._seen, now
        if now == self.running or now != before:
            return False, ""
        try:
            self.check()
        except (HeadwaterError, OSError) as error:
            return False, self._trouble(now, error)
        return True, ""

    def _trouble(self, definition: str, error: Exception) -> str:
        text = error.what if isinstance(error, HeadwaterError) else str(error)
        refused, self._refused = self._refused, f"{definition}: {text}"
        return "" if refused == self._refused else text
