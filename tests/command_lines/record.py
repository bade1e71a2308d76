"""`python -m tests.command_lines.record --pyspark VENV`: record how Hadoop's and Spark's own parsers read the lines.

Needs Java 17 with its compiler, Maven, which fetches the jars of Hadoop Streaming once, and a virtual environment with
pyspark. Nothing is run or leaves the machine. Takes a minute.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

from boathouse_e2e import hadoop_jars
from tests.command_lines import generated

_FOLDER = pathlib.Path(__file__).parent
HADOOP, SPARK = _FOLDER / "recorded" / "hadoop.json", _FOLDER / "recorded" / "spark.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.command_lines.record", description=__doc__)
    parser.add_argument("--pyspark", type=pathlib.Path, required=True, help="a virtual environment with pyspark")
    (jars,) = parser.parse_args().pyspark.resolve().glob("lib/python3*/site-packages/pyspark/jars")
    lines = generated.hadoop()
    classpath = hadoop_jars.prepare(_FOLDER / "HadoopLines.java")
    _write(HADOOP, lines, _answers("HadoopLines", classpath, [generated.PROPERTIES, *lines]))
    lines = generated.spark()
    with tempfile.TemporaryDirectory() as classes:
        program = _FOLDER / "SparkLines.java"
        subprocess.run(["javac", "-cp", f"{jars}/*", "-d", classes, program], check=True)
        _write(SPARK, lines, _answers("SparkLines", f"{classes}{os.pathsep}{jars}/*", lines))


def read(path: pathlib.Path) -> dict[str, Any]:
    """Return what a parser knows, and how it reads each line; None: it refuses the line."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _answers(program: str, classpath: str, orders: Iterable[Sequence[str]]) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in generated.FILES.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
        found = subprocess.run(
            ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classpath, program],
            input="".join(f"{json.dumps(order)}\n" for order in orders),
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=folder,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": folder},
        ).stdout
        return [json.loads(answer.replace(folder, "")) for answer in found.splitlines()]


def _write(path: pathlib.Path, lines: Sequence[Sequence[str]], answers: Sequence[Any]) -> None:
    known, *read_as = answers
    assert len(read_as) == len(lines)
    texts = (json.dumps({"words": words, "read": answer}) for words, answer in zip(lines, read_as, strict=True))
    path.write_text(f'{{"known": {json.dumps(known)}, "lines": [\n' + ",\n".join(texts) + "\n]}\n")


if __name__ == "__main__":
    main()
