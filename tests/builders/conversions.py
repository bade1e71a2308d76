"""Submissions to Spark, and applications of the other operator, that `boathouse convert` reads."""

import shlex

from boathouse_cli.conversion import command_lines, manifests
from tests.spark import configurations as known

APPLICATION = {
    "type": "Python",
    "mainApplicationFile": "local:///opt/app/main.py",
    "sparkVersion": "4.3.0",
    "mode": "cluster",
    "driver": {"cores": 1, "memory": "1g"},
    "executor": {"cores": 2, "instances": 3, "memory": "2g"},
}
"""The spec of an application that has all counterparts."""
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


def missing_file(path):
    """Read a file that does not exist."""
    raise FileNotFoundError(2, "No such file or directory", path)


def recorded_line(configuration):
    """Return the line of a recorded configuration, as in a script."""
    return shlex.join(["/opt/spark/bin/spark-submit", *COMMON, *configuration.options, *configuration.application])


def converted_line(*words, read=missing_file):
    """Convert the words of a `spark-submit` line."""
    return command_lines.convert(["spark-submit", *words], source="line 1", read=read)


def spec_of_line(*words, read=missing_file):
    """Return the spec of a `spark-submit` line."""
    found = converted_line(*words, read=read)
    assert found.manifest is not None, found.notes
    return found.manifest["spec"]


def notes_of_line(*words):
    """Return the advice of each note on a `spark-submit` line, by its path."""
    return {note.path: note.advice for note in converted_line(*words).notes}


def spark_application(kind="SparkApplication", version="v1beta2", name="pi", **spec):
    """Return an application of the other operator."""
    return {
        "apiVersion": f"sparkoperator.k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": name, "namespace": "team"},
        "spec": spec,
    }


def converted_application(**spec):
    """Convert an application that has all counterparts, with other fields of its spec."""
    found = manifests.convert(spark_application(**{**APPLICATION, **spec}))
    assert found.manifest is not None, found.notes
    return found


def both_roles(**fields):
    """Return the same fields for driver and executors."""
    return {role: {**APPLICATION[role], **fields} for role in ("driver", "executor")}
