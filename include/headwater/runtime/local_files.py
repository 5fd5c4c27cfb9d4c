"""A jar of ours that lets Hadoop use files of this machine without starting a process for each permission.

``python -m headwater.runtime.local_files`` compiles it again from ``LocalFiles.java`` (maintainers only); Spark brings the compiler.

Decision 0190.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path

from headwater.runtime.cache import cache_root
from headwater.runtime.class_sharing import spark_home
from headwater.runtime.java import java_environment

SOURCE = Path(__file__).with_name("LocalFiles.java")
PACKAGED = Path(__file__).with_name("local_files.jar")
SETTINGS = {
    "spark.hadoop.fs.file.impl": "headwater.LocalFiles$Checked",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "headwater.LocalFiles$Context",
}
# The same time in each cache and each jar: archives of classes go by the times of the jars.
_CHANGED_AT = 1_700_000_000
_ZIP_TIME = (2023, 11, 14, 0, 0, 0)


def local_files_jar() -> Path | None:
    """The jar, in the cache; None where it can't be put there: drivers then use Hadoop's own classes."""
    content = PACKAGED.read_bytes()
    jar = cache_root() / "jars" / f"local-files-{hashlib.sha256(content).hexdigest()[:16]}.jar"
    with suppress(OSError):
        if not jar.is_file():
            _put(jar, content)
        return jar
    return None


def _put(jar: Path, content: bytes) -> None:
    """Write it beside its place, and rename: another process may do the same."""
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jar.parent, prefix="local-files.") as temporary:
        fresh = Path(temporary) / jar.name
        fresh.write_bytes(content)
        os.utime(fresh, (_CHANGED_AT, _CHANGED_AT))
        fresh.rename(jar)


def compiled() -> dict[str, bytes]:
    """The classes of the source, compiled now; by name in the jar."""
    jars = sorted(str(jar) for jar in (spark_home() / "jars").glob("*.jar"))
    compiler = [jar for jar in jars if Path(jar).name.startswith(("janino-", "commons-compiler-"))]
    java = java_environment()
    with tempfile.TemporaryDirectory() as folder:
        command = [
            str(Path(java["JAVA_HOME"]) / "bin" / "java"),
            "-cp",
            os.pathsep.join(compiler),
            "org.codehaus.commons.compiler.samples.CompilerDemo",
            *("-d", folder),
            *("-classpath", os.pathsep.join(jars)),
            str(SOURCE),
        ]
        subprocess.run(command, env={**os.environ, **java}, check=True)
        files = sorted(Path(folder).rglob("*.class"))
        return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def main() -> None:
    """Write the packaged jar."""
    with zipfile.ZipFile(PACKAGED, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, content in compiled().items():
            jar.writestr(zipfile.ZipInfo(name, _ZIP_TIME), content)
    print(f"{PACKAGED}: {PACKAGED.stat().st_size} bytes")


if __name__ == "__main__":
    main()
