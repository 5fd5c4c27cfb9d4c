"""What holds for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from tests.captured_streams import forget_captured_streams

# How long an example takes says how busy the machine is, and nothing of the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_unconfigure() -> None:
    """Before the captured output is closed: nothing is to be logged into it while the process ends."""
    forget_captured_streams()
