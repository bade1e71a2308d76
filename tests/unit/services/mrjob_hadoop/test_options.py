"""The options of Hadoop for a spec."""

from __future__ import annotations

from typing import Any

import pytest

from boathouse.resources.mrjob.spec import MRJobSpec
from boathouse.services.frame.kind import Refusal
from boathouse.services.mrjob import model, on_cluster
from boathouse.services.mrjob.hadoop import options
from tests.builders import mrjobs
from tests.builders.simulated_hadoop_job import CLUSTER

ELSEWHERE = {
    "image": "the cluster's image runs the tasks",
    "imagePullPolicy": "of the cluster",
    "imagePullSecrets": "of the client's pod",
    "serviceAccountName": "of the client's pod",
    "nodeSelector": "of the client's pod",
    "tolerations": "of the client's pod",
    "env": "in the scripts",
    "envFrom": "refused, or of the client's pod",
    "files": "-files",
    "input": "-input, and recursive",
    "output": "-output",
    "mapper": "-mapper",
    "combiner": "-combiner",
    "reducer": "-reducer",
    "partitioner": "-partitioner",
    "comparator": "its class",
    "storage": "settings and keys of s3a:// and s3://, for the client",
    "queue": "Boathouse's",
    "suspend": "the operator's",
    "activeDeadlineSeconds": "the operator's",
    "ttlSecondsAfterFinished": "the operator's",
    "cleanUp": "the committer of Hadoop cleans up",
    "steps": "one step",
    "maxRecordBytes": "Hadoop cuts long lines and does not fail",
    "uber": "refused",
    "podTemplate": "refused",
    "inputFormat": "-inputformat",
    "lazyOutput": "-lazyOutput",
    "conf": "settings of the client, or refused with jar",
    "archives": "refused: hadoop.archives",
    "probing": "jobs on clusters are not probed",
    "clusterRef": "the cluster",
    "jar": "RunJar",
    "hadoop": "settings and archives",
}
"""Fields that are no setting of Hadoop, and what becomes of them."""


def command_of(**spec: Any) -> list[str]:
    found = mrjobs.cluster_job(**spec)
    return options.command(found)


def settings_of(**spec: Any) -> dict[str, str]:
    found = command_of(**spec)
    return dict(found[at + 1].split("=", 1) for at, word in enumerate(found) if word == "-D")


def test_every_field_of_the_spec_is_a_setting_or_has_its_place() -> None:
    fields = {field.alias or name for name, field in MRJobSpec.model_fields.items()}
    mapped = {setting.field.partition(".")[0] for setting in options.SETTINGS}
    assert fields <= mapped | set(ELSEWHERE)
    assert mapped <= fields


