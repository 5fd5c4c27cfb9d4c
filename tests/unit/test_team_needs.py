"""``make test-team`` and ``make test-celery`` say what they need before they start anything."""

from __future__ import annotations

import pytest
from tests.team.needs import missing


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        ({}, []),
        ({"root": False, "namespaces": False}, ["root"]),
        ({"namespaces": False}, ["namespaces"]),
        ({"postgres": False}, ["Postgres"]),
        ({"which": lambda name: name != "ip", "namespaces": False}, ["the program ip: apt install iproute2"]),
        (
            {"which": lambda _: None, "postgres": False, "root": False},
            [*["the program"] * 7, "root", "Postgres"],
        ),
        ({"which": lambda name: name != "redis-server"}, []),
        (
            {"which": lambda name: name != "redis-server", "redis": True},
            ["the program redis-server: apt install redis-server"],
        ),
    ],
)
def test_all_that_is_missing_is_said(machine: dict, expected: list[str]):
    """One line each, with what to install or how to run it; nothing where all is there."""
    lines = missing(
        **{"root": True, "namespaces": True, "postgres": True, "which": lambda _: "/bin/x", **machine}
    )
    assert [line.startswith(start) for line, start in zip(lines, expected, strict=True)] == [True] * len(
        lines
    )
