"""A source that can't be run: the line, what went wrong, and what was probably meant."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from headwater.errors import SourceFileFailed
from headwater_spark.loader.loader import run_source
from headwater_spark.loader.source_text import read_sources


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ('spark.readstream.format("delta")', "Did you mean 'readStream'?"),
        ("dp.tabel", "Did you mean 'table'?"),
        ("1 / 0", "Correct the source and run again."),
    ],
)
def test_the_remedy_is_about_the_line(tmp_path: Path, line: str, remedy: str):
    """A misspelled name at the top of a source, as in guides, has the nearest; other errors have none."""

    class Session:
        readStream = SimpleNamespace()  # noqa: N815 - Spark's spelling

    path = tmp_path / "main.py"
    path.write_text(f"from headwater import pipelines as dp\n\n(\n    {line}\n)\n")
    with pytest.raises(SourceFileFailed) as caught:
        run_source(tmp_path, path, read_sources(path, tmp_path), {"spark": Session()}, {str(path)})
    assert caught.value.where == f"{path}:4"
    assert caught.value.remedy == remedy
