"""A whole small update with the archive of classes, against the same update without it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.benchmarks.frame.bench import Bench
from tests.benchmarks.frame.comparison import at_most
from tests.benchmarks.frame.programs import FLOORS
from tests.benchmarks.frame.runs import Run, timed_process

from headwater.runtime.class_sharing import SETTING
from headwater.runtime.java import java_environment
from headwater.runtime.shared_classes import make_archive
from headwater.runtime.submit import driver_class_path

HERE = Path(__file__).parent / "two_tables"
WITH, WITHOUT = "with the archive", "without"


def test_class_sharing(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the archive an update takes at most 0.85 of the time without, on this machine's Java and on the one from PyPI."""
    for java in ("system", "pypi"):
        monkeypatch.setenv("HEADWATER_JAVA", java)
        java_environment()
        archive = make_archive(driver_class_path())
        assert archive is not None
        assert archive.is_whole()
        part = f"Java of {'this machine' if java == 'system' else 'PyPI'}"
        root = tmp_path / java
        contenders = {
            name: lambda number, name=name, root=root: _update(root / f"{name}{number}", name)
            for name in (WITH, WITHOUT)
        }
        bench.interleaved(part, contenders, share=0.5, most=5)
        bench.compare(part, WITH, WITHOUT, at_most(0.85))
        bench.report(f"megabytes of the archive, {part}", round(archive.file.stat().st_size / 1e6))
    monkeypatch.delenv("HEADWATER_JAVA")
    bench.finish()


def _update(root: Path, name: str) -> Run:
    """A first update of two tables, from the command to its end; what it wrote is checked."""
    (root / "landing").mkdir(parents=True)
    rows = (json.dumps({"id": n, "customer": f"c{n % 7}", "amount": n - 20.5}) for n in range(500))
    (root / "landing" / "lot.json").write_text("\n".join(rows))
    run = timed_process(
        [sys.executable, "-m", "headwater", "run", HERE, "--json", "--param", f"landing={root / 'landing'}",
         "--storage", root / "storage", "--warehouse", root / "warehouse"],
        {**FLOORS, SETTING: "use" if name == WITH else "off"},
    )  # fmt: skip
    tables = root / "warehouse" / "bench"
    assert [DeltaTable(str(tables / name)).to_pyarrow_table().num_rows for name in ("t1", "t2")] == [500, 479]
    return run
