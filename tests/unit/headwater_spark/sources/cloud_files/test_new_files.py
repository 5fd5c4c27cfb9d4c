"""What a checkpoint and a folder say of the batch that is to come again."""

from __future__ import annotations

import json
from pathlib import Path

from headwater_spark.sources.cloud_files.new_files import planned_file_missing


def test_files_of_the_batch_to_come_again(tmp_path: Path):
    """Only a file of a batch that was planned and not committed counts as taken away, none of those before it."""
    checkpoint, landing = tmp_path / "checkpoint", tmp_path / "landing"
    landing.mkdir()
    assert not planned_file_missing(checkpoint)
    for batch in (0, 1):
        (landing / f"{batch}.json").touch()
        entry = {"path": f"file://{landing}/{batch}.json", "timestamp": 1, "batchId": batch}
        for folder, text in {
            "offsets": f'v1\n{{}}\n{{"logOffset":{batch}}}\n{{"topic":{{"0":1}}}}',
            "sources/0": f"v1\n{json.dumps(entry)}",
            "commits": 'v1\n{"nextBatchWatermarkMs":0}',
        }.items():
            if folder != "commits" or batch == 0:
                (checkpoint / folder).mkdir(parents=True, exist_ok=True)
                (checkpoint / folder / str(batch)).write_text(text)
    assert not planned_file_missing(checkpoint)
    (landing / "0.json").unlink()
    assert not planned_file_missing(checkpoint)
    (landing / "1.json").unlink()
    assert planned_file_missing(checkpoint)
    (checkpoint / "commits" / "1").write_text('v1\n{"nextBatchWatermarkMs":0}')
    assert not planned_file_missing(checkpoint)
