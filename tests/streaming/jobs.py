"""Jobs made up by chance, each an MRJob that Hadoop Streaming can run as well.

Within a job the value of a line depends on its key alone, so the order of equal keys, which neither side promises, does
not show. Only a comparator makes different keys equal.
"""

import dataclasses
import functools
import gzip
import io
import itertools
import random
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from boathouse_task import compression, key_fields
from boathouse_task.contract import Partitioner
from boathouse_task.key_fields import Ordering

SEED: Final = 17
COUNT: Final = 500
SPLIT_BYTES: Final = (7, 19, 40, 64 * 1024 * 1024)
_CAT = "cat"
_SUM = (
    """awk -F'\\t' '{ if (NR > 1 && $1 != k) { print k "\\t" n; n = 0 } k = $1; n += length($0) + 1 }"""
    """ END { if (NR) print k "\\t" n }'"""
)
MAPPERS: Final = {
    "cat": _CAT,
    "upper": "tr a-z A-Z",
    "words": """awk '{ for (i = 1; i <= NF; i++) print $i "\\t1" }'""",
    "CRLF": "sed 's/$/\\r/'",
    "CR": "tr '\\n' '\\r'",
    "all ends": """awk '{ printf "%s%s", $0, NR % 3 ? (NR % 3 == 1 ? "\\r\\n" : "\\r") : "\\n" }'""",
    "no last end": "head -c -1",
    "first field": "cut -f1",
    "empty lines": "sed 's/$/\\n/'",
    "nothing": "cat > /dev/null",
    "header": "echo header; cat",
}
REDUCERS: Final = {
    "cat": _CAT,
    "sum": _SUM,
    "first field": "cut -f1",
    "count": "wc -l",
    "header": "echo header; cat",
    "CR": "tr '\\n' '\\r'",
    "CRLF": "sed 's/$/\\r/'",
    "tr": "tr '\\t' ','",
    "no last end": "head -c -1",
}
_FIRST, _SECOND = ("ab", "aa", "b1", "ba", "b10"), ("1", "10", "9", "-3", "2.5", "0")
_OF_SUMS: Final = ("sum", "first field")
_WORDS = ("a", "b", "ab", "aa", "10", "9", "-3", "2.5", "x", "\u00e4", "")
_PACK: Final[dict[str, Callable[[bytes], bytes]]] = {
    ".gz": lambda content: gzip.compress(content, mtime=0),
    ".deflate": zlib.compress,
    ".snappy": lambda content: b"".join(compression.compressed([content], "snappy")),
}
_KEYS = frozenset({"numMapOutputKeyFields", "mapOutputFieldSeparator", "reduceInputFieldSeparator"})
_SHOWN = (
    "map_input_start", "map_input_length", "mapred_task_partition", "mapred_task_is_map", "mapreduce_task_ismap",
    "mapreduce_job_queuename", "mapreduce_job_reduces", "my_first_name", "my_2nd__name",
)  # fmt: skip
_ENVIRONMENT = "; ".join(
    ['echo "file=${map_input_file##*/}"', *(f'echo "{name}=${{{name}-unset}}"' for name in _SHOWN)]
)
_IDS = """echo "${mapred_tip_id/*_[mr]_/task_} ${mapred_task_id/*_[mr]_/attempt_}" """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """A job.

    Attributes:
        spec: of the MRJob; commands are names of scripts.
        files: input files by name.
        scripts: the job's commands by name.
        archives: by file name.
        split_bytes: most bytes of a split.
        options: what the job tries.
    """

    spec: dict[str, Any]
    files: dict[str, bytes]
    scripts: dict[str, str]
    archives: dict[str, bytes]
    split_bytes: int
    options: frozenset[str]


@functools.cache
def every() -> tuple[Job, ...]:
    """Return the jobs."""
    return tuple(_Maker(random.Random(SEED * 10_000 + number)).job() for number in range(COUNT))


