"""Command lines of Hadoop Streaming as MRJobs."""

from __future__ import annotations

import pathlib
import shlex

import pytest

from boathouse.resources.mrjob.spec import MRJobSpec
from boathouse.services.mrjob.hadoop import options as hadoop_options
from boathouse_cli.conversion import hadoop_lines
from boathouse_cli.conversion.hadoop_options import COMPRESS, FIELDS
from tests.streaming import jobs, options as streaming_options

URLS = "-input s3a://b/in -output s3a://b/out -mapper cat"
LIB = "org.apache.hadoop.mapred.lib"
OPTIONS = "mapred.text.key.comparator.options"
MADE_ELSEWHERE = {"input", "keyOnlyOutput", "comparator"}
"""Fields that are settings of Hadoop in a way of their own."""


def converted(text, cluster=None):
    return hadoop_lines.convert(["hadoop", "jar", "hadoop-streaming.jar", *shlex.split(text)], cluster)


def spec_of(text, cluster=None):
    found = converted(text, cluster)
    assert found.manifest is not None, found.notes
    return found.manifest["spec"]


def notes_of(text, cluster=None):
    return [f"{note.path}: {note.advice}" for note in converted(text, cluster).notes]


def test_a_line_becomes_a_job():
    text = "-D mapreduce.job.name='Word Count' -files s3a://b/m.py -input s3a://b/in,s3a://b/more -output s3a://b/out"
    found = converted(f"{text} -mapper \"python3 m.py 'a b'\" -reducer 'sum.sh' -numReduceTasks 3 -cmdenv LANG=C")
    assert found.manifest == {
        "apiVersion": "boathouse.dev/v1alpha1",
        "kind": "MRJob",
        "metadata": {"name": "word-count"},
        "spec": {
            "input": ["s3://b/in", "s3://b/more"],
            "output": "s3://b/out",
            "mapper": {"command": ["python3", "m.py", "a b"]},
            "reducer": {"command": ["sum.sh"]},
            "numReduceTasks": 3,
            "files": [{"name": "m.py", "url": "s3://b/m.py"}],
            "env": [{"name": "LANG", "value": "C"}],
            "storage": {"s3": {"secretRef": {"name": "s3-credentials"}}},
        },
    }


@pytest.mark.parametrize("number", range(0, jobs.COUNT, 7))
def test_the_lines_of_recorded_jobs_become_these_jobs(number):
    job = {field: value for field, value in jobs.every()[number].spec.items() if field != "archives"}
    settings = [f"-D{key}={value}" for key, value in streaming_options.properties(job).items()]
    commands = [
        word for kind in ("mapper", "combiner", "reducer") if kind in job for word in (f"-{kind}", f"{kind}.sh")
    ]
    urls = ["-input", "s3a://b/in", "-output", "s3a://b/out"]
    words = [*settings, *commands, *streaming_options.streaming(job), *urls]
    found = hadoop_lines.convert(["hadoop", "jar", "hadoop-streaming.jar", *words], None).manifest["spec"]
    assert effective(found) == effective(
        job | {"input": ["s3://b/in"], "output": "s3://b/out", "storage": found["storage"]}
    )


def effective(found):
    """The spec with its defaults, without what has no effect: Hadoop ignores it too."""
    values = MRJobSpec.model_validate(found).model_dump()
    return values | {"partitioner": values["partitioner"] or {"type": "HashPartitioner", "options": None}}


def test_each_setting_that_a_job_gives_hadoop_is_read_back_as_its_field():
    given = {setting.key: setting.field for setting in hadoop_options.SETTINGS if setting.field not in MADE_ELSEWHERE}
    taken = {key: field for key, (field, _) in FIELDS.items()}
    assert {
        key: taken.get(key, "").removesuffix(".requests.memory").removesuffix(".requests.cpu") for key in given
    } == {key: "" if key == COMPRESS else field for key, field in given.items()}


