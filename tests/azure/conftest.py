"""One emulator for all tests of this folder. It is no part of ``make test``: `make test-azure` runs it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.azure.azurite import Azurite, azurite


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """A running emulator with a container ``places``; the environment leads to it."""
    with azurite(tmp_path_factory.mktemp("azurite")) as running:
        running.make_container("places")
        yield running
