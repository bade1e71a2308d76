"""Agents of clusters: their parameters, and the daemons of Hadoop that they connect to."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from boathouse_task.cluster_contract import AgentSpec
from tests.builders.task_servers import Request, http_server

if TYPE_CHECKING:
    from collections.abc import Iterator

DOMAIN = "hadoop.demo.svc"
APPLICATION = "application_1795455136309_0003"
_RECORDINGS = Path(__file__).parents[1] / "unit" / "task" / "recordings" / "hadoop"


def recording(name: str) -> bytes:
    """Return a recorded response of a daemon."""
    return (_RECORDINGS / f"{name}.json").read_bytes()


def agent_spec(folder: Path, **fields: object) -> AgentSpec:
    """Return the parameters of an agent with its files in a folder."""
    for name in ("agent", "refresh"):
        (folder / name).mkdir(exist_ok=True)
    defaults = {
        "namespace": "demo",
        "cluster_uid": "uid-1",
        "progress_url": "https://localhost:1",
        "domain": DOMAIN,
        "files_path": str(folder / "agent"),
        "refresh_path": str(folder / "refresh"),
    }
    return AgentSpec(**{**defaults, **fields})


class Daemon:
    """Responds to requests whose path begins with a given one, with a status and a body; else with 404."""

    def __init__(self, responses: dict[str, tuple[int, bytes]]) -> None:
        self.responses = responses
        self.requests: list[tuple[str, str, bytes]] = []

    @classmethod
    def name_node(cls, info: str = "nn-info", system: str = "nn-system") -> Daemon:
        """A NameNode in a recorded state."""
        return cls(
            {
                "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo": (200, recording(info)),
                "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystem": (200, recording(system)),
                "/webhdfs/v1/": (200, b'{"boolean":true}'),
            }
        )

    @classmethod
    def resource_manager(cls, nodes: str = "rm-nodes", apps: str = "rm-apps-running") -> Daemon:
        """A ResourceManager in a recorded state."""
        return cls(
            {
                "/ws/v1/cluster/info": (200, recording("rm-info")),
                "/ws/v1/cluster/metrics": (200, recording("rm-metrics")),
                "/ws/v1/cluster/nodes?": (200, recording(nodes)),
                "/ws/v1/cluster/apps?": (200, recording(apps)),
                "/ws/v1/cluster/apps/": (202, b""),
                "/proxy/": (200, recording("am-jobs")),
            }
        )

    @classmethod
    def history(cls) -> Daemon:
        """A JobHistoryServer that knows the job of `APPLICATION`."""
        job = f"/ws/v1/history/mapreduce/jobs/{APPLICATION.replace('application', 'job')}"
        return cls({f"{job}/counters": (200, recording("history-counters")), job: (200, recording("history-job"))})

    def paths(self) -> list[str]:
        """Return the paths of all requests."""
        return [path for _, path, _ in self.requests]

    @contextlib.contextmanager
    def serving(self) -> Iterator[int]:
        """Run the daemon; yield its port."""

        def respond(request: Request) -> tuple[int, bytes, dict[str, str]]:
            self.requests.append((request.method, request.path, request.body))
            found = (response for prefix, response in self.responses.items() if request.path.startswith(prefix))
            return *next(found, (404, b"")), {"Location": "http://localhost/elsewhere"}

        with http_server(respond) as port:
            yield port


@contextlib.contextmanager
def broken_daemon(*pieces: bytes, endless: bytes = b"", keep_open: bool = False) -> Iterator[int]:
    """Run a server that sends pieces to its first client, then one piece again and again; yield its port."""
    server = socket.create_server(("127.0.0.1", 0))
    left = threading.Event()

    def serve() -> None:
        with contextlib.suppress(OSError):
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                for piece in pieces:
                    connection.sendall(piece)
                while endless:
                    connection.sendall(endless)
                if keep_open:
                    left.wait()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        left.set()
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        thread.join()
        server.close()
