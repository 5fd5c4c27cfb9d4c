"""The file systems that drivers use for local files do what Hadoop's do."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headwater.runtime.own_classes import LOCAL_FILES


def test_files_modes_and_links(spark: SparkSession, tmp_path: Path):
    """A file has its checksum beside it and the mode it is given; a link is a link."""
    hadoop: Any = spark._jvm.org.apache.hadoop.fs
    conf = spark._jsc.hadoopConfiguration()
    root = hadoop.Path(tmp_path.as_uri())
    files, context = root.getFileSystem(conf), hadoop.FileContext.getFileContext(root.toUri(), conf)
    used = [files.getClass().getName(), context.getDefaultFileSystem().getClass().getName()]
    assert used == list(LOCAL_FILES.values())

    files.create(hadoop.Path(root, "a")).close()
    permission = hadoop.permission.FsPermission("640")
    context.setPermission(hadoop.Path(root, "a"), permission)
    files.rename(hadoop.Path(root, "a"), hadoop.Path(root, "b"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".b.crc", "b"]
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o640

    (tmp_path / "link").symlink_to(tmp_path / "b")
    assert context.getFileLinkStatus(hadoop.Path(root, "link")).isSymlink()
    assert context.getFileLinkStatus(hadoop.Path(root, "b")).isFile()
