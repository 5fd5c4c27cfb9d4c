"""A whole small update with the archive of classes, against the same update without it."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headwater.runtime.class_sharing import SETTING, shareable
from headwater.runtime.jars import ensure_jars
from headwater.runtime.java import java_environment
from headwater.runtime.shared_classes import make_archive

HERE = Path(__file__).parent / "two_tables"
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
TARGET = 0.85


def _update(root: Path, sharing: str) -> float:
    """Seconds of a first update of two tables, from the command to its end; what it wrote is checked."""
    command = [
        sys.executable, "-m", "headwater", "run", str(HERE), "--json", "--param", f"landing={root / 'landing'}",
        "--storage", str(root / sharing / "storage"), "--warehouse", str(root / sharing / "warehouse"),
    ]  # fmt: skip
    started = time.monotonic()
    subprocess.run(
        command, check=True, capture_output=True, timeout=300, env={**os.environ, SETTING: sharing}
    )
    seconds = time.monotonic() - started
    tables = root / sharing / "warehouse" / "bench"
    assert [DeltaTable(str(tables / name)).to_pyarrow_table().num_rows for name in ("t1", "t2")] == [500, 479]
    return seconds


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("java", ["system", "pypi"])
def test_sharing_classes_is_worth_it(java: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the archive an update takes at most 0.85 of the wall time without, medians of interleaved runs."""
    monkeypatch.setenv("HEADWATER_JAVA", java)
    java_environment()
    archive = make_archive(shareable(os.pathsep.join(str(jar) for jar in ensure_jars("spark"))))
    assert archive is not None
    assert archive.is_whole()
    pairs = []
    for number in range(ROUNDS):
        root = tmp_path / str(number)
        (root / "landing").mkdir(parents=True)
        rows = (json.dumps({"id": n, "customer": f"c{n % 7}", "amount": n - 20.5}) for n in range(500))
        (root / "landing" / "lot.json").write_text("\n".join(rows))
        # Who goes first changes from run to run.
        order = ("use", "off") if number % 2 else ("off", "use")
        seconds = {sharing: _update(root, sharing) for sharing in order}
        pairs.append((seconds["use"], seconds["off"]))
        print(f"{java}: {seconds['use']:.1f} s with, {seconds['off']:.1f} s without")
    with_archive, without = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(shared / alone for shared, alone in pairs)
    size = archive.file.stat().st_size / 1e6
    print(
        f"{java}: {with_archive:.1f} s with, {without:.1f} s without, ratio {ratio:.2f} ({len(pairs)} pairs), archive {size:.0f} MB"
    )
    assert ratio <= TARGET, f"an update with the archive takes {ratio:.2f} of one without"
