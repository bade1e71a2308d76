"""Jobs that Hadoop Streaming runs otherwise than Boathouse: the rows of docs/coming-from-hadoop.md that stay."""

import bz2
import dataclasses
import random
from collections.abc import Mapping
from typing import Any, Final

from tests.streaming.jobs import REDUCERS, Job

_LIB = "org.apache.hadoop.mapred.lib"
_KEY_VALUE = "org.apache.hadoop.mapred.KeyValueTextInputFormat"
_HEX = "od -An -v -tx1 | tr -d ' \\n'; echo"
_CAT = "cat"
_SWAP = """awk -F'\\t' '{ print $2 "\\t" $1 }'"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """A job that differs.

    Attributes:
        row: words of the page, which its row begins with.
        job: the job as far as an MRJob can say it.
        properties: of the job in Hadoop besides (-D); {folder} is its folder.
        words: options of it besides; a command among them replaces that of the job.
        advice: the job that the page advises instead, which writes what Hadoop writes.
    """

    row: str
    job: Job
    properties: Mapping[str, str] = dataclasses.field(default_factory=dict)
    words: tuple[str, ...] = ()
    advice: Job | None = None


def job(files: Mapping[str, bytes], *, split_bytes: int = 64 * 1024 * 1024, **spec: Any) -> Job:
    """Return a job; a mapper, combiner or reducer that is a text is a script, and one that is a list a command."""
    scripts = {
        f"{kind}.sh": spec[kind] for kind in ("mapper", "combiner", "reducer") if isinstance(spec.get(kind), str)
    }
    commands = {name.removesuffix(".sh"): {"command": [name]} for name in scripts}
    commands |= {kind: {"command": spec[kind]} for kind in spec if isinstance(spec[kind], list)}
    return Job(
        spec=spec | commands,
        files=dict(files),
        scripts=scripts,
        archives={},
        split_bytes=split_bytes,
        options=frozenset(),
    )


def _text(lines: int) -> bytes:
    """Return lines that bzip2 cannot make much smaller."""
    chance = random.Random(1)
    return b"".join(b"%032x\n" % chance.getrandbits(128) for _ in range(lines))


_LINES: Final = {"file.txt": b"ab\nc\n"}
_PAGES: Final = {"file.xml": b"<doc><page>one</page><page>two</page>\n <page>three</page></doc>\n"}
_COUNTS: Final = {"file.txt": b"a b a\nb a\n"}
_PAIRS: Final = {"file.txt": b"k\tv\na\tb\n"}
_TWO: Final = {"orders.txt": b"u1\tshoes\n", "users.txt": b"Ann\tu1\n"}
_BLOCKS: Final = _text(9_000)

ALL: Final = {
    "typed bytes": Difference(
        row="typed bytes", job=job(_LINES, mapper=_HEX), properties={"stream.map.input": "typedbytes"}
    ),
    "raw bytes": Difference(
        row="raw mappers", job=job(_LINES, mapper=_HEX), properties={"stream.map.input": "rawbytes"}
    ),
    "mapper of Java": Difference(
        row="raw mappers",
        job=job(_PAIRS, mapper=[f"{_LIB}.InverseMapper"], reducer=_CAT, inputFormat="KeyValueTextInputFormat"),
        words=("-mapper", f"{_LIB}.InverseMapper"),
        advice=job(_PAIRS, mapper=_SWAP, reducer=_CAT),
    ),
    "XML records": Difference(
        row="XML records",
        job=job(_PAGES, mapper=_CAT),
        words=("-inputreader", "StreamXmlRecordReader,begin=<page>,end=</page>"),
        advice=job(_PAGES, mapper="sed -n 's|.*<page>\\(.*\\)|<page>\\1</page>|p'", recordDelimiter="</page>"),
    ),
    "bzip2 splits": Difference(
        row="bzip2 splits",
        job=job({"file.bz2": bz2.compress(_BLOCKS, 1)}, mapper="wc -l", split_bytes=100_000),
    ),
    "aggregate package": Difference(
        row="the aggregate package",
        job=job(_COUNTS, mapper="tr ' ' '\\n' | sed 's/.*/LongValueSum:&\\t1/'", reducer=["aggregate"]),
        words=("-reducer", "aggregate"),
        advice=job(
            _COUNTS, mapper="tr ' ' '\\n' | sed 's/$/\\t/'", reducer="cut -f1 | uniq -c | awk '{ print $2 \"\\t\" $1 }'"
        ),
    ),
    "several inputs": Difference(
        row="several inputs",
        job=job(_TWO, mapper=_CAT, reducer=_CAT),
        properties={
            "mapreduce.input.multipleinputs.dir.formats": f"{{folder}}/in/orders.txt;{_KEY_VALUE},"
            f"{{folder}}/in/users.txt;{_KEY_VALUE}",
            "mapreduce.input.multipleinputs.dir.mappers": f"{{folder}}/in/orders.txt;{_LIB}.IdentityMapper,"
            f"{{folder}}/in/users.txt;{_LIB}.InverseMapper",
        },
        words=("-inputformat", f"{_LIB}.DelegatingInputFormat", "-mapper", f"{_LIB}.DelegatingMapper"),
        advice=job(_TWO, mapper=f"case $map_input_file in *users.txt) {_SWAP};; *) cat;; esac", reducer=_CAT),
    ),
    "early end": Difference(
        row="a command stops reading", job=job({"file.txt": b"line\n" * 200_000}, mapper="head -1")
    ),
    "TAB in a key": Difference(
        row="a tab in a key",
        job=job({"file.txt": b"\x01.1\n\t.2\na.3\n"}, mapper=_CAT, reducer=_CAT, mapOutputFieldSeparator="."),
    ),
    "overlapping delimiters": Difference(
        row="a `recorddelimiter` that overlaps itself",
        job=job({"file.txt": b"aaaaaa||||bbbbbb"}, mapper=_CAT, recordDelimiter="||", split_bytes=7),
    ),
    "combiner of other keys": Difference(
        row="a combiner",
        job=job(
            {"file.txt": b"a\t1\nb\t1\n"},
            mapper=_CAT,
            combiner="sed 's/^[^\\t]*/same/'",
            reducer=REDUCERS["sum"],
            numReduceTasks=2,
        ),
    ),
}
