"""Jobs on a Hadoop cluster read an object store with the endpoint and the keys of their storage."""

import base64
from typing import Any

import pytest

from boathouse_e2e import hadoop_web, storage
from e2e.tests import harness
from e2e.tests.hadoop_harness import TEXT, Clusters

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(1800)]

DISTCP_PATH = "/opt/hadoop/lib/hadoop-distcp-3.4.2.jar"
DISTCP = f"local://{DISTCP_PATH}"
WITH_STORAGE: dict[str, Any] = {
    "storage": harness.STORAGE,
    # The client of S3 has no room in the small maps of the tests.
    "hadoop": {"settings": {"mapreduce.map.memory.mb": "512"}},
}


def stored(clusters: Clusters, files: dict[str, bytes]) -> str:
    """Store files in a folder of the object store; return its URL for Hadoop."""
    for name, data in files.items():
        clusters.place.put(f"in/{name}", data)
    return clusters.place.url("in").replace("s3://", "s3a://", 1)


def test_a_streaming_job_reads_an_object_store_and_its_history_has_no_keys(
    hadoop: Clusters, credentials: storage.Credentials
) -> None:
    hadoop.start("lake")
    hadoop.ready("lake")
    url = stored(hadoop, {"a.txt": TEXT})
    hadoop.streaming("lake", "words", input=[url], splitMaxSize="2Mi", **WITH_STORAGE)
    job = hadoop.succeed("words")
    assert hadoop.words("lake", "/out-words") == harness.counted(TEXT)
    path = f"ws/v1/history/mapreduce/jobs/{hadoop.history('lake', job)['id']}/conf"
    settings = hadoop.ask("lake")("GET", hadoop_web.MASTER, hadoop_web.HISTORY_PORT, path).decode()
    assert "fs.s3a.secret.key" in settings
    assert credentials.secret_access_key not in settings


def test_distcp_copies_files_from_an_object_store(hadoop: Clusters) -> None:
    hadoop.start("lake")
    hadoop.ready("lake")
    files = {"a.txt": TEXT[:2_000_000], "b.txt": TEXT[2_000_000:3_000_000]}
    hadoop.program("lake", "copy", DISTCP, stored(hadoop, files), "/copy", **WITH_STORAGE)
    hadoop.succeed("copy")
    assert hadoop.hdfs("lake").files("/copy") == files


def test_programs_run_from_jars_in_an_object_store_and_in_hdfs(hadoop: Clusters) -> None:
    hadoop.start("lake")
    hadoop.ready("lake")
    master = hadoop.pods("lake")[hadoop_web.MASTER]["metadata"]["name"]
    coded = hadoop.cluster.run(
        "exec", master, "-n", hadoop.place.namespace, "-c", "namenode", "--", "base64", DISTCP_PATH
    )
    jar = base64.b64decode(coded)
    hadoop.place.put("jars/copy.jar", jar)
    hadoop.hdfs("lake").write("/jars/copy.jar", jar)
    files = {"a.txt": TEXT[:1_000_000]}
    for name, url in {"stored": hadoop.place.url("jars/copy.jar"), "in-hdfs": "hdfs://lake/jars/copy.jar"}.items():
        hadoop.program("lake", name, url, stored(hadoop, files), f"/{name}", **WITH_STORAGE)
        hadoop.succeed(name)
        assert hadoop.hdfs("lake").files(f"/{name}") == files
