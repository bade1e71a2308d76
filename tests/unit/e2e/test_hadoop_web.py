"""HDFS through the API server's proxy of pods: which host is asked for what."""

import json

import pytest

from boathouse_e2e.errors import ClusterError
from boathouse_e2e.hadoop_web import Proxy, WebHdfs

LOCATION = "http://c1.lake-hadoop.spark.svc.cluster.local:9864/webhdfs/v1/in/a%20b?op=OPEN&namenoderpcaddress=m:8020"


class Responses:
    """Web servers that respond as a test says, and record their requests."""

    def __init__(self, *bodies):
        self.bodies, self.requests = list(bodies), []

    def __call__(self, method, host, port, path, body=None):
        self.requests.append((method, host, port, path, body))
        return self.bodies.pop(0)


def test_a_file_is_read_from_the_data_node_that_the_name_node_names():
    servers = Responses(json.dumps({"Location": LOCATION}), b"text")
    assert WebHdfs(servers).read("/in/a b") == b"text"
    assert servers.requests == [
        ("GET", "master", 9870, "webhdfs/v1/in/a%20b?op=OPEN&user.name=hadoop&noredirect=true", None),
        ("GET", "c1", 9864, "webhdfs/v1/in/a%20b?op=OPEN&namenoderpcaddress=m:8020", None),
    ]


def test_a_file_is_written_to_the_data_node_that_the_name_node_names():
    servers = Responses(json.dumps({"Location": LOCATION}), b"")
    WebHdfs(servers).write("/in/a", b"text")
    assert servers.requests[0][3] == "webhdfs/v1/in/a?op=CREATE&user.name=hadoop&noredirect=true&overwrite=true"
    assert (servers.requests[1][0], servers.requests[1][4]) == ("PUT", b"text")


def test_empty_files_and_folders_are_not_read():
    statuses = [("part-00000", 4, "FILE"), ("_SUCCESS", 0, "FILE"), ("_logs", 0, "DIRECTORY")]
    found = [{"pathSuffix": name, "length": length, "type": kind} for name, length, kind in statuses]
    listed = json.dumps({"FileStatuses": {"FileStatus": found}})
    servers = Responses(listed, json.dumps({"Location": LOCATION}), b"text")
    assert WebHdfs(servers).files("/out") == {"part-00000": b"text", "_SUCCESS": b""}


def test_the_hosts_of_blocks_are_those_of_the_cluster():
    blocks = [{"hosts": ["c0.lake-hadoop.spark.svc.cluster.local", "c2"]}]
    servers = Responses(json.dumps({"BlockLocations": {"BlockLocation": blocks}}))
    assert WebHdfs(servers).block_hosts("/in/a") == [["c0", "c2"]]


def test_a_host_without_a_pod_is_an_error():
    with pytest.raises(ClusterError, match="c1 has no pod"):
        Proxy(api=None, namespace="n", pods=dict)("GET", "c1", 9864, "webhdfs/v1/")
