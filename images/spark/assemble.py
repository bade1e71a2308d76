"""Lay out Spark's home from the source distribution of PySpark, without what `left-out.txt` names.

The image's build runs `assemble.py PYSPARK.tar.gz HOME`. The home has the folders of Spark's own distribution, so its
scripts and its Python workers find everything where they expect it.
"""

from __future__ import annotations

import compileall
import fnmatch
import platform
import re
import sys
import tarfile
import zipfile
from pathlib import Path

LEFT_OUT = Path(__file__).with_name("left-out.txt")
# Folder of the distribution -> folder of Spark's home.
LAYOUT = {
    "deps/bin": "bin",
    "deps/sbin": "sbin",
    "deps/jars": "jars",
    "deps/licenses": "licenses",
    "deps/examples": "examples/src/main/python",
    "lib": "python/lib",
    "pyspark": "python/pyspark",
    "LICENSE": "LICENSE",
    "NOTICE": "NOTICE",
}
# Other systems' native code makes up most of these jars. Jar -> machine -> the one library to keep.
NATIVE = {
    "rocksdbjni-*.jar": {"x86_64": "librocksdbjni-linux64.so", "aarch64": "librocksdbjni-linux-aarch64.so"},
    "zstd-jni-*.jar": {"x86_64": "linux/amd64/*.so", "aarch64": "linux/aarch64/*.so"},
    "snappy-java-*.jar": {"x86_64": "*/Linux/x86_64/*.so", "aarch64": "*/Linux/aarch64/*.so"},
}
_LIBRARY = re.compile(r"\.(so|dll|a|jnilib|dylib)$")


def left_out(text: str) -> list[str]:
    """Return the patterns of a list with comments."""
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def place(member: str, patterns: list[str]) -> str | None:
    """Return where a file of the distribution goes below Spark's home; None for a file that is left out."""
    path = member.partition("/")[2]
    for source, target in LAYOUT.items():
        if path == source or path.startswith(f"{source}/"):
            rest = path[len(source) :].lstrip("/")
            unwanted = rest.endswith(".cmd") or "/tests/" in f"/{rest}"
            if source == "deps/jars":
                unwanted = any(fnmatch.fnmatch(rest.partition("/")[0], pattern) for pattern in patterns)
            return None if unwanted else f"{target}/{rest}".rstrip("/")
    return None


def extract(distribution: Path, home: Path, patterns: list[str]) -> None:
    """Write the files that have a place below the home."""
    with tarfile.open(distribution) as tar:
        for member in tar:
            target = place(member.name, patterns)
            if target is not None and member.isfile():
                path = home / target
                path.parent.mkdir(parents=True, exist_ok=True)
                content = tar.extractfile(member)
                assert content is not None
                path.write_bytes(content.read())
                path.chmod(0o755 if target.startswith(("bin/", "sbin/")) else 0o644)


def keep_own_libraries(jar: Path, kept: str) -> None:
    """Write a jar again with one native library, which `kept` matches."""
    unfinished = jar.with_suffix(".unfinished")
    with zipfile.ZipFile(jar) as old, zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as new:
        entries = [entry for entry in old.infolist() if not _LIBRARY.search(entry.filename)]
        libraries = [entry for entry in old.infolist() if fnmatch.fnmatch(entry.filename, kept)]
        if len(libraries) != 1:
            sys.exit(f"{jar.name} holds {len(libraries)} files that match {kept}: correct NATIVE in {__file__}")
        for entry in [*entries, *libraries]:
            new.writestr(entry, old.read(entry), zipfile.ZIP_DEFLATED)
    unfinished.rename(jar)


def arrange_python(home: Path) -> None:
    """Let the archives that Spark puts on PYTHONPATH be the folder with the compiled modules.

    An archive has no compiled modules: each Python worker would compile PySpark anew.
    """
    folder = home / "python"
    for archive in (folder / "lib").glob("py4j-*-src.zip"):
        with zipfile.ZipFile(archive) as files:
            files.extractall(folder)  # noqa: S202 # pip has compared its hash
    for archive in (folder / "lib").glob("*.zip"):
        archive.unlink()
        archive.symlink_to("..")
    compileall.compile_dir(folder, quiet=2, workers=1, invalidation_mode=None)


def main(distribution: Path, home: Path) -> None:
    """Lay out the home."""
    extract(distribution, home, left_out(LEFT_OUT.read_text()))
    for pattern, libraries in NATIVE.items():
        for jar in (home / "jars").glob(pattern):
            if platform.machine() in libraries:
                keep_own_libraries(jar, libraries[platform.machine()])
    arrange_python(home)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
