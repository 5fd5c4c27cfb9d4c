"""A sink that is no table can't be asked what it has: where its flow's position is lost, it is sent nothing until somebody says so."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest
from tests.pipeline_case import PipelineCase
from tests.prepared_pipeline import Damage, both, conditions_of, cut, empty, lose, put

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


# What happens to the checkpoint, the first finding, and whether the next start makes it good.
DAMAGES: list[tuple[Damage, str, bool]] = [
    (lose("metadata"), "METADATA_LOST", True),
    (put("metadata", '{"id":"00000000-0000-0000-0000-000000000000"}'), "QUERY_ID_CHANGED", False),
    (empty("commits/{last}"), "COMMITS_DAMAGED", True),
    (lose("commits/{last}"), "COMMITS_DAMAGED", True),
    (lose("commits"), "COMMITS_DAMAGED", True),
    (empty("offsets/{last}"), "OFFSETS_DAMAGED", True),
    (cut("offsets/{before}"), "OFFSETS_DAMAGED", True),
    (both(cut("offsets/{last}"), lose("commits/{last}")), "OFFSETS_DAMAGED", False),
    (put("offsets/{last}", "v3\n{}\n{}"), "OFFSETS_TOO_NEW", False),
    (lose("offsets/{last}"), "OFFSETS_LOST", True),
    (lose("offsets/{before}"), "OFFSETS_LOST", True),
    (lose("offsets"), "OFFSETS_LOST", True),
    (shutil.rmtree, "CHECKPOINT_LOST", False),
]


def test_each_damage_has_its_name(pipeline: Any, capsys: pytest.CaptureFixture[str]):
    """As for a table; but a batch that may come a second time is sent only when somebody said so. A lost mark is written back
    where the event log has its batch: nothing comes twice. Where both logs are lost it is refused, and nothing sent: laid down
    anew from the event log nothing comes twice, and told to begin again all does; so it is where the flow's state is gone as well.
    """
    case: PipelineCase = pipeline(SOURCE)
    for number in (1, 2):
        case.land([{"id": number}])
        assert case.update().state == "COMPLETED"
    folder = case.checkpoint("mailbox", "send").live_folder()
    shutil.copytree(folder, case.root / "kept")
    for damage, condition, mended in DAMAGES:
        assert conditions_of(case, "send") == []
        damage(folder)
        assert conditions_of(case, "send")[:1] == [(condition, mended)], condition
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(case.root / "kept", folder)
    lose("commits")(folder)
    case.land([{"id": 3}])
    assert case.update().state == "COMPLETED"
    assert sent(case) == [1, 2, 3]

    error = lose_both_logs(case, 4)
    assert "--action rebuild" in error
    roots = [f"--storage={case.storage}", f"--warehouse={case.warehouse}"]
    code = main(["repair", str(case.folder), "send", "--action=rebuild", "--yes", "--json", *roots])
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (code, answer["state"]) == (0, "COMPLETED")
    assert answer["repair"]["doubled"].startswith("can't be known: the sink does not record")
    assert case.update().state == "COMPLETED"
    assert sent(case) == [1, 2, 3, 4]
    assert conditions_of(case, "send") == []

    assert "--reset-checkpoint send" in lose_both_logs(case, 5)
    assert case.update(reset_flows=("send",)).state == "COMPLETED"
    assert (sent(case)[:4], sorted(sent(case)[4:])) == ([1, 2, 3, 4], [1, 2, 3, 4, 5])
    assert conditions_of(case, "send") == []

    nothing_of_it_is_left(case)


def nothing_of_it_is_left(case: PipelineCase) -> None:
    """With the flow's state all is forgotten but what the event log has: nothing is sent, the position is laid down anew from there,
    and a sink that is dropped begins anew.
    """
    before = sent(case)
    shutil.rmtree(case.checkpoint("mailbox", "send").folder)
    case.land([{"id": 6}])
    report = case.update()
    assert (report.state, report["send"].status, sent(case)) == ("FAILED", "FAILED", before)
    assert "CHECKPOINT_LOST" in str(report["send"].error)
    roots = [f"--storage={case.storage}", f"--warehouse={case.warehouse}"]
    assert main(["repair", str(case.folder), "send", "--action=rebuild", "--yes", *roots]) == 0
    assert case.update().state == "COMPLETED"
    assert sent(case) == [*before, 6]
    assert main(["drop", str(case.folder), "mailbox", "--yes", *roots]) == 0
    assert case.update().state == "COMPLETED"
    assert (sent(case)[: len(before) + 1], sorted(sent(case)[len(before) + 1 :])) == (
        [*before, 6],
        [1, 2, 3, 4, 5, 6],
    )


def lose_both_logs(case: PipelineCase, number: int) -> str:
    """Offsets and commits are gone and a row is new: the sink is sent nothing; the message of its flow."""
    before = sent(case)
    lose("offsets", "commits")(case.checkpoint("mailbox", "send").live_folder())
    case.land([{"id": number}])
    assert conditions_of(case, "send")[:1] == [("CHECKPOINT_LOST", False)]
    code, answer = case.run()
    states = {flow["flow"]: flow["state"] for flow in answer["flows"]}
    assert (code, states) == (3, {"bronze": "COMPLETED", "send": "FAILED"})
    assert sent(case) == before
    error = next(str(flow["error"]) for flow in answer["flows"] if flow["flow"] == "send")
    assert "CHECKPOINT_LOST" in error
    return error
