"""The records of decisions are indexed, of one form, and cited by the code that they bind."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = CHECKOUT / "docs" / "decisions"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))
CODE = (
    *("include", "jobs", "plugins", "dags"),
    *("tests/benchmarks", "tests/celery", "tests/fault_injection", "tests/team"),
)


def test_form():
    """Each record has its number and title as heading, then what was decided."""
    wrong = [
        record.name
        for record in RECORDS
        if not re.match(rf"# {record.name[:4]}\. [^\n]+\n\n## Decision\n\n\S", record.read_text())
    ]
    assert RECORDS
    assert not wrong


def test_index():
    """The index has a line for each record, with its title, and no other."""
    lines = re.findall(
        r"^\| \[(\d{4})\]\(([^)]+)\) \| (.+) \| in force[^|]*\|$",
        (FOLDER / "README.md").read_text(),
        re.MULTILINE,
    )
    titles = {record.name: record.read_text().split("\n", 1)[0][len("# 0000. ") :] for record in RECORDS}
    assert {name: title for _, name, title in lines} == titles
    assert all(name.startswith(number) for number, name, _ in lines)
    assert len(lines) == len(RECORDS)


def test_citations():
    """Code cites each record that is there, and none that is not."""
    files = subprocess.run(
        ["git", "ls-files", "--", *CODE], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout.split()
    texts = [
        (CHECKOUT / name).read_text(errors="ignore") for name in files if name.endswith((".py", ".java"))
    ]
    cited = {number for text in texts for number in re.findall(r"[Dd]ecision (\d{4})\b", text)}
    assert cited == {record.name[:4] for record in RECORDS}
