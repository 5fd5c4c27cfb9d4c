"""The checks before a start stay quick where logs have grown: no JVM, and few files are read."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.counted_work import counted_work
from tests.unit.headwater.metrics.conftest import (
    Pipeline,
    delta_offset,
    done,
    pipeline,
    write_checkpoint,
    write_rows,
)

from headwater.doctor.start_facts import flow_start
from headwater.preflight.checks import examine

__all__ = ["done", "pipeline"]

COMMITS = 1000


def grow(table: Path, feed: bool) -> None:
    """Give a table so many commits, and the checkpoint of its log that Delta would have made of late."""
    write_rows(table, 3)
    if feed:
        DeltaTable(str(table)).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    log = table / "_delta_log"
    text = (log / f"{1:020d}.json").read_text()
    for version in range(DeltaTable(str(table)).version() + 1, COMMITS):
        # Two equal commits would be damage; of one size, so that they are compared.
        (log / f"{version:020d}.json").write_text(
            re.sub(r'("timestamp":)\d{13}', rf"\g<1>{10**12 + version}", text)
        )
        if version == COMMITS - 5:
            DeltaTable(str(table)).create_checkpoint()


@pytest.mark.parametrize("feed", [False, True])
def test_a_thousand_commits(done: Pipeline, feed: bool):
    """Of the source and of the table, 300 of the source's unread; also where their changes are read: those alone are opened."""
    for name in ("bronze", "silver"):
        grow(done.table(name), feed)
    done.complete("silver", sink_version=COMMITS - 1)
    folder = done.checkpoint("silver").epoch_folder(0)
    (folder / "metadata").write_text('{"id":"of-the-test"}')
    for batch in range(100):
        write_checkpoint(folder, batch, [delta_offset(done.table("bronze"), COMMITS - 400 + batch)])

    def checks() -> None:
        start = flow_start(done.project, done.manifest, done.flow("silver"))
        assert start.sources is not None
        options = {"readChangeFeed": "true"} if feed else {}
        damages = examine(replace(start, sources=(replace(start.sources[0], options=options),)))
        assert [damage.condition for damage in damages] == []

    work = counted_work(checks)
    print(work)
    # The unread ones are read once for what is in them, and once more where their changes are.
    assert work.opened < (900 if feed else 300)
    assert work.listed < 50
    assert work.calls < 100_000
