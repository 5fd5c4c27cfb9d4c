"""How many requests each kind of look takes, counted by the server; the bounds are of decision 0185."""

from __future__ import annotations

import itertools
import time

import pytest
from tests.unit.headwater.metrics.conftest import delta_offset, done, pipeline, write_checkpoint, write_rows

from headwater.commands.command_line import main
from headwater.contract.arguments import RunArguments
from headwater.doctor.start_facts import flow_start
from headwater.event_log.reader import updates
from headwater.preflight.checks import examine
from headwater.storage.delta_tables import delta_table
from headwater.updates.news import has_news
from headwater.updates.quiet_update import record_quiet_update

__all__ = ["done", "pipeline"]
_NUMBERS = itertools.count()


@pytest.fixture
def roots(s3):
    """Both roots in one bucket."""
    number = next(_NUMBERS)
    return s3.place("places", f"count-{number}/storage"), s3.place("places", f"count-{number}/warehouse")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))


def quiet(done, times=1):
    for _ in range(times):
        record_quiet_update(done.project, done.manifest, RunArguments("x"), time.monotonic())


def run(done, *verb):
    main(
        [
            *verb,
            str(done.project.folder),
            f"--storage={done.project.storage}",
            f"--warehouse={done.project.warehouse}",
        ]
    )


@pytest.fixture
def old(done):
    """A pipeline with twelve updates behind it, and forty batches in each checkpoint."""
    for name in ("bronze", "silver"):
        folder = done.checkpoint(name).epoch_folder(0)
        entry = (folder / "offsets" / "0").read_text()
        for batch in range(1, 40):
            write_checkpoint(folder, batch, [])
            (folder / "offsets" / str(batch)).write_text(entry)
    quiet(done, 12)
    return done


def test_an_update_without_news(old, s3):
    """30 requests for the check and the records of an update that finds nothing, also the first from this machine."""
    for _ in range(3):
        with s3.counted() as requests:
            assert not has_news(old.project).moved
            quiet(old)
        assert requests.total() <= 30, requests
    assert len(updates(old.project.state_folder)) == 15


def test_a_status(old, s3, capsys):
    """25 requests, once the log's records are on this machine."""
    run(old, "status")
    quiet(old)
    with s3.counted() as requests:
        run(old, "status")
    assert requests.total() <= 25, requests


def test_a_lag(old, s3, capsys):
    """Three requests a flow and five; three flows."""
    with s3.counted() as requests:
        run(old, "lag")
    assert requests.total() <= 3 * 3 + 5, requests


def test_checks_before_a_start(old, s3):
    """Eleven requests a flow, with what the checks are made of: a listing of its checkpoint and of two logs, twice of its own, and the files that have to be right."""
    old.complete("silver", sink_version=0)
    (old.checkpoint("silver").epoch_folder(0) / "metadata").write_text('{"id":"of-the-test"}')
    with s3.counted() as requests:
        start = flow_start(old.project, old.manifest, old.flow("silver"))
        assert examine(start) == []
    assert requests.total() <= 11, requests


@pytest.mark.parametrize(
    ("verb", "most"),
    [(("checkpoints",), 12), (("checkpoints", "verify"), 30), (("events",), 4), (("quality",), 4)],
)
def test_other_verbs(old, s3, capsys, verb, most):
    """A look at three flows and their log takes a few requests, however long they have run."""
    run(old, "events")
    with s3.counted() as requests:
        run(old, *verb)
    assert requests.total() <= most, requests


def test_maintenance_of_a_table(old, s3, capsys):
    """A look at one table takes 80 requests at most, however many files it has: nobody asks for its files one by one."""
    for value in range(30):
        write_rows(old.table("bronze"), value)
    delta_table(old.table("bronze")).create_checkpoint()
    for value in range(5):
        write_rows(old.table("bronze"), value)
    position = delta_offset(old.table("bronze"), delta_table(old.table("bronze")).version() + 1)
    write_checkpoint(old.checkpoint("silver").epoch_folder(0), 40, [position])
    with s3.counted() as requests:
        run(old, "maintenance", "--tables", "bronze", "--retention", "0 hours")
    assert requests.total() <= 80, requests
