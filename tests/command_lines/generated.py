"""Command lines of Hadoop Streaming and of spark-submit, made up by chance from the options that their parsers know."""

import random
from collections.abc import Callable, Iterator
from typing import Final

SEED: Final = 32
HADOOP_LINES: Final = 250
SPARK_LINES: Final = 200
FILES: Final = {
    "map.py": "",
    "jobs/reduce.py": "",
    "lib.jar": "",
    "app.conf": "spark.executor.memory 3g\nspark.a = of the file \nspark.files=s3a://b/f.txt\nother.key=1\n",
    "more.conf": "spark.a=of another file\nspark.b:x\\\n  y\n",
}
"""Files in the folder where the lines are read."""
PROPERTIES: Final = (
    "mapreduce.job.reduces",
    "stream.num.map.output.key.fields",
    "stream.map.output.field.separator",
    "mapreduce.partition.keypartitioner.options",
    "num.key.fields.for.partition",
    "my.name",
)
_FIELD_PARTITIONER = "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner"
_COMMANDS: Final = (
    *("cat", r"sed s/\s/_/g", "awk '{ print $2 \"\\t\" $1 }'", "grep -E '[a-z]+ \"x\"'", 'sh -c "sort | uniq -c"'),
    *("a'b c'd", "a '' \"\" b", "  cut  -f 1 ", "tr\t' ' _", '"cat"', "map.py 1", "./map.py", "jobs/reduce.py --x=1"),
    *("jobs/../map.py", "python3 jobs/reduce.py", "NONE", "it's", "-n"),
)
_INPUTS: Final = ("s3a://b/in", "s3a://b/{x,y}/z", "s3a://b/1,s3a://b/2", "s3a://b/{a,{b,c}},s3a://b/*.gz", "s3a://b/?")
_DEFINITIONS: Final = (
    *("my.name=1", "my.name=a=b c", "my.name=", "mapred.reduce.tasks=4", "mapreduce.job.reduces=3", "novalue"),
    *("stream.num.map.output.key.fields=2", "stream.map.output.field.separator=,", "num.key.fields.for.partition=2"),
    *("mapred.text.key.partitioner.options=-k1,1", "mapreduce.job.reduces=0"),
)


def hadoop() -> list[list[str]]:
    """Return the words after the jar of each line."""
    chance = random.Random(SEED)
    return [_hadoop_line(chance) for _ in range(HADOOP_LINES)]


def _hadoop_line(chance: random.Random) -> list[str]:
    generic: dict[str, Callable[[], str]] = {
        "D": lambda: chance.choice(_DEFINITIONS),
        "files": lambda: chance.choice(["map.py", "map.py,jobs/reduce.py", "jobs/reduce.py#r.py"]),
        "libjars": lambda: "lib.jar",
        "jt": lambda: "local",
    }
    streaming: dict[str, Callable[[], str]] = {
        "combiner": lambda: chance.choice(_COMMANDS),
        "reducer": lambda: chance.choice(_COMMANDS),
        "mapper": lambda: chance.choice(_COMMANDS),
        "numReduceTasks": lambda: chance.choice(["0", "1", "5"]),
        "file": lambda: chance.choice(["map.py", "jobs/reduce.py", "./jobs/reduce.py"]),
        "cmdenv": lambda: chance.choice(["A=b", "A=c=d", "A=b c", "A=", "LANG=C B=1"]),
        "inputformat": lambda: chance.choice(["TextInputFormat", "org.apache.hadoop.mapred.KeyValueTextInputFormat"]),
        "partitioner": lambda: chance.choice([_FIELD_PARTITIONER, "org.apache.hadoop.mapred.lib.HashPartitioner"]),
        "jobconf": lambda: chance.choice([definition for definition in _DEFINITIONS if "=" in definition]),
        "io": lambda: chance.choice(["text", "typedbytes"]),
        "mapdebug": lambda: "echo",
        "input": lambda: chance.choice(_INPUTS),
        "output": lambda: "s3a://b/other",
    }
    words = [word for _ in range(chance.randrange(3)) for word in _option(chance, generic)]
    parts = [
        *(
            [["-input", *(chance.choice(_INPUTS) for _ in range(chance.choice([1, 1, 2])))]]
            if chance.random() < 0.97
            else []
        ),
        *([["-output", "s3a://b/out"]] if chance.random() < 0.97 else []),
        ["-mapper", chance.choice(_COMMANDS)],
        *(list(_option(chance, streaming)) for _ in range(chance.randrange(4))),
        *([[f"-{chance.choice(['lazyOutput', 'verbose', 'background', 'debug'])}"]] if chance.random() < 0.3 else []),
        *([chance.choice([["-nosuch", "x"], ["-numReduceTask", "1"], ["--", "x"]])] if chance.random() < 0.05 else []),
        *([list(_option(chance, generic))] if chance.random() < 0.1 else []),
        *([["-file", "map.py", "jobs/reduce.py"]] if chance.random() < 0.1 else []),
        *([["-reducer"]] if chance.random() < 0.03 else []),
    ]
    chance.shuffle(parts)
    return [*words, *(word for part in parts for word in part)]


