"""How many requests each kind of look takes, counted by the server; the bounds are of decision 0185."""

from __future__ import annotations

import itertools
import json
import time

import pytest
from tests.unit.headwater.metrics.conftest import delta_offset, done, pipeline, write_checkpoint, write_rows

from headwater.commands.command_line import main
from headwater.contract.arguments import RunArguments
from headwater.doctor.start_facts import flow_start
from headwater.event_log.reader import updates
from headwater.preflight.checks import examine
from headwater.preflight.source_checks import source_identity
from headwater.storage.delta_tables import delta_table
from headwater.storage.listing import looked_over
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


def add_batch(folder, number):
    """A batch that read nothing: planned at another time than those before, as every batch is."""
    write_checkpoint(folder, number, [])
    version, metadata, *positions = (folder / "offsets" / "0").read_text().splitlines()
    planned = json.dumps({**json.loads(metadata), "batchTimestampMs": number})
    (folder / "offsets" / str(number)).write_text("\n".join((version, planned, *positions)))


@pytest.fixture
def old(done):
    """A pipeline with twelve updates behind it, and forty batches in each checkpoint."""
    for name in ("bronze", "silver"):
        folder = done.checkpoint(name).epoch_folder(0)
        for batch in range(1, 40):
            add_batch(folder, batch)
    quiet(done, 12)
    return done


def test_an_update_without_news(old, s3):
    """19 requests for the check and the records of an update that finds nothing, the first from this machine; 13 for later ones."""
    for most in (19, 13, 13):
        with s3.counted() as requests:
            assert not has_news(old.project).moved
            quiet(old)
        assert requests.total() <= most, requests
    assert len(updates(old.project.state_folder)) == 15


def test_eight_flows(old, s3):
    """Each further flow is one request more, once what was read of its checkpoint is on this machine; three before that."""
    silver, entry = old.flow("silver"), old.manifest.dataset("silver")
    names = [f"copy{number}" for number in range(5)]
    flows = [silver.model_copy(update={"name": name, "target": name}) for name in names]
    datasets = [entry.model_copy(update={"name": name, "location": f"shop/{name}"}) for name in names]
    old.manifest = old.manifest.model_copy(
        update={"flows": (*old.manifest.flows, *flows), "datasets": (*old.manifest.datasets, *datasets)}
    )
    old.store_manifest()
    position = delta_offset(old.table("bronze"), 1)
    for name in names:
        write_rows(old.table(name), 1)
        write_checkpoint(old.checkpoint(name).epoch_folder(0), 0, [position])
        old.complete(name)
    for most in (19 + 3 * 5, 13 + 5):
        with s3.counted() as requests:
            assert not has_news(old.project).moved
            quiet(old)
        assert requests.total() <= most, requests


def test_the_files_that_were_read(old, s3):
    """Of a file source's log each entry is asked for once from a machine, however many there are: a later look takes none for them."""
    for number in range(1, 9):
        old.land(f"{number}.json")
        old.take_in(f"{number}.json", batch=number)
    write_checkpoint(old.checkpoint("bronze").epoch_folder(0), 40, [{"logOffset": 8}])
    assert not has_news(old.project).moved
    with s3.counted() as requests:
        assert not has_news(old.project).moved
    assert requests.total() <= 8, requests


def test_a_status(old, s3, capsys):
    """14 requests, once the log's records are on this machine; two of them ask whether something is half-way."""
    run(old, "status")
    quiet(old)
    with s3.counted() as requests:
        run(old, "status")
    assert requests.total() <= 14, requests


def test_files_that_were_taken_in(old, s3, capsys):
    """Once what the batches left is on this machine, as for a status; before that, one for each file of Spark's about a batch."""
    for most in (105, 4):
        with s3.counted() as requests:
            run(old, "files")
        assert requests.total() <= most, requests


def test_a_lag(old, s3, capsys):
    """Three requests a flow and two; three flows. Once what was read is on this machine, one a flow and two."""
    for most in (3 * 3 + 2, 3 + 2):
        with s3.counted() as requests:
            run(old, "lag")
        assert requests.total() <= most, requests


def test_checks_before_a_start(old, s3):
    """Ten requests a flow, with what the checks are made of: a listing of its checkpoint and of two logs, and the files that have to be right.

    Seven (one of them a pipeline's) where this machine made the start before this one: then only what the last batch wrote is new.
    """
    old.complete("silver", sink_version=0)
    folder = old.checkpoint("silver").epoch_folder(0)
    (folder / "metadata").write_text('{"id":"of-the-test"}')
    source = flow_start(old.project, old.manifest, old.flow("silver")).sources[0]
    read = source_identity(source, offset=delta_offset(old.table("bronze"), 1))
    assert "written" in read
    old.checkpoint("silver").update_state(sources=[read])
    for batch, most in ((None, 10), (40, 7), (None, 5)):
        if batch is not None:
            add_batch(folder, batch)
        with s3.counted() as requests, looked_over(old.checkpoint("silver").folder):
            start = flow_start(old.project, old.manifest, old.flow("silver"))
            assert examine(start) == []
        assert requests.total() <= most, requests


@pytest.mark.parametrize(
    ("verb", "most"),
    [(("checkpoints",), 12), (("checkpoints", "verify"), 38), (("events",), 4), (("quality",), 4)],
)
def test_other_verbs(old, s3, capsys, verb, most):
    """A look at three flows and their log takes a few requests, however long they have run."""
    run(old, "events")
    with s3.counted() as requests:
        run(old, *verb)
    assert requests.total() <= most, requests


def test_maintenance_of_a_table(old, s3, capsys):
    """A look at one table takes 70 requests at most, however many files it has: nobody asks for its files one by one."""
    for value in range(30):
        write_rows(old.table("bronze"), value)
    delta_table(old.table("bronze")).create_checkpoint()
    for value in range(5):
        write_rows(old.table("bronze"), value)
    position = delta_offset(old.table("bronze"), delta_table(old.table("bronze")).version() + 1)
    write_checkpoint(old.checkpoint("silver").epoch_folder(0), 40, [position])
    with s3.counted() as requests:
        run(old, "maintenance", "--tables", "bronze", "--retention", "0 hours")
    assert requests.total() <= 70, requests
