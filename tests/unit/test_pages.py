"""The pages for readers have no gaps and no dead links."""

from __future__ import annotations

import re
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def test_placeholders():
    """No page has a gap that someone meant to fill in later."""
    pages = [CHECKOUT / "README.md", CHECKOUT / "CHANGELOG.md", *(CHECKOUT / "docs").rglob("*.md")]
    gaps = {page.name: re.findall(r"@[A-Z_]{3,}@|\bTODO\b|\bTBD\b", page.read_text()) for page in pages}
    assert not {name: texts for name, texts in gaps.items() if texts}


def test_links():
    """Each relative link of a page leads to a file, and to a heading where it names one."""
    pages = [CHECKOUT / "README.md", *(CHECKOUT / "docs").rglob("*.md")]
    broken = []
    for page in pages:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists() or (anchor and anchor not in headings(file)):
                broken.append(f"{page.name}: {target}")
    assert not broken


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
