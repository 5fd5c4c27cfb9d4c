"""Which objects a path of S3 names, by the listing of a folder with the same files (decision 0193)."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.metrics.file_listing import list_files
from headwater.metrics.stored_files import _is_read
from headwater.storage.globs import alternatives, plain_part

# Of names that begin with a sign of hiding the two differ where a pattern matches them: test_sources_of_files_on_s3 has Spark's answer.
FOLDERS = st.sampled_from(["a", "b=1", "plain"])
FILES = st.sampled_from(["x.json", "y.csv", "_hidden", ".dot", "b=2.json"])
PATHS = st.tuples(st.lists(FOLDERS, max_size=3), FILES).map(lambda parts: "/".join([*parts[0], parts[1]]))
PATTERNS = st.lists(st.sampled_from(["*", "a", "b=*", "?", "[ab]*", "p*n"]), max_size=3)


@settings(deadline=None, max_examples=150)
@given(st.sets(PATHS, min_size=1, max_size=8), PATTERNS, st.booleans())
def test_a_folder_and_a_prefix_have_the_same_files(paths: set[str], pattern: list[str], recursive: bool):
    """Whatever lies there, whatever the pattern, nested or not."""
    with tempfile.TemporaryDirectory() as root:
        for path in paths:
            file = Path(root, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        options = {"recursiveFileLookup": str(recursive)}
        glob = "/".join([root, *pattern, *([] if pattern and "*" in pattern[-1] else ["*.json"])])
        names = glob.removeprefix(f"{root}/").split("/")
        listed = {str(Path(file.path).relative_to(root)) for file in list_files(glob, options)}
    ours = {path for path in paths if _is_read(path.split("/"), names, recursive=recursive)}
    assert ours == {path for path in listed if len(path.split("/")) > len(names) or not path.startswith("_")}


def test_the_parts_of_an_address():
    """What is listed is the folder before the first pattern."""
    assert plain_part("s3://b/a/2026-*/x") == "s3://b/a"
    assert plain_part("s3://b/a/x/") == "s3://b/a/x"
    assert plain_part("s3://b") == "s3://b"
    assert set(alternatives("s3://b/{a,c{d,e}}/x")) == {"s3://b/a/x", "s3://b/cd/x", "s3://b/ce/x"}
