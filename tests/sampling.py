"""Which tests of a folder run: a seeded sample where all would take too long, all of them with HEADWATER_WHOLE=1."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

WHOLE = bool(os.environ.get("HEADWATER_WHOLE"))


# The same sample in each run, until all of them fit into the time of `make test`; the soak has every test.
SAMPLE_SEED = os.environ.get("HEADWATER_SAMPLE") or "a92a8675c0a0"


def report_header() -> str:
    """How to run the same tests again."""
    return "all tests" if WHOLE else f"HEADWATER_SAMPLE={SAMPLE_SEED} (HEADWATER_WHOLE=1 for all tests)"


def keep_sample(
    config: pytest.Config, items: list[pytest.Item], folder: Path, *, rotating: int, others: int = 1
) -> None:
    """Leave the sample in ``items``.

    Of a test marked ``matrix(n)`` n cases are kept. Where the whole folder runs, and not a test that was named: one in
    ``rotating`` of those marked ``rotates``, and one in ``others`` of the rest, but all that are marked ``always``; those of
    ``matrix(n, one_in=m)`` in one of m samples.
    """
    if WHOLE:
        return
    here = [item for item in items if item.path.is_relative_to(folder)]
    whole_folder = any(folder.is_relative_to(Path(given).resolve()) for given in config.args)
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in here:
        if item.get_closest_marker("matrix") is not None:
            cases[item.nodeid.partition("[")[0]].append(item)
    left_out: set[str] = set()
    for name, found in sorted(cases.items()):
        mark = found[0].get_closest_marker("matrix")
        assert mark is not None
        turn = random.Random(f"{SAMPLE_SEED} turn of {name}").randrange(mark.kwargs.get("one_in", 1))
        left_out |= _left_out_of(found, 0 if whole_folder and turn else mark.args[0], name)
    if whole_folder:
        free = [
            item for item in here if not {"matrix", "always"} & {mark.name for mark in item.iter_markers()}
        ]
        turning = [item for item in free if item.get_closest_marker("rotates") is not None]
        rest = [item for item in free if item.get_closest_marker("rotates") is None]
        left_out |= _left_out_of(turning, -(-len(turning) // rotating), "rotates")
        left_out |= _left_out_of(rest, -(-len(rest) // others), "rest")
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]


def _left_out_of(found: Sequence[pytest.Item], count: int, name: str) -> set[str]:
    """All but ``count`` of these, chosen by the seed."""
    kept = random.Random(f"{SAMPLE_SEED} {name}").sample(found, min(count, len(found)))
    return {item.nodeid for item in found} - {item.nodeid for item in kept}
