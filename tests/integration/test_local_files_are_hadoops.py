"""The file systems that drivers use for local files do what Hadoop's do."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headwater.runtime.own_classes import LOCAL_FILES


def test_files_modes_and_links(spark: SparkSession, tmp_path: Path):
    """A file has its checksum beside it and the mode it is given; files, folders and links look as they do to Hadoop's own classes."""
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

    plain = spark._jvm.org.apache.hadoop.conf.Configuration(conf)
    plain.set("fs.AbstractFileSystem.file.impl", "org.apache.hadoop.fs.local.LocalFs")
    theirs = hadoop.FileContext.getFileContext(root.toUri(), plain)
    assert theirs.getDefaultFileSystem().getClass().getName() == "org.apache.hadoop.fs.local.LocalFs"
    (tmp_path / "link").symlink_to(tmp_path / "b")
    (tmp_path / "folder").mkdir()
    assert [seen(context, root, hadoop, name) for name in NAMES] == [
        seen(theirs, root, hadoop, name) for name in NAMES
    ]


NAMES = ("b", "link", "folder", "absent")


def seen(context: Any, root: Any, hadoop: Any, name: str) -> tuple[Any, ...]:
    """What a look at a file that follows no link gives."""
    path = hadoop.Path(root, name)
    if not context.util().exists(path):
        return ("absent",)
    status = context.getFileLinkStatus(path)
    return status.isSymlink(), status.isDirectory(), status.getLen(), status.getPermission().toString()
