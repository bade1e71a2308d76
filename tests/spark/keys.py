"""The configuration keys that a version of Spark defines, read from the classes of its jars, and the table of them."""

import pathlib
import re
import struct
import zipfile
from collections.abc import Iterator

TABLE = pathlib.Path(__file__).parent / "recorded" / "keys.txt"
"""A line for each key: the key, and the versions that define it."""
PREFIX_OF_KUBERNETES = "spark.kubernetes."
_CLASSES = {
    "spark-kubernetes_": re.compile(r"org/apache/spark/deploy/k8s/Config(\$.*)?\.class"),
    "spark-core_": re.compile(r"org/apache/spark/internal/config/.*\.class"),
}
"""Beginning of a jar's name, and its classes that define keys."""
_KEY = re.compile(r"spark(\.[\w-]+)+\.?")
_UTF8, _STRING, _WIDE = 1, 8, (5, 6)
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""Tag of a constant, and the bytes behind it (Java Virtual Machine Specification, 4.4)."""


def of_home(home: pathlib.Path) -> set[str]:
    """Return the keys that the Spark in a folder defines; a key that ends with a dot takes a name."""
    found: set[str] = set()
    for prefix, names in _CLASSES.items():
        (jar,) = (home / "jars").glob(f"{prefix}*.jar")
        with zipfile.ZipFile(jar) as files:
            for name in filter(names.fullmatch, files.namelist()):
                found |= {text for text in strings(files.read(name)) if _KEY.fullmatch(text)}
    return found


def strings(compiled: bytes) -> Iterator[str]:
    """Yield the string constants of a compiled class."""
    texts: dict[int, str] = {}
    used: list[int] = []
    (count,) = struct.unpack_from(">H", compiled, 8)
    position, number = 10, 1
    while number < count:
        tag = compiled[position]
        if tag == _UTF8:
            (size,) = struct.unpack_from(">H", compiled, position + 1)
            texts[number] = compiled[position + 3 : position + 3 + size].decode(errors="replace")
            position += 3 + size
        else:
            if tag == _STRING:
                used += struct.unpack_from(">H", compiled, position + 1)
            position += 1 + _SIZES[tag]
        number += 2 if tag in _WIDE else 1
    return (texts[index] for index in used)


def read() -> dict[str, list[str]]:
    """Return the versions that define each key."""
    rows = map(str.split, TABLE.read_text().splitlines()) if TABLE.exists() else ()
    return {key: versions for key, *versions in rows}


def record(version: str, home: pathlib.Path) -> None:
    """Write the keys that a version, such as 3.5, defines into the table."""
    table = {key: set(versions) - {version} for key, versions in read().items()}
    for key in of_home(home):
        table.setdefault(key, set()).add(version)
    lines = (" ".join([key, *sorted(versions)]) for key, versions in sorted(table.items()) if versions)
    TABLE.write_text("\n".join(lines) + "\n")
