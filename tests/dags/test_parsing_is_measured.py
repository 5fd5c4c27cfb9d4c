"""The benchmark of parsing runs at a size of nothing, so that it can't rot."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.benchmarks import test_parse
from tests.benchmarks.frame.bench import Bench


def test_two_pipelines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pipelines and two files of one task are parsed without an error, each DAG once."""
    bench = Bench("parse", smoke=True)
    test_parse.measure(bench, tmp_path, monkeypatch)
    assert bench.comparisons[0].rounds == 1
