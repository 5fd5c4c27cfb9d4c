"""The README's first pipeline works as it is pasted, and its second update is told not to be needed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pipeline_case import read_rows

CHECKOUT = Path(__file__).resolve().parents[2]


def shell_block(heading: str) -> str:
    """The first shell block below a heading of the README."""
    section = (CHECKOUT / "README.md").read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1]
    block = re.search(r"```bash\n(.*?)```", section, re.DOTALL)
    assert block
    return block[1]


@pytest.mark.timeout(240)
def test_paste_the_readme(tmp_path: Path):
    """Pasted into a shell, the block makes both tables with the rows that the README names."""
    environment = tmp_path / ".venv" / "bin"
    environment.mkdir(parents=True)
    # The reader's shell is in the checkout; here only the environment's programs are beside the new folder.
    programs = Path(sys.executable).parent
    (environment / "activate").write_text(f'PATH="{programs}:$PATH"\n')
    block = shell_block("Your first pipeline")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    shell = subprocess.run(
        ["bash", "-e"],
        check=False,
        input=block,
        cwd=tmp_path,
        env=clean,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert shell.returncode == 0, shell.stderr
    warehouse = tmp_path / ".headwater" / "warehouse" / "shop"
    assert [row[:2] for row in read_rows(warehouse / "sales")] == [(1, "pear")]
    assert [(product, str(total)) for product, total in read_rows(warehouse / "revenue")] == [
        ("pear", "3.50")
    ]

    again = subprocess.run(
        [f"{programs}/python", "-m", "headwater", "run", "shop"],
        check=False, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert "no source has moved" in again.stdout + again.stderr
