"""The Hadoop image's contract: its commands, its jars and its folders."""

import importlib.util
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ET  # the repository's own file
import zipfile

import pytest

from boathouse.resources.mrcluster import spec
from boathouse_e2e import images

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "images" / "hadoop"
VERSIONS = sorted((FOLDER / "jars").iterdir())
of_each_version = pytest.mark.parametrize("version", VERSIONS, ids=lambda folder: folder.name)


def dependencies(version):
    root = ET.parse(version / "ivy.xml").getroot()  # noqa: S314 # our own file
    return [(one.get("name"), one.get("rev")) for one in root.iter("dependency")]


@pytest.fixture
def hadoop_command(tmp_path):
    """Run a command of the image with a Java that prints its arguments, one a line."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    java.chmod(0o755)

    def ran(*words, **variables):
        environment = {"PATH": "/usr/bin:/bin", "JAVA_HOME": str(tmp_path), **variables}
        command = [FOLDER / "bin" / words[0], *words[1:]]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.stdout.splitlines() if done.returncode == 0 else done.stderr

    return ran


def called(words):
    """Return the class and its arguments of a Java command line."""
    return words[words.index("-cp") + 2 :]


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("hdfs dfs -ls /", "org.apache.hadoop.fs.FsShell -ls /"),
        ("hadoop fs -ls /", "org.apache.hadoop.fs.FsShell -ls /"),
        ("hdfs dfsadmin -report", "org.apache.hadoop.hdfs.tools.DFSAdmin -report"),
        ("hadoop distcp a b", "org.apache.hadoop.tools.DistCp a b"),
        ("mapred streaming -files a", "org.apache.hadoop.streaming.HadoopStreaming -files a"),
        ("yarn rmadmin -refreshNodes -g", "org.apache.hadoop.yarn.client.cli.RMAdminCLI -refreshNodes -g"),
        ("hadoop org.example.Main -x", "org.example.Main -x"),
    ],
)
def test_a_command_is_a_class_with_the_rest_of_the_words(hadoop_command, words, command):
    assert " ".join(called(hadoop_command(*words.split()))) == command


@pytest.mark.parametrize("word", ["app", "application", "container"])
def test_the_class_of_applications_takes_the_command_too(hadoop_command, word):
    assert called(hadoop_command("yarn", word, "-list")) == [
        "org.apache.hadoop.yarn.client.cli.ApplicationCLI",
        word,
        "-list",
    ]


@pytest.mark.parametrize("words", [["hdfs"], ["hdfs", "rmadmin"], ["yarn", "dfs"]])
def test_an_unknown_command_fails_and_names_the_list_of_commands(hadoop_command, words):
    assert "bin/hdfs" in hadoop_command(*words) or "bin/yarn" in hadoop_command(*words)


def test_arguments_keep_their_spaces(hadoop_command):
    assert called(hadoop_command("hdfs", "dfs", "-cat", "/a b", ""))[1:] == ["-cat", "/a b", ""]


def test_the_class_path_begins_with_the_configuration(hadoop_command):
    words = hadoop_command(
        "hadoop", "version", HADOOP_CONF_DIR="/conf", HADOOP_CLASSPATH="/mine.jar", HADOOP_HOME="/home"
    )
    assert words[words.index("-cp") + 1] == "/conf:/mine.jar:/home/lib/*"


def test_the_heap_of_a_command_can_be_set(hadoop_command):
    assert "-Xmx256m" in hadoop_command("hadoop", "version")
    words = hadoop_command("hadoop", "version", HADOOP_OPTS="-Xmx1g -Dx=y")
    assert {"-Xmx1g", "-Dx=y"} < set(words)
    assert "-Xmx256m" not in words


@of_each_version
def test_every_jar_that_is_downloaded_is_pinned_by_its_content(version):
    pinned = re.findall(r"^[0-9a-f]{64}  (\S+)$", (version / "jars.sha256").read_text(), flags=re.MULTILINE)
    assert sorted(pinned) == sorted(f"{name}-{revision}.jar" for name, revision in dependencies(version))
    assert len(pinned) == len(set(pinned))


@of_each_version
def test_all_jars_of_hadoop_have_the_version_of_their_folder(version):
    found = dependencies(version)
    assert {revision for name, revision in found if name.startswith("hadoop-") and "shaded" not in name} == {
        version.name
    }


@of_each_version
def test_every_library_has_one_version(version):
    names = [name for name, _ in dependencies(version)]
    assert len(names) == len(set(names))


def test_the_default_version_is_that_of_a_cluster_that_names_none():
    assert f"ARG VERSION={spec.VERSION}\n" in (FOLDER / "Dockerfile").read_text()


def test_the_jar_of_web_applications_has_the_folders_that_the_daemons_look_up(tmp_path):
    found = importlib.util.spec_from_file_location("webapps", FOLDER / "webapps.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    module.write(tmp_path / "webapps.jar")
    with zipfile.ZipFile(tmp_path / "webapps.jar") as jar:
        assert {"webapps/hdfs/", "webapps/datanode/", "webapps/secondary/", "webapps/static/"} < set(jar.namelist())


def test_the_image_is_built_only_on_request():
    assert {images.HADOOP, images.OLDER_HADOOP} <= set(images.ALL)
    assert not {images.HADOOP, images.OLDER_HADOOP} & set(images.DEFAULT)


def test_the_images_of_two_versions_are_two_archives():
    assert images.archive_of(images.HADOOP) != images.archive_of(images.OLDER_HADOOP)
    assert images.RECIPES[images.HADOOP].key(images.REPOSITORY) != images.RECIPES[images.OLDER_HADOOP].key(
        images.REPOSITORY
    )