class _Maker:
    """Makes one job."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._options: set[str] = set()
        self._spec: dict[str, Any] = {}
        self._scripts: dict[str, str] = {}
        self._archives: dict[str, bytes] = {}
        self._fields = 1
        self._separator = "\t"

    def job(self) -> Job:
        if self._tries("comparator", 0.12):
            return self._sorting_job()
        has_reduces = self._chance.random() < 0.7
        self._commands(has_reduces=has_reduces)
        self._input_format()
        self._keys(has_reduces=has_reduces)
        if has_reduces:
            self._reduces()
        self._output()
        self._surroundings()
        files = self._files()
        return Job(
            spec=self._spec,
            files=files,
            scripts=self._scripts,
            archives=self._archives,
            split_bytes=self._split_bytes(),
            options=frozenset(self._options),
        )

    def _sorting_job(self) -> Job:
        """Return a job with a comparator, with keys that have all compared fields: else Hadoop's order is no order."""
        chance, spec = self._chance, self._spec
        self._command("mapper", chance.choice([_CAT, MAPPERS["CRLF"]]))
        self._command("reducer", _CAT)
        separator = chance.choice([".", "\t"])
        spec |= {
            "numReduceTasks": chance.choice([1, 2, 3]),
            "numMapOutputKeyFields": 2 if separator == "\t" else 1,
            "mapOutputKeyFieldSeparator": separator,
            "comparator": {
                "options": chance.choice(["-k1,1", "-k2,2nr", "-k1r", "-k2n -k1,1r", "-k2.1,2 -k1", "-r", "-k1.2,1"])
            },
        }
        if self._tries("KeyFieldBasedPartitioner", 0.5):
            spec["partitioner"] = {"type": "KeyFieldBasedPartitioner", "options": chance.choice(["-k1,1", "-k2,2"])}
        if self._tries("combiner", 0.3):
            self._command("combiner", _CAT)
        rows = [
            f"{chance.choice(_FIRST)}{separator}{chance.choice(_SECOND)}\t{chance.choice('uvw')}\n"
            for _ in range(chance.choice([1, 5, 30]))
        ]
        return Job(
            spec=spec,
            files={"file0.txt": "".join(rows).encode()},
            scripts=self._scripts,
            archives={},
            split_bytes=self._split_bytes(),
            options=frozenset(self._options),
        )

    def _tries(self, option: str, probability: float) -> bool:
        if self._chance.random() >= probability:
            return False
        self._options.add(option)
        return True

    def _commands(self, *, has_reduces: bool) -> None:
        name = self._chance.choice(sorted(MAPPERS))
        self._options.add(f"mapper: {name}")
        self._command("mapper", MAPPERS[name])
        if not has_reduces:
            self._options.add("map-only")
            return
        name = self._chance.choice(sorted(REDUCERS))
        self._options.add(f"reducer: {name}")
        self._command("reducer", REDUCERS[name])
        self._spec["numReduceTasks"] = self._chance.choice([1, 1, 2, 3, 5])
        if self._tries("combiner", 0.35):
            sums = name in _OF_SUMS  # what is left of a key depends on what was combined; its sum does not
            self._command("combiner", _SUM if self._chance.choice([False, True]) and sums else _CAT)

    def _command(self, kind: str, script: str) -> None:
        self._spec[kind] = {"command": [f"{kind}.sh"]}
        self._scripts[f"{kind}.sh"] = script

    def _input_format(self) -> None:
        spec, chance = self._spec, self._chance
        match chance.choices(["Text", "NLine", "KeyValue"], [6, 1, 1.5])[0]:
            case "NLine":
                self._options.add("NLineInputFormat")
                spec["inputFormat"] = "NLineInputFormat"
                spec["linesPerMap"] = chance.choice([1, 2, 3, 100])
            case "KeyValue":
                self._options.add("KeyValueTextInputFormat")
                spec["inputFormat"] = "KeyValueTextInputFormat"
                if chance.random() < 0.6:
                    spec["keyValueSeparator"] = chance.choice([",", ";", " "])
        if "inputFormat" not in spec and self._tries("recordDelimiter", 0.16):
            spec["recordDelimiter"] = chance.choice(["||", ";;", "\n", "<>", "###", "\u20ac"])
        if self._tries("mapInputIgnoreKey", 0.12):
            spec["mapInputIgnoreKey"] = chance.random() < 0.5
        if self._tries("mapInputFieldSeparator", 0.1):
            spec["mapInputFieldSeparator"] = chance.choice(["|", "::", " "])

    def _keys(self, *, has_reduces: bool) -> None:
        spec, chance = self._spec, self._chance
        if self._tries("mapOutputFieldSeparator", 0.15):
            separator = chance.choice([",", ".", "::"])
            # A TAB in a key ends it for a combiner, whose line Boathouse then gives to the reduce of that key.
            if "combiner" in spec and ("inputFormat" in spec or "mapInputIgnoreKey" in spec):
                self._options.discard("mapOutputFieldSeparator")
            else:
                self._separator = spec["mapOutputFieldSeparator"] = separator
        if self._tries("numMapOutputKeyFields", 0.2):
            self._fields = spec["numMapOutputKeyFields"] = chance.choice([1, 2, 2, 3])
            if "combiner" in spec:
                self._command("combiner", _CAT)
        if not has_reduces:
            return
        if self._tries("KeyFieldBasedPartitioner", 0.2):
            spec["partitioner"] = {"type": "KeyFieldBasedPartitioner"}
            if chance.random() < 0.8:
                spec["partitioner"]["options"] = chance.choice(["-k1,1", "-k2", "-k1.2,1.3", "-k2,2"])
        if "partitioner" in spec:
            spec["mapOutputKeyFieldSeparator"] = chance.choice([".", ",", "\t"])

    def _reduces(self) -> None:
        spec, chance = self._spec, self._chance
        tries_input = self._tries("reduceInputFieldSeparator", 0.13)
        if "combiner" in spec:
            self._options.discard("reduceInputFieldSeparator")
            return
        if tries_input:
            spec["reduceInputFieldSeparator"] = chance.choice(["#", "=>"])
        if self._tries("reduceOutputFieldSeparator", 0.12):
            spec["reduceOutputFieldSeparator"] = chance.choice([",", ".", "::"])
        if self._tries("numReduceOutputKeyFields", 0.12):
            spec["numReduceOutputKeyFields"] = chance.choice([1, 2, 3])

    def _output(self) -> None:
        spec, chance = self._spec, self._chance
        if self._tries("outputSeparator", 0.12):
            spec["outputSeparator"] = chance.choice([",", "||", " "])
        elif "combiner" not in spec and self._tries("keyOnlyOutput", 0.12):
            spec["keyOnlyOutput"] = True
        if self._tries("lazyOutput", 0.12):
            spec["lazyOutput"] = True
        if self._tries("outputCompression", 0.08):
            spec["outputCompression"] = chance.choice(["gzip", "bzip2", "deflate", "snappy"])

    def _surroundings(self) -> None:
        spec, chance = self._spec, self._chance
        if self._tries("nonZeroExitIsFailure", 0.1):
            spec["nonZeroExitIsFailure"] = False
            kind = chance.choice([stage for stage in ("mapper", "combiner", "reducer") if stage in spec])
            self._scripts[f"{kind}.sh"] += f"; {chance.choice(['exit 3', 'kill -9 $$'])}"
        if self._tries("conf", 0.12):
            spec["conf"] = {"my.first-name": "a $b 'c'", "my.2nd..name": chance.choice(["", "x=y", "caf\u00e9"])}
            spec["queue"] = "night"
            self._scripts["mapper.sh"] = f"{_ENVIRONMENT}; {_IDS}; {self._scripts['mapper.sh']}"
            if "reducer" in spec:
                self._scripts["reducer.sh"] = f"{_ENVIRONMENT}; {_IDS}; {self._scripts['reducer.sh']}"
        if self._tries("archives", 0.08):
            kind = chance.choice(["zip", "tar", "tar.gz", "tgz", "jar"])
            spec["archives"] = [{"name": "dictionary", "url": f"s3://bucket/packed.{kind}"}]
            self._archives[f"packed.{kind}"] = packed(kind, {"words/list": b"one\ntwo\n", "read.me": b"me\n"})
            self._scripts["mapper.sh"] = f"cat dictionary/read.me dictionary/words/list; {self._scripts['mapper.sh']}"

    def _split_bytes(self) -> int:
        size = self._chance.choice(SPLIT_BYTES)
        if size < SPLIT_BYTES[-1]:
            self._options.add("several splits")
        return size

    def _files(self) -> dict[str, bytes]:
        """Return the input; one file if the mapper reads positions, which would be keys with several values."""
        chance, spec = self._chance, self._spec
        single = spec.get("inputFormat") == "NLineInputFormat" or spec.get("mapInputIgnoreKey") is False
        files = {}
        for number in range(1 if single else chance.choice([1, 1, 2, 3])):
            content = self._content()
            name = f"file{number}.txt"
            if not single and self._tries("compressed input", 0.06):
                suffix, pack = chance.choice([*_PACK.items()])
                name, content = name + suffix, pack(content)
            files[name] = content
        return files

    def _content(self) -> bytes:
        chance = self._chance
        if self._tries("empty file", 0.07):
            return b""
        ends = [b"\n"]
        if self._tries("CR and CRLF", 0.3):
            ends = chance.choice([[b"\r\n"], [b"\r"], [b"\n", b"\r", b"\r\n"]])
        if "recordDelimiter" in self._spec:
            ends = [*ends, self._spec["recordDelimiter"].encode()]
        # A combiner gives other keys than the mapper, by which Hadoop then merges: with such bytes, in no order.
        has_low = not ("combiner" in self._spec and len(self._spec.keys() & _KEYS)) and self._tries(
            "bytes below TAB", 0.2
        )
        line = self._low_line if has_low else self._line
        content = b"".join(line() + chance.choice(ends) for _ in range(chance.choice([1, 3, 8, 20])))
        if chance.random() < 0.4:
            content = content.removesuffix(ends[-1])
            self._options.add("no last line end")
        if self._tries("byte order mark", 0.1):
            content = b"\xef\xbb\xbf" + content
        return content

    def _line(self) -> bytes:
        """Return a line whose value depends on its key."""
        chance = self._chance
        key = [chance.choice(_WORDS) for _ in range(self._fields)]
        if chance.random() < 0.15:
            key = key[: chance.randint(1, len(key))]
            return self._separator.join(key).encode() if len(key) < self._fields else self._valued(key)
        return self._valued(key)

    def _valued(self, key: list[str]) -> bytes:
        text = self._separator.join(key)
        values = ["", "1", "v,w", "v.w.x", "a b", "ab;c"]
        value = values[sum(text.encode()) % len(values)]
        return (text if value == "" else f"{text}{self._separator}{value}").encode()

    def _low_line(self) -> bytes:
        low = ["", "a", "\x01", "a\x00", "a\x01", "a\x08", "a\x0b", "\x02a"]
        return self._valued([self._chance.choice(low) for _ in range(self._fields)])


