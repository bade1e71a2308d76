"""What a job may be, on a real cluster: several steps, ordered keys, compressed files, one pod, a shared volume."""

import bz2
import gzip
import importlib.metadata
import io
import json
import subprocess
import sys
import zipfile

import pytest
import yaml
from backports import zstd

from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse_e2e import paths
from e2e.tests import harness, local_volumes

pytestmark = pytest.mark.cluster

CAT = {"command": ["cat"], "resources": harness.SMALL}
COMPRESS = {"gzip": gzip.compress, "bzip2": bz2.compress, "zstd": zstd.compress}
DECOMPRESS = {"gzip": gzip.decompress, "bzip2": bz2.decompress, "zstd": zstd.decompress}
SUFFIX = {"gzip": "gz", "bzip2": "bz2", "zstd": "zst"}


def mrjob_wheel() -> bytes:
    """mrjob as its wheel has it, made of what is installed here."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for path in importlib.metadata.files("mrjob") or ():
            if path.parts[0] == "mrjob" and path.suffix == ".py":
                archive.write(path.locate(), str(path))
    return held.getvalue()


def step_types(place, name):
    labels = [pod["metadata"]["labels"] for pod in place.raw_pods(name)]
    return {(pod_labels[mrjob_names.LABEL_STEP], pod_labels[mrjob_names.LABEL_TASK_TYPE]) for pod_labels in labels}


def test_a_class_of_yelps_mrjob_runs_in_its_two_steps_and_gives_what_mrjob_gives(place, tmp_path):
    config, job = yaml.safe_load_all((paths.REPOSITORY / "examples" / "mrjob.yaml").read_text())
    data = harness.text(3_000_000)
    (script := tmp_path / "words.py").write_text(config["data"]["words.py"])
    (text := tmp_path / "text").write_bytes(data)
    expected = subprocess.run(
        [sys.executable, script, "--no-conf", "--quiet", "--top=20", text], capture_output=True, check=True
    ).stdout
    place.cluster.apply({**config, "metadata": {**config["metadata"], "namespace": place.namespace}})
    spec = job["spec"] | {
        "input": [place.put("in/a.txt", data)],
        "output": place.url("out-words"),
        "splitMaxSize": "1Mi",
        "files": [job["spec"]["files"][0], {"name": "mrjob.whl", "url": place.put("lib/mrjob.whl", mrjob_wheel())}],
        "storage": place.job("x")["spec"]["storage"],
    }
    for step in spec["steps"]:
        for kind in ("mapper", "reducer"):
            if kind in step:
                step[kind]["resources"] = harness.SMALL
    place.cluster.apply({**place.job("words"), "spec": spec})
    ended = place.succeed("words")
    assert place.parts("words") == {"part-00000": expected}
    assert step_types(place, "words") == {
        *(("0", task_type) for task_type in ("setup", "map", "reduce")),
        *(("1", task_type) for task_type in ("setup", "map", "reduce", "commit")),
    }
    assert ended.counters["words"]["different"] == len(harness.counted(data))


def test_keys_come_in_the_order_of_the_comparator(place):
    rows = [f"{name}.{number}" for name in "ab" for number in range(0, 1200, 7)]
    place.put("in/a.txt", "".join(f"{row}\tx\n" for row in rows).encode())
    place.succeed(
        place.start(
            "ordered",
            mapper=CAT,
            reducer=CAT,
            mapOutputKeyFieldSeparator=".",
            partitioner={"type": "KeyFieldBasedPartitioner", "options": "-k1,1"},
            comparator={"options": "-k1,1 -k2,2nr"},
        )
    )
    found = [[line.split(b"\t")[0].decode() for line in data.splitlines()] for data in place.parts("ordered").values()]
    for keys in found:
        assert keys == sorted(keys, key=lambda key: (key.split(".")[0], -int(key.split(".")[1])))
    assert sorted(key for keys in found for key in keys) == sorted(rows)


@pytest.mark.parametrize("codec", list(COMPRESS))
def test_compressed_files_are_read_and_written(place, codec):
    data = harness.text(1_000_000)
    place.put(f"in/a.txt.{SUFFIX[codec]}", COMPRESS[codec](data))
    place.succeed(place.start("packed", outputCompression=codec, uber={"maxReduces": 2}))
    found = place.files("out-packed")
    assert found.pop("_SUCCESS")
    assert sorted(found) == [f"part-0000{number}.{SUFFIX[codec]}" for number in range(2)]
    assert harness.pairs({name: DECOMPRESS[codec](part) for name, part in found.items()}) == harness.counted(data)


def test_a_corrupt_file_fails_the_job_and_is_named(place):
    place.put("in/a.gz", gzip.compress(b"the cat\n" * 1000)[:-9])
    job = place.finish(place.start("corrupt"))
    failed = job.condition(names.ConditionType.FAILED)
    assert (failed.status, failed.reason) == ("True", "CorruptInput")
    assert "a.gz is truncated within its gzip data" in failed.message


def test_a_small_job_runs_in_one_pod_after_its_setup(place):
    data = harness.text(300_000)
    place.put("in/a.txt", data)
    ended = place.succeed(place.start("small", uber={"maxReduces": 2, "maxBytes": "1Mi"}, splitMaxSize="100Ki"))
    assert harness.pairs(place.parts("small")) == harness.counted(data)
    assert step_types(place, "small") == {("0", "setup"), ("0", "uber")}
    assert ended.maps.succeeded == ended.maps.total >= 3


def test_small_files_share_maps(place):
    for number in range(60):
        place.put(f"in/{number}", b"line %d" % number)
    ended = place.succeed(
        place.start(
            "many",
            mapper=CAT,
            reducer=None,
            numReduceTasks=None,
            inputFormat="CombineTextInputFormat",
            keyOnlyOutput=True,
        )
    )
    assert ended.maps.total == 1
    assert sorted(place.parts("many")["part-00000"].splitlines()) == sorted(b"line %d" % number for number in range(60))


def test_options_of_hadoop_streaming_reach_the_commands(place):
    place.put("in/a.txt", b"a\r\nb\rc\n")
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("words", "hello\n")
    script = 'cat dictionary/words; echo "$my_name of $mapreduce_job_maps"; cat'
    place.start(
        "options",
        mapper=CAT | {"command": ["sh", "-c", script]},
        reducer=None,
        numReduceTasks=None,
        archives=[{"name": "dictionary", "url": place.put("lib/words.zip", held.getvalue())}],
        conf={"my.name": "map"},
        inputFormat="NLineInputFormat",
        linesPerMap=2,
        mapInputIgnoreKey=True,
    )
    place.succeed("options")
    expected = {"part-00000": b"a\t\nb\t\n", "part-00001": b"c\t\n"}
    assert place.parts("options") == {name: b"hello\t\nmap of 2\t\n" + lines for name, lines in expected.items()}


def test_a_record_that_is_too_long_fails_the_job_with_the_limit_to_raise(place):
    place.put("in/a", b"x" * 200_000)
    job = place.finish(place.start("long", maxRecordBytes="64Ki"))
    failed = job.condition(names.ConditionType.FAILED)
    assert failed.reason == "RecordTooLong"
    assert "spec.maxRecordBytes (65536)" in failed.message


@pytest.fixture
def folder(cluster):
    with local_volumes.shared(cluster) as found:
        yield found


def test_a_job_reads_and_writes_a_shared_volume(place, folder):
    data = harness.text(2_500_000)
    folder.write("in/a.txt", data)
    size = {"storage": "1Gi"}
    claim = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    place.cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": place.namespace},
            "spec": claim
            | {
                "capacity": size,
                **folder.volume(),
                "claimRef": {"namespace": place.namespace, "name": "books"},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "books", "namespace": place.namespace},
            "spec": claim | {"resources": {"requests": size}, "volumeName": place.namespace},
        },
    )
    place.start(
        "shared",
        input=["file:///books/in"],
        output="file:///books/out",
        storage={"volume": {"claimName": "books", "mountPath": "/books"}},
    )
    place.succeed("shared")
    found = folder.files("out")
    assert json.loads(found.pop("_SUCCESS"))["parts"] == 2
    assert sorted(found) == ["part-00000", "part-00001"]
    assert harness.pairs(found) == harness.counted(data)
    place.cluster.run("delete", "persistentvolume", place.namespace, "--wait=false")
