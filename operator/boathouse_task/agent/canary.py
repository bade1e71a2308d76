"""Ports to which the operator connects to find out whether NetworkPolicies are enforced.

No policy allows the canary port, so a connection to it shows that they are not. The policies allow the control port for
the operator: if it cannot connect to this one either, the canary shows nothing.
"""

import contextlib
import socket
import threading


class Canary:
    """Accepts connections and closes them at once.

    Args:
        port: the port, on all addresses; 0: any.
    """

    def __init__(self, port: int) -> None:
        dual = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dual else socket.AF_INET
        self._server = socket.create_server(("", port), family=family, dualstack_ipv6=dual)
        self._thread = threading.Thread(target=self._run, name="canary", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        port: int = self._server.getsockname()[1]
        return port

    @property
    def listens(self) -> bool:
        """Whether it accepts connections."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(OSError):  # it wakes the thread
            self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._server.accept()[0].close()
