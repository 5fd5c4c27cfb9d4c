"""What holds for all tests."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from tests.captured_streams import forget_captured_streams

# How long an example takes says how busy the machine is, and nothing of the code.
# The same examples in each run; `make soak` gives a seed, and has other ones.
settings.register_profile(
    "any machine",
    deadline=None,
    derandomize="HEADWATER_SEED" not in os.environ,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any machine")

# `make` has made the archive of classes before; no process is to make one beside the tests.
os.environ.setdefault("HEADWATER_CLASS_SHARING", "use")


def pytest_unconfigure() -> None:
    """Before the captured output is closed: nothing is to be logged into it while the process ends."""
    forget_captured_streams()
