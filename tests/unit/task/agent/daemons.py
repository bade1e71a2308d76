"""Daemons of a cluster that respond with recordings, and a server that sends what a test wants."""

import contextlib
import http.server
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

from boathouse_task.cluster_contract import AgentSpec

RECORDINGS = Path(__file__).parents[1] / "recordings" / "hadoop"
DOMAIN = "hadoop.demo.svc"
APPLICATION = "application_1795455136309_0003"


def recorded(name: str) -> bytes:
    """A recorded response."""
    return (RECORDINGS / f"{name}.json").read_bytes()


def agent_spec(folder: Path, **fields: object) -> AgentSpec:
    """The parameters of an agent with its files in a folder."""
    for name in ("agent", "refresh"):
        (folder / name).mkdir(exist_ok=True)
    values = {
        "namespace": "demo",
        "cluster_uid": "uid-1",
        "progress_url": "https://localhost:1",
        "domain": DOMAIN,
        "files_path": str(folder / "agent"),
        "refresh_path": str(folder / "refresh"),
        **fields,
    }
    return AgentSpec(**values)


class Daemon:
    """Responds to requests whose path begins with a given one, with a status and a body; else with 404."""

    def __init__(self, responses: dict[str, tuple[int, bytes]]) -> None:
        self.responses = responses
        self.requests: list[tuple[str, str, bytes]] = []

    @classmethod
    def name_node(cls, info: str = "nn-info", system: str = "nn-system") -> "Daemon":
        """A NameNode in a recorded state."""
        return cls(
            {
                "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo": (200, recorded(info)),
                "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystem": (200, recorded(system)),
                "/webhdfs/v1/": (200, b'{"boolean":true}'),
            }
        )

    @classmethod
    def resource_manager(cls, nodes: str = "rm-nodes", apps: str = "rm-apps-running") -> "Daemon":
        """A ResourceManager in a recorded state."""
        return cls(
            {
                "/ws/v1/cluster/info": (200, recorded("rm-info")),
                "/ws/v1/cluster/metrics": (200, recorded("rm-metrics")),
                "/ws/v1/cluster/nodes?": (200, recorded(nodes)),
                "/ws/v1/cluster/apps?": (200, recorded(apps)),
                "/ws/v1/cluster/apps/": (202, b""),
                "/proxy/": (200, recorded("am-jobs")),
            }
        )

    @classmethod
    def history(cls) -> "Daemon":
        """A JobHistoryServer that knows the job of `APPLICATION`."""
        job = f"/ws/v1/history/mapreduce/jobs/{APPLICATION.replace('application', 'job')}"
        return cls({f"{job}/counters": (200, recorded("history-counters")), job: (200, recorded("history-job"))})

    def paths(self) -> list[str]:
        """The paths of all requests."""
        return [path for _, path, _ in self.requests]

    def handler(daemon) -> type[http.server.BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                daemon.requests.append((self.command, self.path, body))
                found = (each for prefix, each in daemon.responses.items() if self.path.startswith(prefix))
                status, content = next(found, (404, b""))
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Location", "http://localhost/elsewhere")
                self.end_headers()
                self.wfile.write(content)

            do_PUT = do_POST = do_GET  # noqa: N815 - the names that http.server looks for

            def log_message(self, *_):
                pass

        return Handler


@contextlib.contextmanager
def serving(daemon: Daemon) -> Iterator[int]:
    """Runs a daemon; yields its port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), daemon.handler())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def sending(*pieces: bytes, endless: bytes = b"", keep_open: bool = False) -> Iterator[int]:
    """Runs a server that sends pieces to its first client, then one piece again and again; yields its port."""
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
