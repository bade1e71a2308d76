"""Run `spark-submit` of an installed pyspark against a cluster, and measure its CPU time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from boathouse.cluster import config

if TYPE_CHECKING:
    from pathlib import Path

ACCOUNT = "boathouse-spark"
IMAGE = "spark:4.3.0"
PYTHON_FILE = "local:///opt/spark/examples/src/main/python/pi.py"
MISSING = "run `make pyspark` for pyspark (450 MB), and install Java 17, such as Debian's openjdk-17-jre-headless"


def home_of(environment: Path) -> str:
    """Return SPARK_HOME of the pyspark in a virtual environment.

    Raises:
        SystemExit: There is no Java, or no pyspark.
    """
    if shutil.which("java") is None:
        raise SystemExit(f"there is no java on the PATH: {MISSING}")
    found = sorted(environment.glob("lib/python3*/site-packages/pyspark"))
    if not found:
        raise SystemExit(f"there is no pyspark in {environment}: {MISSING}")
    return str(found[0].resolve())


def kubeconfig_of(cluster: Any, folder: Path, namespace: str) -> Path:
    """Write a kubeconfig with a token of an administrator: Spark's client cannot read the keys of the cluster's own."""
    cluster.run("create", "serviceaccount", "submitter", "-n", namespace)
    who = f"--serviceaccount={namespace}:submitter"
    cluster.run("create", "clusterrolebinding", "submitter", "--clusterrole=cluster-admin", who)
    token = cluster.run("create", "token", "submitter", "-n", namespace, "--duration=2h").strip()
    found = json.loads(cluster.kubeconfig.read_text())
    found["users"] = [{"name": user["name"], "user": {"token": token}} for user in found["users"]]
    path = folder / "submitter.kubeconfig"
    path.write_text(json.dumps(found))
    path.chmod(0o600)
    return path


class SparkSubmit:
    """Submits an application in cluster mode.

    Args:
        home: SPARK_HOME.
        kubeconfig: The cluster.
        folder: For the log, and as the home of the user.
        namespace: Where drivers run.
    """

    def __init__(self, home: str, kubeconfig: Path, folder: Path, namespace: str) -> None:
        self._home, self._namespace, self._log = home, namespace, folder / "spark-submit.log"
        self._server = config.load(kubeconfig).server
        self._environ = {name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ}
        self._environ |= {"HOME": str(folder), "KUBECONFIG": str(kubeconfig), "SPARK_HOME": home}

    def run(self, name: str) -> float:
        """Submit the application in cluster mode; return the CPU seconds of the processes."""
        conf = {
            "spark.kubernetes.namespace": self._namespace,
            "spark.kubernetes.container.image": IMAGE,
            "spark.kubernetes.authenticate.driver.serviceAccountName": ACCOUNT,
            "spark.kubernetes.submission.waitAppCompletion": "false",
            "spark.kubernetes.driver.pod.name": f"{name}-driver",
            "spark.executor.instances": "1",
        }
        command = [f"{self._home}/bin/spark-submit", "--master", f"k8s://{self._server}", "--deploy-mode", "cluster"]
        command += ["--name", name, "--driver-memory", "512m", "--executor-memory", "512m", "--executor-cores", "1"]
        command += [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        with self._log.open("ab") as log:
            process = subprocess.Popen([*command, PYTHON_FILE, "10"], env=self._environ, stdout=log, stderr=log)
            try:
                _, status, used = os.wait4(process.pid, 0)
            except BaseException:
                process.kill()
                raise
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"spark-submit ended with {process.returncode}: see {self._log}")
        return used.ru_utime + used.ru_stime
