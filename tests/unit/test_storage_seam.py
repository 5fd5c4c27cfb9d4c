"""What lies below storage or warehouse is reached through ``headwater.storage`` alone (decision 0184)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
FLOORS = ("include/headwater", "jobs/headwater_spark", "plugins/headwater_airflow")
# Packages that have nothing to do with either root, or are the seam.
OUTSIDE = (
    "include/headwater/storage/",
    "include/headwater/runtime/",  # jars, Java, caches of this machine
    "include/headwater/verification/",  # the pipeline's own folder
    "include/headwater/testing/",
    "jobs/headwater_spark/testing/",  # a workspace of its own on this machine
)
_OF_OS = {
    *("listdir", "scandir", "walk", "stat", "lstat", "open", "link", "rename", "replace", "unlink", "remove"),
    *("makedirs", "mkdir", "rmdir", "utime", "access", "path", "symlink"),
}
# Where calls of the operating system stay, and on what.
ALLOWED = {
    "include/headwater/files/atomic_files.py": "the write of a local file, behind a check of its kind",
    "include/headwater/leases/file_lease.py": "the lock of a local storage, or of the local cache",
    "include/headwater/checkpoints/rights.py": "rights of local files, behind a check of its kind",
    "include/headwater/checkpoints/pending_replacement.py": "the lock of a local record, behind a check of its kind",
    "include/headwater/checkpoints/batch_again.py": "links to local files of state, behind a check of its kind",
    "include/headwater/checkpoints/whole_folders.py": "local folders that are renamed, behind a check of their kind",
    "include/headwater/change_feed/consumer.py": "the lock of a local position, behind a check of its kind",
    "include/headwater/graph/table_places.py": "walks local warehouses, behind a check of its kind",
}
# Files that read what is no part of either root.
OTHERS = {
    "include/headwater/graph/pipeline_project.py": "the pipeline's own folder",
    "include/headwater/graph/pipeline_ids.py": "the folders beside the pipeline's own",
    "include/headwater/graph/bundle_sources.py": "the files of a bundle",
    "include/headwater/graph/files_read.py": "files of this machine that sources read",
    "include/headwater/metrics/file_listing.py": "source files",
    "include/headwater/preflight/moved_folders.py": "source files",
    "include/headwater/commands/convert.py": "a new pipeline's folder",
    "include/headwater/contract/failure_report.py": "the standard output",
    "include/headwater/contract/printing.py": "the standard streams",
    "jobs/headwater_spark/execution/file_cleaning.py": "source files",
    "jobs/headwater_spark/facade/noted_reads.py": "files of this machine that sources read",
    "plugins/headwater_airflow/roots.py": "the folder of pipelines",
    "plugins/headwater_airflow/driver/shipping.py": "the code that is shipped to other machines",
}


def calls(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """What a module uses of the modules that know nothing of stores."""
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            module = node.module if isinstance(node, ast.ImportFrom) else ""
            for name in [module or "", *names]:
                if name.split(".")[0] in ("shutil", "fcntl", "obstore"):
                    yield name, node.lineno
            if module == "deltalake" and {"DeltaTable", "write_deltalake"} & set(names):
                yield "deltalake", node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            if node.attr in _OF_OS:
                yield f"os.{node.attr}", node.lineno
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "Path"
            and any(isinstance(a, ast.Call) and getattr(a.func, "id", "") == "str" for a in node.args)
        ):
            yield "Path(str(...))", node.lineno


def test_nothing_goes_around_the_seam():
    """No module calls the operating system, delta-rs or a store's client on what may lie on a store."""
    around = {}
    for floor in FLOORS:
        for file in sorted((CHECKOUT / floor).rglob("*.py")):
            name = file.relative_to(CHECKOUT).as_posix()
            if name.startswith(OUTSIDE) or name in ALLOWED or name in OTHERS:
                continue
            there = list(calls(ast.parse(file.read_text(encoding="utf-8"))))
            if there:
                around[name] = there
    assert around == {}


@pytest.mark.parametrize("name", [*ALLOWED, *OTHERS])
def test_each_exception_is_one(name):
    """An exception that nobody needs any more is taken off the list."""
    assert list(calls(ast.parse((CHECKOUT / name).read_text(encoding="utf-8"))))


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.listdir(place)",
        "import shutil",
        "from deltalake import DeltaTable",
        "Path(str(place))",
        "import obstore",
    ],
)
def test_what_goes_around_is_seen(text):
    """The check sees each of the ways around."""
    assert list(calls(ast.parse(text)))
