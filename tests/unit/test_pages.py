"""The pages for readers have no gaps, no dead links, and no block of code that nobody reads."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import yaml
from tests.page_blocks import blocks, page_files

from headwater.commands.command_line import _parser
from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.graph.lakeflow_spec import _IDLE

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


def test_pages_are_reachable():
    """Each page is linked from another one."""
    pages = [CHECKOUT / "README.md", *(CHECKOUT / "docs").rglob("*.md")]
    linked = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in pages
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
        if "://" not in target and target.partition("#")[0]
    }
    assert not [page.name for page in pages[1:] if page.resolve() not in linked]


def test_what_code_says_about_pages():
    """Where a message or a docstring names a page, or a heading of it, it is there."""
    code = [
        path
        for folder in ("include", "jobs", "plugins", "dags")
        for path in (CHECKOUT / folder).rglob("*.py")
    ]
    broken = []
    for path in code:
        for page, anchor in re.findall(r"(docs/[\w/-]+\.md)(?:#([\w-]+))?", path.read_text(encoding="utf-8")):
            file = CHECKOUT / page
            if not file.is_file() or (anchor and anchor not in headings(file)):
                broken.append(f"{path.name}: {page}#{anchor}")
    assert not broken


def test_references():
    """Exactly five, each by https, and the change log (features A059)."""
    text = (CHECKOUT / "docs" / "references.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\d\. \[[^]]+\]\(https://\S+\)$", text, re.MULTILINE)) == 5
    assert "](../CHANGELOG.md)" in text
    outside = [
        (page.name, target)
        for page in (CHECKOUT / "docs").rglob("*.md")
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
        if "://" in target and not target.startswith("https://")
    ]
    assert not outside


def test_seeds_pages():
    """The pages that a knowledge base has are there under their names, and say what is ours and what is Lakeflow's (features A050,
    A065, A110, A111).
    """
    names = ("streaming-tables", "lakeflow-pipelines", "layer-specifications", "data-flows", "recipes", "architecture",
             "hand-written-streams", "exercises/README")  # fmt: skip
    for name in names:
        text = (CHECKOUT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        assert re.search(r"\b[Oo]urs?\b", text), name
        assert "Lakeflow" in text or "Databricks" in text, name
    page = (CHECKOUT / "docs" / "streaming-tables.md").read_text(encoding="utf-8")
    matrix = page.partition("## Streaming table or materialized view")[2]
    assert (
        len(re.findall(r"^\| (?!Criterion|---)", matrix.partition("`headwater advise")[0], re.MULTILINE)) == 8
    )
    do, dont = re.findall(r"^\*\*(?:Use|Don't use).*?\n\n(.*?)\n\n", matrix, re.MULTILINE | re.DOTALL)
    assert (do.count("- "), dont.count("- ")) == (6, 5)
    recipes = (CHECKOUT / "docs" / "recipes.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\|---\|---\|\n((?:\|.*\n)+)", recipes, re.MULTILINE)
    assert [table.count("\n") for table in tables[:2]] == [10, 9]
    built = [row.split("|") for row in tables[2].splitlines()]
    assert all("](" in row[2] for row in built), "each has an example (features A003, A104)"
    uses = " ".join(row[1] for row in built)
    for use in ("analytics over history", "daily aggregates", "backfills", "dashboards", "alerts", "events", "fraud", "sensors",
                "change data capture", "ETL", "topics"):  # fmt: skip
        assert use in uses, use
    assert recipes.count("\n> ") == 3
    glossary = (CHECKOUT / "docs" / "glossary.md").read_text(encoding="utf-8")
    for term in ("Delta Lake", "Flume", "streaming source", "Spark engine", "micro-batch", "checkpoint"):
        assert f"| {term} |" in glossary


def test_settings_without_effect():
    """What the page on Lakeflow's pipelines calls that is so, and none that becomes something here."""
    page = (CHECKOUT / "docs" / "lakeflow-pipelines.md").read_text(encoding="utf-8")
    (named,) = re.findall(r"^\| ([^|]+) \| noted, without effect", page, re.MULTILINE)
    assert {word.lower() for word in named.split(", ")} <= set(_IDLE)


RUN = {"file", "test", "streams"}


def test_blocks_of_code():
    """Python compiles, settings are a pipeline's, and commands are those that there are. Blocks with a file or a test are run by
    `tests/integration/test_pages_run.py` and `test_testing_page_is_true.py`.
    """
    parser = _parser()
    for block in blocks():
        if block.language == "python":
            assert not block.use or block.use.partition("=")[0] in RUN, block
            ast.parse(block.text)
        elif block.language == "yaml":
            written = yaml.safe_load(block.text)
            if isinstance(written, dict):
                PipelineSpec.model_validate({"name": "page", **written})
        elif block.language == "bash":
            for line in re.findall(r"^python -m headwater (.*)$", block.text, re.MULTILINE):
                # What a quote opens on one line and closes on another is an argument all the same.
                parser.parse_args(shlex.split(line if line.count('"') % 2 == 0 else line + '"'))


def test_new_pages_run_all_they_show():
    """On the pages of recipes and layers no Python is only shown."""
    shown = [block.page for block in blocks() if block.language == "python" and not block.use]
    run = {block.page for block in blocks() if block.use}
    assert not run & set(shown) - {"testing.md"}


def test_no_example_of_a_pipeline_keeps_its_own_position():
    """Checkpoints are managed: none is named in a pipeline that is shipped, made by `init`, shown on a page or set as an exercise
    (features A016).
    """
    shipped = [
        *(CHECKOUT / "jobs" / "pipelines").rglob("*.py"),
        *(CHECKOUT / "include" / "headwater" / "commands" / "templates").rglob("*.tmpl"),
        *(CHECKOUT / "docs" / "exercises").glob("*.py"),
    ]
    texts = {path.name: path.read_text(encoding="utf-8") for path in shipped} | page_files()
    assert len(texts) > 15
    assert not [
        name for name, text in texts.items() if re.search("checkpoint_?location", text, re.IGNORECASE)
    ]


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
