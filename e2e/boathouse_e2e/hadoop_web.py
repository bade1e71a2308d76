"""Ask the daemons of an MRCluster from outside, and read and write its HDFS: through the API server's proxy of pods.

A NameNode answers with the address of a DataNode, which is asked by its pod: this machine resolves no names of pods.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote, urlencode, urlsplit

from typing_extensions import override

from boathouse.cluster import blocking, config, errors
from boathouse_e2e.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from boathouse_e2e.spec import Cluster

MASTER: Final = "master"
NAME_NODE_PORT: Final = 9870
RESOURCE_MANAGER_PORT: Final = 8088
HISTORY_PORT: Final = 19888
USER: Final = "hadoop"
TIMEOUT_S: Final = 120


class Ask(Protocol):
    """Asks a web server of a host of the cluster."""

    def __call__(self, method: str, host: str, port: int, path: str, body: bytes | None = None) -> bytes:
        """Return the answer's body.

        Raises:
            ClusterError: The host has no pod, does not answer, or the answer is an error or a redirect.
        """
        ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Proxy(Ask):
    """The web servers of the pods of a cluster.

    Attributes:
        api: Client of the API server.
        namespace: That of the pods.
        pods: Returns the names of the pods by host, as they are now.
    """

    api: blocking.Session
    namespace: str
    pods: Callable[[], Mapping[str, str]]

    @override
    def __call__(self, method: str, host: str, port: int, path: str, body: bytes | None = None) -> bytes:
        pod = self.pods().get(host)
        if pod is None:
            raise ClusterError(f"{host} has no pod")
        # A redirect would lead to a name that only pods resolve: the session makes an error of it.
        url = f"/api/v1/namespaces/{self.namespace}/pods/http:{pod}:{port}/proxy/{path}"
        try:
            return self.api.request(method, url, body=body, timeout_s=TIMEOUT_S)
        except errors.ApiError as error:
            raise ClusterError(f"{method} {path} at port {port} of {host}: {error.status} {error.message}") from error
        except errors.ConnectionLost as error:
            raise ClusterError(f"{method} {path} at port {port} of {host}: {error}") from error


def connect(cluster: Cluster, namespace: str, pods: Callable[[], Mapping[str, str]]) -> Proxy:
    """Return the proxy of pods of a namespace, with the administrator's rights."""
    api = blocking.Session(config.of_user(cluster.kubeconfig, cluster.context))
    return Proxy(api=api, namespace=namespace, pods=pods)


@dataclasses.dataclass(frozen=True, slots=True)
class WebHdfs:
    """The HDFS of a cluster. Paths begin with a slash."""

    ask: Ask

    def write(self, path: str, content: bytes) -> None:
        """Write a file, in the place of an existing one.

        Raises:
            ClusterError: HDFS refused it, for example because it is full.
        """
        self._at_data_node("PUT", path, "CREATE", content, overwrite="true")

    def read(self, path: str) -> bytes:
        """Return a file's content."""
        return self._at_data_node("GET", path, "OPEN")

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the sizes in bytes of the files in a folder, by name."""
        found = self._at_name_node("GET", folder, "LISTSTATUS")["FileStatuses"]["FileStatus"]
        return {
            file_status["pathSuffix"]: int(file_status["length"])
            for file_status in found
            if file_status["type"] == "FILE"
        }

    def files(self, folder: str) -> dict[str, bytes]:
        """Return the files in a folder by name."""
        sizes = self.sizes(folder)
        return {name: self.read(f"{folder}/{name}") if size else b"" for name, size in sizes.items()}

    def block_hosts(self, path: str) -> list[list[str]]:
        """Return the hosts that have each block of a file."""
        found = self._at_name_node("GET", path, "GETFILEBLOCKLOCATIONS")
        return [list(map(host_of, block["hosts"])) for block in found["BlockLocations"]["BlockLocation"]]

    def _at_name_node(self, method: str, path: str, operation: str, **parameters: str) -> Any:
        query = urlencode({"op": operation, "user.name": USER, **parameters})
        return json.loads(self.ask(method, MASTER, NAME_NODE_PORT, f"webhdfs/v1{quote(path)}?{query}"))

    def _at_data_node(
        self, method: str, path: str, operation: str, content: bytes | None = None, **parameters: str
    ) -> bytes:
        location = self._at_name_node(method, path, operation, noredirect="true", **parameters)["Location"]
        there = urlsplit(location)
        assert there.hostname is not None
        assert there.port is not None
        return self.ask(method, host_of(there.hostname), there.port, f"{there.path.lstrip('/')}?{there.query}", content)


def host_of(name: str) -> str:
    """Return the host of a cluster in the name of its pod: what is before the first dot."""
    return name.partition(".")[0]