def test_the_page_names_each_property_and_its_field():
    page = (pathlib.Path(__file__).parents[4] / "docs" / "coming-from-hadoop.md").read_text()
    fields = [field for field, _ in FIELDS.values()]
    assert [key for key in FIELDS if f"`{key}" not in page] == []
    assert [field for field in fields if f"`{field.removesuffix('.options')}" not in page] == []


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("-D mapred.reduce.tasks=2", "numReduceTasks", 2),
        ("-D mapred.task.timeout=600500", "taskTimeoutSeconds", 601),
        ("-D mapreduce.job.reduce.slowstart.completedmaps=0.8", "slowStartCompletedMapsPercent", 80),
        ("-D mapred.map.max.attempts=2", "mapper", {"command": ["cat"], "maxAttempts": 2}),
        (
            "-D mapreduce.map.memory.mb=1024",
            "mapper",
            {"command": ["cat"], "resources": {"requests": {"memory": "1024Mi"}}},
        ),
        ("-D stream.non.zero.exit.is.failure=false", "nonZeroExitIsFailure", False),
        ("-D stream.reduce.output=keyonlytext", "keyOnlyOutput", True),
        ("-D mapreduce.job.queuename=night", "queue", "night"),
        ("-D mapreduce.job.ubertask.enable=true", "uber", {}),
        ("-D my.name=x", "conf", {"my.name": "x"}),
        ("-jobconf my.name=x=y", "conf", {"my.name": "x=y"}),
        ("-io text -D stream.map.input=rawbytes -D my.name=x", "conf", {"my.name": "x"}),
        ("-lazyOutput", "lazyOutput", True),
        ("-D mapred.output.compress=true", "outputCompression", "deflate"),
        ("-archives s3a://b/w.zip#words", "archives", [{"name": "words", "url": "s3://b/w.zip"}]),
        ("-cacheFile s3://b/a.txt#list", "files", [{"name": "list", "url": "s3://b/a.txt"}]),
        (
            "-D mapred.output.compress=true -D mapred.output.compression.codec=org.apache.hadoop.io.compress.GzipCodec",
            "outputCompression",
            "gzip",
        ),
        (
            f"-D mapred.output.key.comparator.class={LIB}.KeyFieldBasedComparator -D {OPTIONS}=-k2nr",
            "comparator",
            {"options": "-k2nr"},
        ),
        (
            f"-partitioner {LIB}.KeyFieldBasedPartitioner -D mapreduce.partition.keypartitioner.options=-k1,1",
            "partitioner",
            {"type": "KeyFieldBasedPartitioner", "options": "-k1,1"},
        ),
        ("-D fs.s3a.endpoint=s3.example.org", "storage", "https://s3.example.org"),
    ],
)
def test_an_option_is_a_field(words, field, value):
    found = spec_of(f"{words} {URLS}")[field]
    assert (found["s3"]["endpointURL"] if field == "storage" else found) == value


@pytest.mark.parametrize(
    "words",
    ["-D textinputformat.record.delimiter=; -inputformat NLineInputFormat", "-D stream.reduce.input.field.separator=,"],
)
def test_what_hadoop_ignores_is_left_out(words):
    made = spec_of(f"{words} {URLS} -numReduceTasks 0")
    assert made.keys() <= {"input", "output", "mapper", "storage", "inputFormat"}


@pytest.mark.parametrize(
    ("words", "ignores_key"),
    [("", False), ("-D stream.map.input.ignoreKey=true", True), ("-D stream.map.input.ignoreKey=false", False)],
)
def test_a_mapper_of_combined_files_reads_the_position_of_each_line_as_in_hadoop(words, ignores_key):
    made = spec_of(f"{words} {URLS} -inputformat {LIB}.CombineTextInputFormat")
    assert (made["inputFormat"], made["mapInputIgnoreKey"]) == ("CombineTextInputFormat", ignores_key)


def test_several_inputs_are_a_list_and_commas_in_braces_are_not():
    assert spec_of(f"{URLS} -input s3a://b/{{x,y}}/z,s3n://c/d")["input"] == ["s3://b/in", "s3://b/{x,y}/z", "s3://c/d"]


def test_without_a_reducer_lines_are_sorted_and_without_reduces_they_are_not():
    assert spec_of(URLS)["reducer"] == {"command": ["cat"]}
    assert "reducer" not in spec_of(f"{URLS} -numReduceTasks 0")
    assert "reducer" not in spec_of(f"{URLS} -reducer NONE")


