"""Keys and passwords do not get into objects and messages."""

import pytest

from boathouse_cli.conversion import command_lines, draft, hadoop_lines
from tests.builders import conversions

CLEAR = "hidden"


@pytest.mark.parametrize(
    "words",
    [
        ("-input", f"s3n://AKIA:{CLEAR}/x@b/in", "-output", "s3a://b/o"),
        ("-input", "s3a://b/in", "-output", f"s3a://AKIA:{CLEAR}@b/out"),
        ("-input", "s3a://b/in", "-output", "s3a://b/o", "-files", f"s3a://AKIA:{CLEAR}@b/x.py"),
        ("-input", "s3a://b/in", "-output", "s3a://b/o", "-archives", f"s3a://AKIA:{CLEAR}@b/x.zip#x"),
        ("-input", f"ftp://me:{CLEAR}@host/in", "-output", "s3a://b/o"),
        ("-D", f"fs.s3n.awsSecretAccessKey={CLEAR}", "-input", "s3a://b/in", "-output", "s3a://b/o"),
        ("-D", f"fs.s3a.bucket.b.secret.key={CLEAR}", "-input", "s3a://b/in", "-output", "s3a://b/o"),
    ],
)
@pytest.mark.parametrize("cluster", [None, "etl"])
def test_keys_of_a_hadoop_line_are_in_no_object_and_no_message(words, cluster):
    found = hadoop_lines.convert(["hadoop", "jar", "hadoop-streaming.jar", *words, "-mapper", "cat"], cluster)
    assert CLEAR not in str(found)
    assert "Secret" in str(found.notes) or found.has_failed


def test_keys_of_a_jar_are_in_no_object():
    found = hadoop_lines.convert(["hadoop", "jar", "/a.jar", f"s3a://AKIA:{CLEAR}@b/in"], "etl")
    assert found.manifest["spec"]["jar"]["arguments"] == ["s3a://b/in"]
    assert CLEAR not in str(found)


@pytest.mark.parametrize(
    "words",
    [
        (f"s3a://AKIA:{CLEAR}@b/main.py",),
        ("--jars", f"https://me:{CLEAR}@repository.example.com/a.jar", conversions.PYTHON),
        ("--repositories", f"https://{CLEAR}@repository.example.com", "--packages", "g:a:1", conversions.PYTHON),
        ("--conf", f"spark.jars.repositories=https://me:{CLEAR}@r.example.com,x", conversions.PYTHON),
        (conversions.PYTHON, f"jdbc:postgresql://me:{CLEAR}@db/x"),
        (f"gs://me:{CLEAR}@b/main.py",),
    ],
)
def test_keys_of_a_spark_line_are_in_no_object_and_no_message(words):
    found = command_lines.convert(["spark-submit", *words], source="line", read=conversions.missing_file)
    assert CLEAR not in str(found)
    assert found.notes


@pytest.mark.parametrize(
    "conf",
    [
        "spark.kubernetes.driverEnv.AWS_SECRET_ACCESS_KEY=k",
        "spark.executorEnv.DB_PASSWORD=k",
        "spark.hadoop.fs.azure.account.key.a.net=k",
    ],
)
def test_a_key_in_a_variable_or_property_is_noted(conf):
    assert any("Secret" in advice for advice in conversions.notes_of_line("--conf", conf, conversions.PYTHON).values())


@pytest.mark.parametrize(
    "url",
    [
        *(
            "s3a://b/in",
            "hdfs://nn:8020/user@x/in",
            "abfss://c@a.dfs.core.windows.net/x",
            "s3a://b/a:b@c",
            "https://h:8443/a@b",
        ),
        *("https://h/x?version=1", "k8s://https://10.0.0.1:6443"),
    ],
)
def test_a_url_without_keys_stays(url):
    assert draft.hidden(url) == url
