"""Lines that are made up by chance are read as Hadoop's and Spark's own parsers read them: recordings are compared."""

import re

import pytest

from boathouse.resources.sparkapp.status import SparkApp
from boathouse.services.sparkapp import user_properties
from boathouse_cli.conversion import command_lines, hadoop_lines, hadoop_options
from tests.command_lines import generated, record

HADOOP, SPARK = record.read(record.HADOOP), record.read(record.SPARK)
MANY = 2**31 - 1
OURS_ALONE = (
    r".*(closing quotation: close the quotes|is no property: write KEY=VALUE|encode binary values, such as base64"
    r"|-input: -\w+ cannot be read by tasks.*|has no value: write one after it)"
)
"""What Hadoop takes and is refused here, with a reason: it is a mistake, or has no counterpart."""
OF_PROPERTIES = {
    "stream.num.map.output.key.fields": "numMapOutputKeyFields",
    "stream.map.output.field.separator": "mapOutputFieldSeparator",
}


def test_the_recordings_are_of_these_lines():
    assert [line["words"] for line in HADOOP["lines"]] == generated.hadoop()
    assert [line["words"] for line in SPARK["lines"]] == generated.spark()


def test_the_options_are_those_that_hadoops_parsers_know():
    streaming = HADOOP["known"]["streaming"]
    assert HADOOP["known"]["generic"] == dict.fromkeys(hadoop_options.GENERIC, 1)
    assert {name for name, count in streaming.items() if count == MANY} == hadoop_options.MANY
    assert {name for name, count in streaming.items() if count == 1} == hadoop_options.SINGLE
    assert {name for name, count in streaming.items() if count < 0} == hadoop_options.FLAGS


def test_the_options_are_those_that_sparks_parser_knows():
    options = {name for names in SPARK["known"]["options"] for name in names}
    switches = {name for names in SPARK["known"]["switches"] for name in names}
    internal = {"--driver-default-class-path"}  # which its launcher alone may give
    valued = {
        *internal,
        *command_lines._OPTIONS,
        *command_lines._NO_COUNTERPART,
        *command_lines._FILES,
        "--conf",
        "-c",
        "--class",
    }
    no_submission = {"--kill", "--status"}
    assert options == valued | no_submission
    assert switches | no_submission == {*command_lines._FLAGS, *command_lines._NOT_A_SUBMISSION}


@pytest.mark.parametrize("line", HADOOP["lines"], ids=lambda line: " ".join(line["words"])[:60])
def test_a_line_of_hadoop_is_read_as_hadoop_reads_it(line):
    found = hadoop_lines.convert(["hadoop", "jar", "hadoop-streaming.jar", *line["words"]], None)
    expected = line["read"]
    if has_late_generic_option(line["words"]):
        return  # refused by Hadoop, or read as a value of the option before
    if expected is None:
        assert found.has_failed
    elif found.manifest is None:
        assert re.match(OURS_ALONE, found.notes[-1].text), found.notes[-1]
    else:
        assert facts(found.manifest["spec"]) == relevant(expected)


def has_late_generic_option(words):
    """Return whether a line has a generic option that Hadoop does not read as one: it follows one of streaming."""
    names = [re.sub(r"^(-D).+", r"\1", word).lstrip("-").partition("=")[0] for word in words if word.startswith("-")]
    first = next((number for number, name in enumerate(names) if name not in hadoop_options.GENERIC), len(names))
    return any(name in hadoop_options.GENERIC for name in names[first:])


def facts(spec):
    """What a job says, in Hadoop's terms."""
    has_reduces = "reducer" in spec
    return {
        "input": [url.replace("s3://", "s3a://") for url in spec["input"]],
        "output": spec["output"].replace("s3://", "s3a://"),
        "map": spec.get("mapper", {}).get("command"),
        "combine": spec.get("combiner", {}).get("command"),
        "reduce": spec["reducer"]["command"] if has_reduces else None,
        "reduces": spec.get("numReduceTasks", 1) if has_reduces else 0,
        "partitioner": spec.get("partitioner", {}).get("type", "HashPartitioner"),
        "fields": spec.get("partitioner", {}).get("options"),
        "inputFormat": spec.get("inputFormat", "TextInputFormat"),
        "env": {variable["name"]: variable["value"] for variable in spec.get("env", [])},
        "files": {file["name"] for file in spec.get("files", [])},
        "properties": {
            **{key: str(spec[field]) for key, field in OF_PROPERTIES.items() if field in spec and has_reduces},
            **{key: value for key, value in spec.get("conf", {}).items() if key == "my.name"},
        },
    }


