"""Jobs whose reduces run and lack the output of a map that is slow, for what suspends them."""

from typing import Any

from boathouse.resources.mrjob import names as mrjob_names
from boathouse_e2e.container_cpu import ContainerCpu
from e2e.tests import harness

JOB = "long"
LIMIT_MILLI = 1500
"""CPU limit of the container of a reduce that is not suspended."""
END = "/tmp/end"  # noqa: S108 - of a pod
WAITING = f"""case "$mapreduce_map_input_file" in
  *slow*) until [ -e {END} ]; do sleep 0.2; done;;
esac
exec python3 mapper.py"""
"""A mapper that waits for a file if its input is called slow."""


def start(place: harness.Place, *, count: int, cpu: str) -> bytes:
    """Start a job whose reduces wait for a map that ends with `end_map`; return its input."""
    data = harness.text(500_000)
    place.put("in/a.txt", data)
    place.put("in/slow.txt", data)
    reducer = {
        "command": ["python3", "reducer.py"],
        "resources": {"requests": {"cpu": cpu, "memory": "128Mi"}, "limits": {"cpu": f"{LIMIT_MILLI}m"}},
    }
    mapper = {"command": ["sh", "-c", WAITING], "resources": harness.SMALL}
    place.start(JOB, mapper=mapper, reducer=reducer, numReduceTasks=count, slowStartCompletedMapsPercent=0)
    return data + data


def end_map(place: harness.Place) -> None:
    """Let the map end that the reduces wait for."""
    (pod,) = (pod for pod in _pods(place, "map") if pod["status"].get("phase") == "Running")
    place.cluster.run("exec", pod["metadata"]["name"], "-n", place.namespace, "--", "touch", END)


def running_reduces(place: harness.Place, count: int) -> list[dict[str, Any]]:
    """Wait until so many reduces run; return their pods."""

    def run() -> list[dict[str, Any]] | None:
        pods = _pods(place, "reduce")
        return pods if [pod["status"].get("phase") for pod in pods] == ["Running"] * count else None

    return harness.until(run, f"{count} reduces run")


def _pods(place: harness.Place, task_type: str) -> list[dict[str, Any]]:
    return [pod for pod in place.raw_pods(JOB) if pod["metadata"]["labels"][mrjob_names.LABEL_TASK_TYPE] == task_type]


def container(pod: dict[str, Any]) -> ContainerCpu:
    """Return the CPU of the container of a pod whose node runs on this machine."""
    return ContainerCpu.find(pod["status"]["containerStatuses"][0]["containerID"])