def test_a_job_on_a_cluster_has_paths_and_settings_of_hadoop():
    text = (
        "-D a.b=c -D mapreduce.job.queuename=q -archives s3a://b/w.zip#w -input /in -output hdfs://pond/out -mapper cat"
    )
    made = spec_of(text, cluster="etl")
    assert made["clusterRef"] == {"name": "etl"}
    assert (made["input"], made["output"]) == (["/in"], "hdfs://pond/out")
    settings = {"a.b": "c", "mapreduce.job.queuename": "q"}
    assert made["hadoop"] == {"archives": ["s3a://b/w.zip#w"], "settings": settings}
    assert "conf" not in made


@pytest.mark.parametrize(
    "words",
    [
        "-input s3a://b/in -output /out",
        "-input /in -output s3a://b/out",
        "-archives s3a://b/w.zip -input /in -output /out",
        "-D fs.s3a.access.key=hidden -input /in -output /out",
    ],
    ids=["input", "output", "archives", "keys"],
)
def test_a_job_on_a_cluster_has_the_keys_of_s3_in_a_secret(words):
    text = f"-D fs.s3a.endpoint=http://s3:9000 {words} -mapper cat"
    made = spec_of(text, cluster="etl")
    assert made["storage"] == {"s3": {"endpointURL": "http://s3:9000", "secretRef": {"name": "s3-credentials"}}}
    assert "settings" not in made.get("hadoop", {})
    assert "s3://: the Secret s3-credentials needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in notes_of(text, "etl")


def test_a_job_of_paths_alone_has_no_storage():
    assert "storage" not in spec_of("-input /in -output /out -mapper cat", cluster="etl")


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (
            "-file m.py",
            "-files: the job waits for a ConfigMap of these files: kubectl create configmap streaming-files",
        ),
        ("-D mapreduce.job.maps=3", "-D mapreduce.job.maps: changes nothing but a variable of the commands"),
        ("-D fs.s3a.secret.key=hidden", "-D fs.s3a.secret.key: is left out: put it into the Secret"),
        ("-libjars a.jar", "-libjars: has no effect"),
        ("-Dmapred.output.compress=true -Dmapred.output.compression.codec=Lz4Codec", "Lz4Codec has no counterpart"),
    ],
)
def test_what_has_no_counterpart_is_noted(words, note):
    assert any(note in line for line in notes_of(f"{words} {URLS}"))
    assert "hidden" not in str(converted(f"{words} {URLS}"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"-io typedbytes {URLS}", "-io: commands read and write lines: encode binary values"),
        (f"-D stream.map.input=rawbytes {URLS}", "encode binary values"),
        (
            f"-inputreader StreamXmlRecordReader,begin=a,end=b {URLS}",
            "cut the input with textinputformat.record.delimiter",
        ),
        (f"{URLS} -reducer aggregate", "-reducer: aggregate is a class of Java: write a command"),
        (f"{URLS} -mapper org.apache.hadoop.mapred.lib.InverseMapper", "is a class of Java"),
        (f"-inputformat SequenceFileInputFormat {URLS}", "SequenceFileInputFormat has no counterpart"),
        (f"-partitioner org.example.Mine {URLS}", "org.example.Mine has no counterpart"),
        (f'{URLS} -mapper "sed \'s"', "-mapper: No closing quotation: close the quotes"),
        ("-input /in -output s3://b/out -mapper cat", "/in cannot be read by tasks"),
        ("-input hdfs://nn:8020/in -output s3://b/out -mapper cat", "cannot be read by tasks"),
        ("-output s3://b/out -mapper cat", "-input: is missing"),
        ("-input s3://b/in -mapper cat", "-output: is missing"),
        (f"{URLS} -archives words.zip", "put it into S3, and name its URL"),
        (f"{URLS} -D mapreduce.job.reduces=many", "'many' cannot be read: correct it"),
        (f"{URLS} -numReduceTask 3", "-numReduceTask: is no option of Hadoop Streaming"),
        (f"{URLS} -mapper", "-mapper: has no value"),
        (f"{URLS} -D name", "name is no property"),
    ],
)
def test_what_cannot_be_converted_says_what_to_do(text, why):
    found = converted(text)
    assert found.manifest is None
    assert why in found.notes[-1].text


def test_a_relative_path_on_a_cluster_is_refused():
    found = converted("-input in -output /out -mapper cat", cluster="etl")
    assert "in is no path: write /PATH" in found.notes[-1].text
