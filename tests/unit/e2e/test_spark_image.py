"""The Spark image's contract: the command lines that the entrypoint makes, and what goes into the image."""

import importlib.util
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ET  # the repository's own file
import zipfile

import pytest

from boathouse_cli.conversion import fields
from tests.builders import sparkapps

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "images" / "spark"
VERSIONS = FOLDER / "versions"
of_each_version = pytest.mark.parametrize("version", fields.VERSIONS)
EXECUTOR = {
    "SPARK_EXECUTOR_MEMORY": "512m",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.1:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_APPLICATION_ID": "spark-app",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.2",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "word-count-exec-3",
}


def program(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def entrypoint(tmp_path):
    """Run the entrypoint with programs that print their name and arguments, one a line."""
    bin_folder, home = tmp_path / "bin", tmp_path / "spark"
    words = """printf '%s\\n' "${0##*/}" "$@" """
    program(bin_folder, "tini", 'shift 2; exec "$@"')
    program(bin_folder, "java", words)
    program(home / "bin", "spark-submit", words)

    def started(*arguments, **variables):
        environment = {
            "PATH": f"{bin_folder}:/usr/bin:/bin",
            "SPARK_HOME": str(home),
            "HOME": "/home",
            "EXTRA_PASSWD": str(tmp_path / "passwd"),
            **variables,
        }
        command = ["bash", FOLDER / "entrypoint.sh", *arguments]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.stdout.splitlines() if done.returncode == 0 else done.stderr

    return started


def test_a_driver_is_spark_submit_in_client_mode_with_the_pods_arguments(entrypoint):
    words = entrypoint("driver", "--class", "Main", "local:///a b.jar", "x y", SPARK_DRIVER_BIND_ADDRESS="10.0.0.1")
    bound = ["--conf", "spark.driver.bindAddress=10.0.0.1"]
    assert words == ["spark-submit", "--deploy-mode", "client", *bound, "--class", "Main", "local:///a b.jar", "x y"]


def test_a_driver_without_an_address_to_bind_fails_and_names_the_variable(entrypoint):
    assert "SPARK_DRIVER_BIND_ADDRESS" in entrypoint("driver", "app.py")


def test_an_executor_is_spawned_with_what_the_driver_set_in_its_pod(entrypoint):
    words = entrypoint("executor", **EXECUTOR)
    backend = words.index("org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend")
    assert words[:4] == ["java", "-Xms512m", "-Xmx512m", "-cp"]
    flags = dict(zip(words[backend + 1 :: 2], words[backend + 2 :: 2], strict=True))
    assert flags == {
        "--driver-url": EXECUTOR["SPARK_DRIVER_URL"],
        "--executor-id": "3",
        "--cores": "2",
        "--app-id": "spark-app",
        "--hostname": "10.0.0.2",
        "--resourceProfileId": "0",
        "--podName": "word-count-exec-3",
    }


def test_java_options_keep_their_order_spaces_and_line_breaks(entrypoint):
    options = {f"SPARK_JAVA_OPT_{number}": f"-Dn={number}" for number in range(12)}
    words = entrypoint("executor", **EXECUTOR, **options | {"SPARK_JAVA_OPT_2": "-Dtext=a b\nc=$HOME"})
    assert words[1:14] == ["-Dn=0", "-Dn=1", "-Dtext=a b", "c=$HOME", *(f"-Dn={number}" for number in range(3, 12))]


def test_the_class_path_begins_with_the_configuration_and_keeps_sparks_variables_in_order(entrypoint, tmp_path):
    variables = {
        "SPARK_CONF_DIR": "/conf",
        "HADOOP_CONF_DIR": "/hadoop",
        "SPARK_CLASSPATH": "/mine.jar",
        "SPARK_EXTRA_CLASSPATH": "/extra",
        "SPARK_DIST_CLASSPATH": "/dist",
    }
    words = entrypoint("executor", **EXECUTOR, **variables)
    jars = f"{tmp_path}/spark/jars/*"
    path = words[words.index("-cp") + 1]
    assert path == f"/conf:/hadoop:/mine.jar:{jars}:/extra:{tmp_path}:/dist"


def test_the_class_path_has_sparks_own_configuration_where_none_is_given(entrypoint, tmp_path):
    words = entrypoint("executor", **EXECUTOR)
    assert words[words.index("-cp") + 1] == f"{tmp_path}/spark/conf:{tmp_path}/spark/jars/*:{tmp_path}"


def test_other_words_are_a_command(entrypoint):
    assert entrypoint("printf", "%s,", "a b", "c") == ["a b,c,"]


def test_a_user_without_a_name_gets_one(entrypoint, tmp_path):
    program(tmp_path / "bin", "id", "echo 4242")
    entrypoint("true", SPARK_USER="ada")
    assert (tmp_path / "passwd").read_text() == "ada:x:4242:4242::/home:/usr/sbin/nologin\n"


def test_a_user_with_a_name_keeps_it(entrypoint, tmp_path):
    entrypoint("true")
    assert not (tmp_path / "passwd").exists()


@of_each_version
def test_every_jar_that_is_downloaded_is_pinned_by_its_content(version):
    dependencies = ET.parse(VERSIONS / version / "ivy.xml").getroot().iter("dependency")  # noqa: S314 # our own file
    names = {f"{one.get('name')}-{one.get('rev')}.jar" for one in dependencies}
    sums = (VERSIONS / version / "jars.sha256").read_text()
    pinned = re.findall(r"^[0-9a-f]{64}  (\S+)$", sums, flags=re.MULTILINE)
    assert names == set(pinned)
    assert len(pinned) == len(set(pinned)) == len(sums.splitlines())


@of_each_version
def test_an_image_has_spark_of_its_version_and_jars_for_the_same_scala(version):
    packages = (VERSIONS / version / "requirements.txt").read_text()
    assert re.search(rf"^pyspark=={re.escape(version)}\.\d+ ", packages, flags=re.MULTILINE)
    assert "://" not in packages
    scala = "2.12" if version == "3.5" else "2.13"
    assert f"spark-hadoop-cloud_{scala}-" in (VERSIONS / version / "jars.sha256").read_text()


def test_images_recordings_and_conversion_know_the_same_versions_of_spark():
    assert sorted(folder.name for folder in VERSIONS.iterdir()) == list(fields.VERSIONS)
    assert list(fields.VERSIONS) == sparkapps.VERSIONS
    assert f"ARG VERSION={fields.NEWEST}\n" in (FOLDER / "Dockerfile").read_text()
    makefile = (FOLDER.parents[1] / "Makefile").read_text()
    assert f"SPARKS := {' '.join(fields.VERSIONS)}\n" in makefile
    assert f"SPARK ?= {fields.NEWEST}\n" in makefile


@pytest.fixture
def assemble():
    spec = importlib.util.spec_from_file_location("assemble", FOLDER / "assemble.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("member", "target"),
    [
        ("pyspark-4.3.0/deps/bin/spark-submit", "bin/spark-submit"),
        ("pyspark-4.3.0/deps/bin/spark-submit.cmd", None),
        ("pyspark-4.3.0/deps/jars/spark-core_2.13-4.3.0.jar", "jars/spark-core_2.13-4.3.0.jar"),
        ("pyspark-4.3.0/deps/jars/connect-repl/spark-connect.jar", None),
        ("pyspark-4.3.0/deps/jars/hive-exec-2.3.10-core.jar", None),
        ("pyspark-4.3.0/deps/jars/hive-storage-api-2.8.1.jar", "jars/hive-storage-api-2.8.1.jar"),
        ("pyspark-4.3.0/lib/py4j-0.10.9.9-src.zip", "python/lib/py4j-0.10.9.9-src.zip"),
        ("pyspark-4.3.0/pyspark/sql/__init__.py", "python/pyspark/sql/__init__.py"),
        ("pyspark-4.3.0/pyspark/tests/test_rdd.py", None),
        ("pyspark-4.3.0/LICENSE", "LICENSE"),
        ("pyspark-4.3.0/setup.py", None),
    ],
)
def test_each_file_of_pyspark_has_a_place_in_sparks_home_or_is_left_out(assemble, member, target):
    assert assemble.place(member, assemble.left_out(assemble.LEFT_OUT.read_text())) == target


def test_a_jar_keeps_its_classes_and_one_native_library(assemble, tmp_path):
    jar = tmp_path / "native.jar"
    with zipfile.ZipFile(jar, "w") as files:
        for name in ("A.class", "linux/amd64/lib.so", "linux/arm/lib.so", "win/amd64/lib.dll", "darwin/lib.jnilib"):
            files.writestr(name, name)
    assemble.keep_own_libraries(jar, "linux/amd64/*.so")
    with zipfile.ZipFile(jar) as files:
        assert files.namelist() == ["A.class", "linux/amd64/lib.so"]
        assert files.read("linux/amd64/lib.so") == b"linux/amd64/lib.so"


def test_a_library_that_has_moved_fails_the_build(assemble, tmp_path):
    jar = tmp_path / "native.jar"
    with zipfile.ZipFile(jar, "w") as files:
        files.writestr("elsewhere/lib.so", "")
    with pytest.raises(SystemExit, match="NATIVE"):
        assemble.keep_own_libraries(jar, "linux/amd64/*.so")
