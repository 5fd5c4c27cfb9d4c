"""Modules beside the sources are found, rewritten like sources, and forgotten afterwards."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from headwater import pipelines as face
from headwater_spark.loader.pipeline_modules import pipeline_modules


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A pipeline's folder with a module, a package, and a module that has the name of one of Python's own."""
    for name, text in {
        "prices.py": "import dlt\nRATE = 2\nface = dlt\nsession = spark\n",
        "rules/__init__.py": "from .deep import DEPTH\n",
        "rules/deep.py": "from prices import RATE\nDEPTH = RATE + 1\n",
        "colorsys.py": "MINE = True\n",
        "broken.py": "x = 1\n1 / 0\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_a_module_is_run_as_a_source_is(folder: Path):
    """Its import of the face is rewritten, and the injected names are there."""
    with pipeline_modules([folder], {"spark": "the facade"}):
        import prices

        assert prices.face is face
        assert prices.session == "the facade"


def test_packages_and_modules_below_them(folder: Path):
    """A package's relative imports and its imports of modules beside it work."""
    with pipeline_modules([folder], {"spark": None}):
        import rules
        from rules import deep

        assert (rules.DEPTH, deep.DEPTH) == (3, 3)


def test_the_pipelines_module_wins(folder: Path):
    """To the pipeline's code a module of the pipeline hides one of the same name that Python would find, inside the block only."""
    sys.modules.pop("colorsys", None)
    (folder / "rules" / "colors.py").write_text("import colorsys\n")
    with pipeline_modules([folder], {"spark": None}):
        from rules.colors import colorsys

        assert colorsys.MINE
    import colorsys

    assert not hasattr(colorsys, "MINE")


def test_others_import_what_is_installed(folder: Path):
    """A library that imports one of Python's modules late gets that one, not a source of the pipeline that has its name."""
    sys.modules.pop("colorsys", None)
    with pipeline_modules([folder], {}):
        colorsys = importlib.import_module(
            "colorsys"
        )  # as a library does: this file is no part of the pipeline

        assert colorsys.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)


def test_modules_are_forgotten(folder: Path):
    """After the block, another pipeline can have modules of the same names."""
    finders = list(sys.meta_path)
    with pipeline_modules([folder], {"spark": None}):
        import rules  # noqa: F401
    assert not {"rules", "rules.deep", "prices"} & set(sys.modules)
    assert sys.meta_path == finders
    (folder / "prices.py").write_text("RATE = 10\n")
    with pipeline_modules([folder], {"spark": None}):
        import prices

        assert prices.RATE == 10


def test_an_error_in_a_module_keeps_its_line(folder: Path):
    """A traceback through a module of the pipeline shows the module's own file and line."""
    import traceback

    with pipeline_modules([folder], {}), pytest.raises(ZeroDivisionError) as caught:
        import broken  # noqa: F401
    last = traceback.extract_tb(caught.tb)[-1]
    assert (last.filename, last.lineno, last.line) == (str(folder / "broken.py"), 2, "1 / 0")


def test_modules_reached_through_sys_path(folder: Path, tmp_path_factory: pytest.TempPathFactory):
    """A folder that a source adds to sys.path is the pipeline's too: rewritten, and off the path afterwards."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "shared_rules.py").write_text("import dlt\nface = dlt\n")
    before = list(sys.path)
    with pipeline_modules([folder], {}):
        sys.path.append(str(elsewhere))
        import shared_rules

        assert shared_rules.face is face
    assert sys.path == before
    assert "shared_rules" not in sys.modules


def test_a_folder_without_init(folder: Path):
    """A folder of modules needs no __init__.py, and hides nothing that is installed."""
    for name in ("helpers", "json"):
        (folder / name).mkdir()
        (folder / name / "text.py").write_text("import dlt\nface = dlt\n")
    with pipeline_modules([folder], {}):
        import json

        from helpers.text import face as imported

        assert imported is face
        assert json.dumps({}) == "{}"
    assert not {"helpers", "helpers.text"} & set(sys.modules)
