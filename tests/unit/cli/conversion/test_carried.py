"""Local files that a submission takes along."""

import base64
import re

import pytest

from boathouse_cli.conversion import command_lines, draft, hadoop_lines
from boathouse_cli.errors import CommandError, ExitCode
from tests.builders.conversions import missing_file

FILES = {
    "main.py": b"print(1)",
    "/lib/util.py": b"x = 1",
    "big.zip": b"\xff" * draft.MAX_CARRIED_BYTES,
    "other/main.py": b"",
}
CONFIG_MAP = "main-files-0a1b"


def collection():
    def read(path):
        return FILES[path] if path in FILES else missing_file(path)

    return draft.Carried(read, "0a1b")


def submit(*words):
    files = collection()
    found = command_lines.convert(["spark-submit", *words], source="line", read=missing_file, carried=files)
    return found, files


def test_a_local_program_and_its_files_are_taken_along_and_mounted():
    found, files = submit("--py-files", "/lib/util.py,s3a://b/c.py", "main.py", "10")
    assert found.notes == ()
    assert found.manifest["spec"] == {
        "type": "Python",
        "mainApplicationFile": "file:///mnt/submitted/main.py",
        "arguments": ["10"],
        "deps": {"pyFiles": ["file:///mnt/submitted/util.py", "s3a://b/c.py"]},
        "volumes": [
            {"name": "submitted", "mountPath": "/mnt/submitted", "configMapName": CONFIG_MAP, "readOnly": True}
        ],
    }
    assert files.manifest("main")["data"] == {"main.py": "print(1)", "util.py": "x = 1"}
    assert files.manifest("main")["metadata"] == {"name": CONFIG_MAP}


def test_a_program_of_the_image_takes_nothing_along():
    found, files = submit("local:///opt/main.py")
    assert "volumes" not in found.manifest["spec"]
    assert files.files == {}


def test_files_of_hadoop_streaming_are_keys_of_the_config_map():
    files = collection()
    words = ["-input", "s3://b/in", "-output", "s3://b/out", "-mapper", "main.py", "-file", "main.py"]
    found = hadoop_lines.convert(["hadoop", "jar", "hadoop-streaming.jar", *words], None, files)
    (file,) = found.manifest["spec"]["files"]
    key = {"name": files.config_map_name("streaming"), "key": "main.py"}
    assert file == {"name": "main.py", "configMapKeyRef": key}
    assert files.files == {"main.py": b"print(1)"}
    assert not any("configmap" in note.text for note in found.notes)


def test_binary_files_are_encoded():
    files = collection()
    files.add("big.zip")
    assert base64.b64decode(files.manifest("a")["binaryData"]["big.zip"]) == FILES["big.zip"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["absent.py"], "absent.py cannot be read on this machine (No such file or directory)"),
        (["--py-files", "big.zip", "main.py"], "local files of 900 KiB are too large to be taken along"),
        (["--files", "other/main.py", "main.py"], "have the same name: rename one"),
        (["--files", "a b.txt", "main.py"], "rename it with letters, digits"),
    ],
)
def test_files_that_cannot_be_taken_along_say_what_to_do(words, message):
    with pytest.raises(CommandError, match=re.escape(message)) as caught:
        submit(*words)
    assert caught.value.code is ExitCode.USAGE