def test_a_setting_appears_once() -> None:
    keys = [setting.key for setting in options.SETTINGS]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(
    ("spec", "key", "value"),
    [
        ({"numReduceTasks": 3}, "mapreduce.job.reduces", "3"),
        ({"reducer": None}, "mapreduce.job.reduces", "0"),
        ({"taskTimeoutSeconds": 5}, "mapreduce.task.timeout", "5000"),
        ({"splitMaxSize": "1Mi"}, "mapreduce.input.fileinputformat.split.maxsize", "1048576"),
        ({"slowStartCompletedMapsPercent": 5}, "mapreduce.job.reduce.slowstart.completedmaps", "0.05"),
        ({"mapOutputFieldSeparator": ","}, "stream.map.output.field.separator", ","),
        ({"numMapOutputKeyFields": 2}, "stream.num.map.output.key.fields", "2"),
        ({"mapOutputKeyFieldSeparator": "."}, "mapreduce.map.output.key.field.separator", "."),
        (
            {"outputCompression": "gzip"},
            "mapreduce.output.fileoutputformat.compress.codec",
            "org.apache.hadoop.io.compress.GzipCodec",
        ),
        (
            {"mapper": {"command": ["cat"], "resources": {"requests": {"memory": "1Gi"}}}},
            "mapreduce.map.memory.mb",
            "1024",
        ),
        ({"recordDelimiter": "||"}, "textinputformat.record.delimiter", "||"),
        (
            {"inputFormat": "NLineInputFormat", "linesPerMap": 5},
            "mapreduce.input.lineinputformat.linespermap",
            "5",
        ),
        (
            {"inputFormat": "KeyValueTextInputFormat", "keyValueSeparator": ","},
            "mapreduce.input.keyvaluelinerecordreader.key.value.separator",
            ",",
        ),
        ({"mapInputIgnoreKey": False}, "stream.map.input.ignoreKey", "false"),
        ({"inputFormat": "CombineTextInputFormat"}, "stream.map.input.ignoreKey", "true"),
        ({"mapInputFieldSeparator": "|"}, "stream.map.input.field.separator", "|"),
        ({"reduceInputFieldSeparator": "#"}, "stream.reduce.input.field.separator", "#"),
        ({"reduceOutputFieldSeparator": ","}, "stream.reduce.output.field.separator", ","),
        ({"numReduceOutputKeyFields": 2}, "stream.num.reduce.output.key.fields", "2"),
        ({"outputSeparator": ","}, "mapreduce.output.textoutputformat.separator", ","),
        ({"keyOnlyOutput": True}, "stream.reduce.output", "keyonlytext"),
        ({"keyOnlyOutput": True, "reducer": None}, "stream.map.output", "keyonlytext"),
        ({"nonZeroExitIsFailure": False}, "stream.non.zero.exit.is.failure", "false"),
        (
            {"mapper": {"command": ["cat"], "failuresMaxPercent": 5}},
            "mapreduce.map.failures.maxpercent",
            "5",
        ),
        (
            {"reducer": {"command": ["cat"], "failuresMaxPercent": 7}},
            "mapreduce.reduce.failures.maxpercent",
            "7",
        ),
        ({"comparator": {"options": "-k1,1nr"}}, "mapreduce.partition.keycomparator.options", "-k1,1nr"),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value else "",
)
def test_a_field_becomes_a_setting(spec: dict[str, Any], key: str, value: str) -> None:
    assert settings_of(**spec)[key] == value


def test_what_is_the_clusters_default_is_not_set() -> None:
    found = settings_of()
    parts = ("memory", "separator", "vcores", "output.", "failures", "exit", "ignoreKey")
    assert not [key for key in found if any(part in key.removeprefix("mapreduce.output.file") for part in parts)]


def test_lazy_output_is_an_option() -> None:
    assert "-lazyOutput" in command_of(lazyOutput=True)
    assert "-lazyOutput" not in command_of()


def test_properties_of_the_commands_are_settings_of_the_job() -> None:
    found = mrjobs.cluster_job(
        conf={"my.name": "value", "mapreduce.job.tags": "mine"}, hadoop={"settings": {"my.name": "other"}}
    )
    given = options.hadoop_settings(found, "uid-1", (CLUSTER,))
    assert (given["my.name"], given["mapreduce.job.tags"]) == ("value", "uid-1")


def test_commands_are_scripts_so_that_streaming_does_not_split_them() -> None:
    found = command_of(
        mapper={"command": ["m.py", "a b"]}, combiner={"command": ["c.py"]}, reducer={"command": ["r.py"]}
    )
    places = [found[found.index(f"-{part}") + 1] for part in ("mapper", "combiner", "reducer")]
    assert places == ["boathouse-mapper", "boathouse-combiner", "boathouse-reducer"]
    assert found[found.index("-files") + 1].startswith("file:///work/run/boathouse-mapper,")


def test_a_job_without_a_mapper_passes_lines_unchanged() -> None:
    assert options.scripts(mrjobs.cluster_job(mapper=None))["boathouse-mapper"] == ["cat"]


def test_generic_options_come_before_those_of_streaming() -> None:
    found = command_of(hadoop={"archives": ["hdfs://lake/a.zip#a"]}, partitioner={"type": "KeyFieldBasedPartitioner"})
    generic = max(at for at, word in enumerate(found) if word in {"-D", "-files", "-archives"})
    assert generic < found.index("-partitioner")


def test_a_jar_runs_with_its_arguments() -> None:
    jar = {"url": "s3://b/job.jar", "mainClass": "demo.Main", "arguments": ["hdfs://pond/in", "two words"]}
    found = command_of(jar=jar)
    assert found == [options.RUN_JAR, "/work/run/boathouse-job.jar", "demo.Main", "hdfs://pond/in", "two words"]


def test_a_jar_of_the_image_is_not_copied() -> None:
    found = mrjobs.cluster_job(jar={"url": "local:///opt/examples.jar"})
    assert command_of(jar={"url": "local:///opt/examples.jar"})[1] == "/opt/examples.jar"
    assert options.jar_file(found) == []


def test_the_clusters_that_a_programs_arguments_name_are_found() -> None:
    found = mrjobs.cluster_job(
        jar={"url": "local:///j.jar", "arguments": ["-in", "hdfs://pond/a,hdfs://sea/b", "hdfs://HOST:8020/x"]}
    )
    assert options.names_in_arguments(found) == ["pond", "sea"]


def test_the_settings_of_boathouse_win() -> None:
    found = mrjobs.cluster_job(hadoop={"settings": {"mapreduce.job.tags": "mine", "a.b": "c"}})
    given = options.hadoop_settings(found, "uid-1", (CLUSTER,))
    assert (given["mapreduce.job.tags"], given["a.b"], given["mapreduce.job.name"]) == ("uid-1", "c", "wordcount")
    assert given["dfs.namenode.rpc-address.lake.nn"] == CLUSTER.name_node


CLOSED = ("fs.defaultFS", "mapreduce.framework.name", "yarn.resourcemanager.address")


@pytest.mark.parametrize("fields", ["settings", "conf"])
def test_a_job_runs_where_its_tag_is_looked_for(fields: str) -> None:
    mine = dict.fromkeys(CLOSED, "other") | {"a.b": "c"}
    found = mrjobs.cluster_job(**({"conf": mine} if fields == "conf" else {"hadoop": {"settings": mine}}))
    given = options.hadoop_settings(found, "uid-1", (CLUSTER,))
    assert (given["a.b"], given.keys() & set(CLOSED)) == ("c", set())
    assert on_cluster.closed_keys(found.spec) == list(CLOSED)


def test_a_job_may_set_the_copies_of_its_files_and_name_another_hdfs() -> None:
    mine = {"dfs.replication": "1", "dfs.nameservices": "far", "dfs.ha.namenodes.far": "a,b"}
    found = mrjobs.cluster_job(hadoop={"settings": mine | {"dfs.ha.namenodes.lake": "x"}})
    given = options.hadoop_settings(found, "uid-1", (CLUSTER,))
    assert mine | {"dfs.nameservices": "far,lake", "dfs.ha.namenodes.lake": "nn"} == {
        key: given[key] for key in [*mine, "dfs.ha.namenodes.lake"]
    }


S3 = {"endpointURL": "http://s3.demo:9000", "region": "eu", "secretRef": {"name": "keys"}}
JAR = {"url": "local:///j.jar"}


def storage_settings(**spec: Any) -> dict[str, str]:
    found = mrjobs.cluster_job(**spec)
    given = options.hadoop_settings(found, "uid-1", (CLUSTER,))
    return {key.removeprefix("fs.s3a."): value for key, value in given.items() if key.startswith("fs.s3a.")}


@pytest.mark.parametrize("spec", [{}, {"jar": JAR}], ids=["streaming", "jar"])
def test_hadoop_reaches_the_storage_of_the_job(spec: dict[str, Any]) -> None:
    assert storage_settings(storage={"s3": S3}, **spec) == {
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider,"
        "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "connection.ssl.enabled": "false",
        "endpoint": "http://s3.demo:9000",
        "endpoint.region": "eu",
        "path.style.access": "true",
    }


def test_requests_without_a_secret_are_unsigned() -> None:
    provider = storage_settings(storage={"s3": {}})["aws.credentials.provider"]
    assert provider == "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"


def test_a_job_without_storage_has_the_clusters_settings_of_s3a() -> None:
    assert storage_settings(storage=None) == {}


def test_the_users_settings_of_s3a_win() -> None:
    mine = {"settings": {"fs.s3a.endpoint": "mine"}}
    found = storage_settings(storage={"s3": S3}, hadoop=mine, conf={"fs.s3a.path.style.access": "false"})
    assert (found["endpoint"], found["path.style.access"]) == ("mine", "false")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"mapOutputFieldSeparator": "\x01"}, "control character"),
        ({"outputSeparator": "\x02"}, "control character"),
        ({"recordDelimiter": "\x1e"}, "control character"),
        ({"conf": {"my.name": "two\nlines"}}, 'spec.conf: "my.name"'),
        ({"conf": {"my name": "value"}}, 'spec.conf: "my name"'),
        ({"input": ["/a,b"]}, "comma"),
        ({"env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}, "Secret"),
        ({"envFrom": [{"configMapRef": {"name": "c"}}]}, "envFrom"),
    ],
    ids=["separator", "outputSeparator", "recordDelimiter", "conf", "name", "comma", "secret", "envFrom"],
)
def test_what_hadoop_cannot_do_is_refused(spec: dict[str, Any], message: str) -> None:
    resource = mrjobs.mrjob(**({"input": ["/in"], "output": "/out", "clusterRef": {"name": "lake"}} | spec))
    refusal = model.from_resource(resource, mrjobs.CONFIG)
    assert isinstance(refusal, Refusal)
    assert message in refusal.message


@pytest.mark.parametrize("arguments", [["-D", "mapreduce.job.tags=mine"], ["-Dmapreduce.job.tags=mine", "/in"]])
def test_a_program_must_keep_the_tag_by_which_its_applications_are_found(arguments: list[str]) -> None:
    jar = {"url": "local:///j.jar", "arguments": arguments}
    refusal = model.from_resource(mrjobs.mrjob(clusterRef={"name": "lake"}, jar=jar), mrjobs.CONFIG)
    assert isinstance(refusal, Refusal)
    assert refusal.message.startswith("spec.jar.arguments set mapreduce.job.tags")
