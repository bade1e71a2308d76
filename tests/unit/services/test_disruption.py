"""Which pods ask autoscalers to leave their node alone."""

import pytest

from boathouse.services.sparkapp.pods import driver, executor_template
from boathouse_task.contract import TaskType
from tests.builders import mrclusters, mrjobs, sparkapps

KARPENTER, CLUSTER_AUTOSCALER = "karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/safe-to-evict"
PODS = {
    "driver": (lambda: driver(sparkapps.app(), sparkapps.ATTEMPT), True),
    "executor": (lambda: executor_template(sparkapps.app(), sparkapps.ATTEMPT), False),
    **{
        task_type.value: (lambda task_type=task_type: mrjobs.task_manifest(mrjobs.job(), task_type), True)
        for task_type in (TaskType.SETUP, TaskType.REDUCE, TaskType.COMMIT)
    },
    "master": (lambda: mrclusters.node_manifest("master"), True),
    "core": (lambda: mrclusters.node_manifest("c0"), True),
    "transient": (lambda: mrclusters.node_manifest("t0"), False),
}


@pytest.mark.parametrize(("build", "is_protected"), PODS.values(), ids=PODS)
def test_drivers_tasks_masters_and_core_nodes_are_not_moved(build, is_protected):
    annotations = build()["metadata"].get("annotations", {})
    expected = ("true", "false") if is_protected else (None, None)
    assert (annotations.get(KARPENTER), annotations.get(CLUSTER_AUTOSCALER)) == expected


def test_what_the_author_says_wins():
    given = {"metadata": {"annotations": {CLUSTER_AUTOSCALER: "true"}}}
    pods = [
        driver(sparkapps.app(podTemplate=given), sparkapps.ATTEMPT),
        mrjobs.task_manifest(mrjobs.job(podTemplate=given), TaskType.REDUCE),
        mrclusters.node_manifest("c0", podTemplate=given),
    ]
    for pod in pods:
        assert pod["metadata"]["annotations"][CLUSTER_AUTOSCALER] == "true"
        assert pod["metadata"]["annotations"][KARPENTER] == "true"
