"""The blocks of code in the pages for readers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
# It has a pipeline and a test of its own.
OWN_PIPELINE = "testing.md"
_BLOCK = re.compile(r"^```(\w*)[ ]?(\S*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class PageBlock:
    """A block of a page. ``use``: the word behind the language, which says how it is run."""

    page: str
    language: str
    use: str
    text: str


def blocks() -> list[PageBlock]:
    """Every block of every page, in order."""
    pages = sorted(page for page in DOCS.rglob("*.md") if page.parent.name != "decisions")
    return [
        PageBlock(page.relative_to(DOCS).as_posix(), *match)
        for page in pages
        for match in _BLOCK.findall(page.read_text(encoding="utf-8"))
    ]


def page_files() -> dict[str, str]:
    """The files of the pipeline that the pages show together."""
    files = [
        (block.use.removeprefix("file="), block.text)
        for block in blocks()
        if block.use.startswith("file=") and block.page != OWN_PIPELINE
    ]
    assert len(dict(files)) == len(files), "two pages show a file of the same name"
    return dict(files)
