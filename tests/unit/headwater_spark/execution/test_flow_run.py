"""The names under which one flow writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, run_of

from headwater.checkpoints.flow_identity import FlowIdentity, as_text, names_file
from headwater.definitions.expectation import Expectation, ViolationAction


@pytest.fixture
def renamed(tmp_path: Path):
    """The run of a flow ``orders`` whose table was called ``old_orders`` in the pipeline ``old``, with a rule that quarantines."""
    rule = Expectation("positive", "amount > 0", ViolationAction.QUARANTINE)
    table = dataset(expectations=(rule,))
    context = context_of(tmp_path, table, flows=(flow(),))
    names = names_file(context.pipeline.project.state_folder)
    names.parent.mkdir(parents=True)
    names.write_text(as_text({"orders/orders": FlowIdentity("old", "old_orders")}), encoding="utf-8")
    return run_of(context, table)


def test_a_renamed_flow_fills_its_quarantine_under_its_former_name(renamed):
    """The rows of a batch that is repeated after a rename are recognised by the name that they were written under."""
    assert renamed.quarantine(3).flow == "old_orders"


def test_a_renamed_flow_commits_under_its_former_name(renamed):
    """A batch that is repeated after a rename has the transaction, and the metadata, of its first try."""
    assert renamed.transaction(3, 7).application == "old.old_orders@3"
    assert renamed.metadata() == {"pipeline": "old", "flow": "old_orders"}
