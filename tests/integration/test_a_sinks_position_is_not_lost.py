"""A sink that is no table can't be asked what it has: where its flow's position is lost, it is sent nothing until somebody says so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.pipeline_case import PipelineCase
from tests.prepared_pipeline import conditions_of, lose

from headwater.commands.command_line import main

SOURCE = """
import pathlib

@dp.table
def bronze():
    return spark.readStream.schema("id INT").json(LANDING)

@dp.foreach_batch_sink
def mailbox(df, batch_id):
    with pathlib.Path(LANDING).with_name("mail").open("a") as mail:
        mail.writelines(f"{row.id}\\n" for row in df.collect())

@dp.append_flow(target="mailbox")
def send():
    return dp.read_stream("bronze")
"""


def sent(case: PipelineCase) -> list[int]:
    """What the sink was given, in its order."""
    return [int(line) for line in (case.root / "mail").read_text().split()]


@pytest.mark.parametrize("remedy", ["rebuild", "send again"])
def test_both_logs_are_lost(pipeline: Any, capsys: pytest.CaptureFixture[str], remedy: str):
    """Refused, and nothing sent; laid down anew from the event log nothing comes twice, and told to begin again all does."""
    case: PipelineCase = pipeline(SOURCE)
    for number in (1, 2):
        case.land([{"id": number}])
        assert case.update().state == "COMPLETED"
    lose("offsets", "commits")(case.checkpoint("mailbox", "send").live_folder())
    case.land([{"id": 3}])
    assert conditions_of(case, "send")[:1] == [("CHECKPOINT_LOST", False)]
    code, answer = case.run()
    assert (code, {flow["flow"]: flow["state"] for flow in answer["flows"]}) == (
        3,
        {"bronze": "COMPLETED", "send": "FAILED"},
    )
    assert sent(case) == [1, 2]
    told = next(flow["error"] for flow in answer["flows"] if flow["flow"] == "send")
    assert "[CHECKPOINT_LOST]" in told
    if remedy == "rebuild":
        assert "--action rebuild" in told
        roots = [f"--storage={case.storage}", f"--warehouse={case.warehouse}"]
        code = main(["repair", str(case.folder), "send", "--action=rebuild", "--yes", "--json", *roots])
        answer = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert (code, answer["state"], answer["repair"]["doubled"]) == (0, "COMPLETED", "no rows")
        assert case.update().state == "COMPLETED"
        assert sent(case) == [1, 2, 3]
    else:
        assert "--reset-checkpoint send" in told
        assert case.update(reset_flows=("send",)).state == "COMPLETED"
        assert sent(case) == [1, 2, 1, 2, 3]
    assert conditions_of(case, "send") == []