def _option(chance: random.Random, values: dict[str, Callable[[], str]]) -> Iterator[str]:
    name = chance.choice(sorted(values))
    value, style = values[name](), chance.random()
    if name == "D" and style < 0.4:
        yield f"-D{value}"
    elif name == "files" and style < 0.2:
        yield f"-{name}={value}"
    else:
        yield f"--{name}" if style > 0.9 else f"-{name}"
        yield value


_SPARK_VALUES: Final = {
    "--archives": ("s3a://b/e.tar.gz#e",),
    "--class": ("org.example.Main", "org.example.Other"),
    "--conf": (
        "spark.a=b",
        "spark.a=b=c",
        "spark.executor.memory=2g",
        "spark.a=",
        "novalue",
        "spark.jars=s3a://b/c.jar",
    ),
    "-c": ("spark.a=d", "spark.driver.memory=2g"),
    "--driver-class-path": ("/opt/a:/opt/b",),
    "--driver-cores": ("2", "3"),
    "--driver-java-options": ("-Da='b c' -Dd=e",),
    "--driver-library-path": ("/opt/lib",),
    "--driver-memory": ("2g", "3g"),
    "--executor-cores": ("2", "3"),
    "--executor-memory": ("4g", "5g"),
    "--exclude-packages": ("g:x",),
    "--extra-properties-file": ("more.conf", "app.conf"),
    "--files": ("s3a://b/a.csv,s3a://b/b.csv",),
    "--jars": ("s3a://b/a.jar,s3a://b/b.jar", "s3a://b/d.jar"),
    "--name": ("pi", "--verbose", "two words"),
    "--num-executors": ("3", "4"),
    "--packages": ("g:a:1.0", "g:a:1.0,g:b:2"),
    "--properties-file": ("app.conf", "more.conf"),
    "--py-files": ("s3a://b/a.zip",),
    "--queue": ("night",),
    "--repositories": ("https://repository.example.com/maven",),
    "--keytab": ("k",),
    "--principal": ("p",),
    "--proxy-user": ("alice",),
    "--total-executor-cores": ("4",),
}
_ARGUMENTS: Final = ("10", "--conf", "spark.a=z", "", "a b", "--executor-memory=9g", "$x", "-v")


def spark() -> list[list[str]]:
    """Return the words after the program of each line."""
    chance = random.Random(SEED)
    return [_spark_line(chance) for _ in range(SPARK_LINES)]


def _spark_line(chance: random.Random) -> list[str]:
    words = []
    for _ in range(chance.randrange(7)):
        option = chance.choice(sorted(_SPARK_VALUES))
        value, style = chance.choice(_SPARK_VALUES[option]), chance.random()
        words += [f"{option}={value}"] if style < 0.3 and option.startswith("--") else [option, value]
    if chance.random() < 0.2:
        words.append(chance.choice(["-v", "--verbose", "--supervise"]))
    if chance.random() < 0.08:
        words += chance.choice(
            [
                ["--no-such", "x"],
                ["--name="],
                ["-x"],
                ["--driver-default-class-path", "/opt/d"],
                ["--executor-memory"],
                ["-c=spark.a=b"],
            ]
        )
    file = chance.choice(["local:///opt/app/main.py", "s3a://b/app.jar", "s3a://b/main.py"])
    if file.endswith(".jar") and chance.random() < 0.9:
        words += ["--class", "org.example.Main"]
    if chance.random() < 0.97:
        words += [file, *(chance.choice(_ARGUMENTS) for _ in range(chance.randrange(4)))]
    return words
