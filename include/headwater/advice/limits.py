"""What bounds a batch, by the kind of its source, and how another bound is written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from headwater.advice.facts import SourceFact
from headwater.advice.finding import Place, Setting
from headwater.definitions.source import SourceKind

# By kind of source: the option, and the measure of what is unread that it counts.
_COUNTED: Mapping[SourceKind, tuple[str, str]] = {
    SourceKind.FILES: ("maxFilesPerTrigger", "files"),
    SourceKind.DATASET: ("maxFilesPerTrigger", "files"),
    SourceKind.DELTA: ("maxFilesPerTrigger", "files"),
    SourceKind.KAFKA: ("maxOffsetsPerTrigger", "records"),
    SourceKind.KINESIS: ("maxRecordsPerTrigger", "records"),
}
BY_BYTES = "maxBytesPerTrigger"
# What a stream of a Delta table takes where no limit is given.
_DELTA_FILES = 1000


@dataclass(frozen=True)
class Limit:
    """A bound: the option, how much it lets through, and in which measure; ``given``: by the user, not by default."""

    option: str
    value: int
    measure: str
    given: bool = True


def limit_of(source: SourceFact) -> Limit | None:
    """The bound in items (files, records) that holds for a source; None where there is none."""
    if source.kind not in _COUNTED:
        return None
    option, measure = _COUNTED[source.kind]
    value = source.limits.get(option, "")
    if value.isdigit() and int(value) > 0:
        given = not (source.cloud_files and int(value) == _DELTA_FILES)
        return Limit(option, int(value), measure, given)
    if source.kind in (SourceKind.DATASET, SourceKind.DELTA) and BY_BYTES not in source.limits:
        return Limit(option, _DELTA_FILES, measure, given=False)
    return None


def countable(source: SourceFact) -> str | None:
    """The option that bounds a batch of this source in items; None where there is none."""
    return _COUNTED[source.kind][0] if source.kind in _COUNTED else None


def limit_setting(source: SourceFact, option: str, value: int) -> Setting:
    """The option with its value, in the spelling of the read, and what it replaces."""
    prefix = "cloudFiles." if source.cloud_files else ""
    others = [name for name in source.limits if name in (*(o for o, _ in _COUNTED.values()), BY_BYTES)]
    replaced = [f'.option("{prefix}{name}", {source.limits[name]})' for name in others]
    if source.cloud_files and source.limits.get(option) == str(_DELTA_FILES):
        replaced = []  # the default, which stands in no source
    return Setting(Place.READ, f'.option("{prefix}{option}", {value})', " and ".join(replaced))


def round_up(value: float) -> int:
    """The next number with one digit that counts, or two where the first is 1: 23 is 30, 104 is 110, 7 is 7."""
    if value <= 1:
        return 1
    step: int = 10 ** max(0, math.floor(math.log10(value)))
    step = step // 10 if value < 2 * step and step >= 10 else step
    return math.ceil(value / step) * step
