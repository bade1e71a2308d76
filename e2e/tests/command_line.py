"""The command line on a namespace of the cluster, as users call it."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping

from boathouse_e2e import pages, paths, shell
from e2e.tests import harness

WIDTH = "400"
"""Columns, so that no line of a table is folded."""


def output(place: harness.Place, *words: str) -> str:
    """What a command prints."""
    return shell.run(*_command(place, *words), env=_environment(place))


def followed(place: harness.Place, page: str, heading: str, *, timeout_s: float, without: str = "\n") -> str:
    """What the commands of a section of a page print, entered as they are; images and chart are there already.

    A line that has the text `without` is left out.
    """
    cluster = place.cluster
    entered = pages.console_lines(pages.text_of(page, heading))
    lines = [line for line in entered if without not in line and not line.startswith("kubectl create namespace")]
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = pathlib.Path(folder) / "kubeconfig"  # of the test's context
        kubeconfig.write_text(cluster.run("config", "view", "--raw", "--minify"))
        environment = {**_environment(place), "KUBECONFIG": str(kubeconfig)}
        script = pages.script(lines, place.namespace, "docker() { :; }; helm() { :; }")
        return shell.run("bash", "-c", script, cwd=paths.REPOSITORY, env=environment, timeout_s=timeout_s)


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
    plugins = pathlib.Path(sys.executable).parent
    path = f"{place.cluster.kubectl.parent}:{plugins}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "COLUMNS": WIDTH}