def packed(kind: str, files: dict[str, bytes]) -> bytes:
    """Return an archive."""
    memory = io.BytesIO()
    if kind in ("zip", "jar"):
        with zipfile.ZipFile(memory, "w") as made:
            for name, content in files.items():
                made.writestr(zipfile.ZipInfo(name), content)
        return memory.getvalue()
    with tarfile.open(fileobj=memory, mode="w:") as made_tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            made_tar.addfile(entry, io.BytesIO(content))
    return memory.getvalue() if kind == "tar" else gzip.compress(memory.getvalue(), mtime=0)


def comparable(job: Job, parts: dict[str, bytes] | None) -> dict[str, list[list[bytes]]] | None:
    """Return the lines of each part with those of keys that compare equal together, in one order."""
    return parts and {name: list(_groups(job, part.splitlines())) for name, part in parts.items()}


def _groups(job: Job, lines: list[bytes]) -> Iterator[list[bytes]]:
    spec = job.spec
    if "comparator" not in spec:
        # Hadoop takes the first field alone for the key of a combiner's line.
        is_by_first = "combiner" in spec and "numMapOutputKeyFields" in spec
        for _, group in itertools.groupby(lines, (lambda line: line.partition(b"\t")[0]) if is_by_first else None):
            yield sorted(group)
        return
    options = spec["comparator"]["options"]
    ordering = Ordering(Partitioner(key_field_separator=spec["mapOutputKeyFieldSeparator"], comparator_options=options))

    def sort_key(line: bytes) -> bytes:
        return ordering.sort_key(key_fields.key(line, b"\t", spec["numMapOutputKeyFields"]))

    for _, group in itertools.groupby(lines, sort_key):
        yield sorted(group)
