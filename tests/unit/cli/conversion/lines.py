"""Command lines and conversions in a line each."""

import shlex

from boathouse_cli.conversion import command_lines
from tests.spark import configurations as known

PYTHON = "local:///opt/app/main.py"
COMMON = (
    *("--master", "k8s://https://10.0.0.1:6443", "--deploy-mode", "cluster", "--name", known.NAME),
    *("--conf", f"spark.kubernetes.namespace={known.NAMESPACE}"),
    *("--conf", f"spark.kubernetes.container.image={known.IMAGE}"),
    *("--conf", f"spark.kubernetes.authenticate.driver.serviceAccountName={known.ACCOUNT}"),
    *("--conf", "spark.kubernetes.scheduler.name=boathouse"),
    *("--conf", "spark.kubernetes.submission.waitAppCompletion=false"),
)
"""What all recorded submissions have."""


def absent(path):
    raise FileNotFoundError(2, "No such file or directory", path)


def line_of(configuration):
    """The line of a recorded configuration, as in a script."""
    return shlex.join(["/opt/spark/bin/spark-submit", *COMMON, *configuration.options, *configuration.application])


def convert(*words, read=absent):
    return command_lines.convert(["spark-submit", *words], source="line 1", read=read)


def spec(*words, read=absent):
    found = convert(*words, read=read)
    assert found.manifest is not None, found.notes
    return found.manifest["spec"]


def notes(*words):
    return {note.path: note.advice for note in convert(*words).notes}
