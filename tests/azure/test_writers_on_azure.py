"""Two JVMs write the same names on Azurite at once, by the classes that commits and checkpoints go through."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest
from py4j import java_gateway
from py4j.protocol import get_return_value
from tests.azure.azurite import Azurite, address, azurite
from tests.azure.certificates import certificates
from tests.racing_writers import REFUSALS, Writer, at_once, java

from headwater.runtime.object_store import store_settings
from headwater.storage.access import object_store
from headwater.storage.azure import hadoop_login
from headwater.storage.delta_tables import append, delta_table

ROUNDS = 25
ROOT = f"abfss://{address('races')}"


@pytest.fixture(scope="module", params=["http", "https"])
def reached(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """An emulator without TLS, as one has it on loopback; and one with it, through the classes that Azure itself is reached by."""
    folder = tmp_path_factory.mktemp(request.param)
    with azurite(folder, certificates(folder) if request.param == "https" else None) as running:
        running.make_container("races")
        yield running


def test_python_reaches_it(reached: Azurite):
    """obstore and delta-rs write and read, with the certificate that ``SSL_CERT_FILE`` names where there is TLS."""
    import pyarrow as pa

    place = reached.place("races", "python")
    (place / "a").write_text("there")
    assert (place / "a").read_text() == "there"
    append(place / "table", pa.table({"id": [1]}))
    assert delta_table(place / "table").version() == 0


@pytest.fixture(scope="module")
def writers(reached: Azurite) -> Iterator[list[Writer]]:
    """Two JVMs."""
    environment = reached.environment()
    settings = store_settings(object_store("abfss", {}, environment))
    if reached.trusted is not None:
        settings["spark.driver.extraJavaOptions"] = reached.trusted.java_options
    with pytest.MonkeyPatch.context() as patched, ExitStack() as machines:
        # A session of this process has errors of every JVM translated by its own, which has other objects by the same names.
        patched.setattr(java_gateway, "get_return_value", get_return_value)
        login = hadoop_login(environment)
        made = [Writer(machines.enter_context(java(settings)), settings, ROOT, login) for _ in range(2)]
        for folder in REFUSALS:
            made[0].checkpoints.mkdirs(made[0].path(folder))
        yield made


@pytest.mark.parametrize("kind", sorted(REFUSALS))
def test_one_of_two_writers_wins_each_name(writers: list[Writer], kind: str):
    """Also where both write the same bytes; the winner's content stays, and the next writer is refused as well."""
    for number in range(ROUNDS):
        key = f"{kind}/{number:020}.json"
        texts = ["the same"] * 2 if number % 2 else ["of the first", "of the second"]
        pairs = zip(writers, texts, strict=True)
        ends = at_once([partial(getattr(writer, kind), key, text) for writer, text in pairs])
        assert sorted(ends) == ["", REFUSALS[kind]], (number, ends)
        assert writers[0].read(key) == texts[ends.index("")]
    assert at_once([partial(getattr(writers[1], kind), f"{kind}/{0:020}.json", "later")]) == [REFUSALS[kind]]


def test_what_is_cancelled_or_may_be_replaced(writers: list[Writer]):
    """A cancelled file never appears and can be written by another; one that may replace another does."""
    first, second = writers
    cancelled = first.checkpoints.createAtomic(first.path("record/3"), False)
    cancelled.write(bytearray(b"half"))
    cancelled.cancel()
    second.record("record/3", "whole")
    assert first.read("record/3") == "whole"
    again = first.checkpoints.createAtomic(first.path("record/3"), True)
    again.write(bytearray(b"newer"))
    assert second.read("record/3") == "whole"
    again.close()
    assert second.read("record/3") == "newer"
