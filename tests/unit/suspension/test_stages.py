"""The stage of a suspension, from each mixture of what a pod's spec, status and record say."""

import itertools

import pytest

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.suspension.stages import SUSPENDED_SIZE, CpuSize, Stage, stage_of
from tests.builders import manifests
from tests.builders.operators.pod_tables import record_of, shown

RECORD = record_of(500, 1000)
AMOUNTS = ("1m", "2m", "500m")


@pytest.mark.parametrize(
    ("size", "is_resizing", "stage"),
    [
        (CpuSize(500, 1000), False, Stage.NONE),
        (SUSPENDED_SIZE, True, Stage.SHRINKING),
        (SUSPENDED_SIZE, False, Stage.SUSPENDED),
        (CpuSize(1, 1000), False, Stage.CONTINUING),
        (CpuSize(1, 1000), True, Stage.CONTINUING),
        (CpuSize(500, 1000), True, Stage.GROWING),
        (CpuSize(500, 10), False, Stage.FOREIGN),
        (CpuSize(1, 999), False, Stage.FOREIGN),
    ],
)
def test_the_stage_follows_from_the_spec_and_the_record(size, is_resizing, stage):
    assert stage_of(size, RECORD, is_resizing=is_resizing) is stage


def test_without_a_record_a_shrunk_task_is_an_orphan():
    assert stage_of(SUSPENDED_SIZE, None, is_resizing=False) is Stage.ORPHAN
    assert stage_of(CpuSize(500, 1000), None, is_resizing=False) is Stage.NONE


def test_a_task_that_asked_for_so_little_is_not_suspended():
    assert stage_of(SUSPENDED_SIZE, record_of(1, 10), is_resizing=False) is Stage.NONE


@pytest.mark.parametrize(("spec", "allocated", "actual"), [*itertools.product(AMOUNTS, repeat=3)])
def test_cpu_is_free_only_once_spec_allocated_and_actual_say_so(spec, allocated, actual):
    limit = "1" if spec == "500m" else "10m"
    status = manifests.container_status(names.CONTAINER, actuated={"cpu": actual}, allocated={"cpu": allocated})
    sizes = wire.ResourceRequirements(requests={"cpu": spec}, limits={"cpu": limit})
    task = wire.Container(name=names.CONTAINER, resources=sizes)
    noted = {names.ANNOTATION_SUSPENSION: RECORD.text()}
    pod = shown(0, "n0", containers=(task,), statuses=(status,), annotations=noted)
    assert pod.resources.cpu_milli == max(int(amount[:-1]) for amount in (spec, allocated, actual))
    is_free = "500m" not in {spec, allocated, actual}
    assert (pod.stage is Stage.SUSPENDED) == (is_free and spec == "1m")
