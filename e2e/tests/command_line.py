"""The command line on a namespace of the cluster, as users call it."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping

from boathouse_e2e import shell
from e2e.tests import harness

WIDTH = "400"
"""Columns, so that no line of a table is folded."""


def output(place: harness.Place, *words: str) -> str:
    """What a command prints."""
    return shell.run(*_command(place, *words), env=_environment(place))


@contextlib.contextmanager
def user_interface(place: harness.Place, application: str) -> Iterator[str]:
    """The address at which `boathouse ui` forwards to an application's UI, while the block runs."""
    command = _command(place, "ui", application, "--port=0")
    environment = _environment(place)
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as forwarding:
        assert forwarding.stdout is not None
        try:
            line = forwarding.stdout.readline()
            found = re.search(r"http://\S+/", line)
            assert found, line
            yield found[0]
        finally:
            os.killpg(forwarding.pid, signal.SIGTERM)  # kubectl too


def _command(place: harness.Place, *words: str) -> list[str]:
    cluster = place.cluster
    context = (f"--context={cluster.context}",) if cluster.context else ()
    where = (f"--namespace={place.namespace}", f"--kubeconfig={cluster.kubeconfig}", *context)
    return [sys.executable, "-m", "boathouse_cli", *words, *where]


def _environment(place: harness.Place) -> Mapping[str, str]:
    path = f"{place.cluster.kubectl.parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "COLUMNS": WIDTH}
