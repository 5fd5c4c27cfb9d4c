"""``spark-pipelines`` over Delta tables: the folder, the settings and the environment that it needs, and its runs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.frame.runs import Run, timed_process

from headwater.runtime.jars import ensure_jars
from headwater.runtime.java import java_environment
from headwater.runtime.submit import submit_conf

# What Delta's quick start sets.
_DELTA = ("spark.sql.extensions", "spark.sql.catalog.spark_catalog")


def equal_settings() -> dict[str, str]:
    """Those of an update of ours, with its class path: our classes for local files, the archive of classes."""
    return submit_conf({})


def documented_settings() -> dict[str, str]:
    """Those of Delta's quick start; its jars are at hand, where ``spark.jars.packages`` would look them up."""
    return {
        **{name: value for name, value in submit_conf({}).items() if name in _DELTA},
        "spark.jars": ",".join(map(str, ensure_jars("spark"))),
    }


@dataclass(frozen=True)
class SparkPipelines:
    """A pipeline in a folder of its own. ``definitions``: its Python files; ``environment``: what they read besides."""

    folder: Path
    definitions: Path
    settings: Mapping[str, str]
    environment: Mapping[str, str]

    @property
    def warehouse(self) -> Path:
        """The folder of its tables."""
        return self.folder / "warehouse"

    def write(self) -> None:
        """Its files, with what it can't do without: a catalog that lasts, and Delta as the format that nothing has to name.

        Definitions lie beside the spec, since a glob has to be relative.
        """
        shutil.copytree(self.definitions, self.folder / "transformations")
        (self.folder / "conf").mkdir()
        settings = {
            **self.settings,
            "spark.sql.sources.default": "delta",
            "spark.sql.catalogImplementation": "hive",
            "spark.sql.warehouse.dir": str(self.warehouse),
            "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={self.folder}/metastore;create=true",
        }
        # The file is one of Java's properties: a backslash of a regular expression has to be doubled.
        lines = [f"{name} {value}\n".replace("\\", "\\\\") for name, value in settings.items()]
        (self.folder / "conf" / "spark-defaults.conf").write_text("".join(lines))
        (self.folder / "pipeline.yml").write_text(
            f"name: peer\nstorage: file://{self.folder}/storage\nlibraries:\n  - glob: {{include: transformations/**}}\n"
        )

    def run(self, verb: str = "run") -> Run:
        """Measure ``spark-pipelines VERB`` (``dry-run`` resolves and checks, and writes nothing)."""
        program = Path(sys.executable).with_name("spark-pipelines")
        environment = {
            **java_environment(),
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            # A free port for its server, where it would take 15002.
            "SPARK_TESTING": "1",
            "PYSPARK_PYTHON": sys.executable,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            **self.environment,
        }
        return timed_process(
            [program, "--remote", "local[*]", verb, "--spec", self.folder / "pipeline.yml"], environment
        )