def relevant(read):
    """What Hadoop read, without what has no effect and is left out: of missing reduces, and of other partitioners."""
    has_reduces, given = read["reduces"] > 0, read["properties"]
    number = given.get("num.key.fields.for.partition")
    options = f"-k1,{number}" if number else given.get("mapreduce.partition.keypartitioner.options")
    explicit = {key: value for key, value in given.items() if key in {*OF_PROPERTIES, "my.name"}}
    env = {name: value for name, value in read["env"].items() if name != "HADOOP_ROOT_LOGGER"}
    wanted = {key for key in explicit if key == "my.name" or has_reduces}
    return {
        **{key: read[key] for key in ("input", "output", "map", "reduces", "partitioner", "inputFormat")},
        "combine": read["combine"] if has_reduces else None,
        "reduce": (read["reduce"] or ["cat"]) if has_reduces else None,
        "fields": options if read["partitioner"] == "KeyFieldBasedPartitioner" else None,
        "env": env,
        "files": set(read["files"]),
        "properties": {key: explicit[key] for key in wanted},
    }


GETTERS = {
    "jars": "spark.jars",
    "packages": "spark.jars.packages",
    "packagesExclusions": "spark.jars.excludes",
    "repositories": "spark.jars.repositories",
    "pyFiles": "spark.submit.pyFiles",
    "files": "spark.files",
    "archives": "spark.archives",
    "driverMemory": "spark.driver.memory",
    "driverCores": "spark.driver.cores",
    "driverExtraJavaOptions": "spark.driver.extraJavaOptions",
    "driverExtraLibraryPath": "spark.driver.extraLibraryPath",
    "driverExtraClassPath": "spark.driver.extraClassPath",
    "executorMemory": "spark.executor.memory",
    "executorCores": "spark.executor.cores",
    "numExecutors": "spark.executor.instances",
}


@pytest.mark.parametrize("line", SPARK["lines"], ids=lambda line: " ".join(line["words"])[:60])
def test_a_line_of_spark_is_read_as_spark_reads_it(line):
    words, expected = ["spark-submit", *line["words"]], line["read"]
    found = command_lines.convert(words, source="line", read=generated.FILES.__getitem__)
    if expected is None:
        assert found.has_failed or {"--proxy-user", "--principal"} <= {note.path for note in found.notes}
    elif found.manifest is None:
        assert found.notes[-1].path == "--class", found.notes[-1]  # Spark finds that out later
        assert "mainClass" not in expected
    else:
        spec = found.manifest["spec"]
        properties = {
            **expected["properties"],
            **{key: expected[get] for get, key in GETTERS.items() if get in expected},
        }
        assert spec["mainApplicationFile"] == expected["primaryResource"]
        assert spec.get("arguments", []) == expected["childArgs"]
        assert spec.get("mainClass") == (expected.get("mainClass") if spec["type"] == "Scala" else None)
        assert spec.get("queue") == expected.get("queue")
        read = user_properties.of(SparkApp.model_validate({"spec": spec}).spec)
        read["spark.jars"] = read.get("spark.jars", "").removesuffix(f",{expected['primaryResource']}")  # the program
        assert {key: read.get(key) for key in properties if is_kept(key)} == {
            key: value for key, value in properties.items() if is_kept(key)
        }


def is_kept(key):
    return key.startswith("spark.") and key not in {
        "spark.app.name",
        "spark.master",
        "spark.submit.deployMode",
        "spark.yarn.queue",
    }


def test_each_property_of_the_generator_that_is_a_field_is_compared():
    fields = {key for key in generated.PROPERTIES if key in hadoop_options.FIELDS}
    assert fields == {*OF_PROPERTIES, hadoop_options.PARTITION_OPTIONS, "mapreduce.job.reduces"}
