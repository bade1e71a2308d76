"""Room that is left to nominated pods."""

import dataclasses

import msgspec
import pytest

from boathouse.cluster import wire
from boathouse.scheduling import transforms
from boathouse.scheduling.pods import indexes, rows
from boathouse_policies import model
from tests.builders import core


@pytest.mark.parametrize(("nominees", "placed"), [(1, ["n0", "n0"]), (2, ["n0"])])
def test_a_nominee_that_the_cycle_places_is_not_counted_twice(nominees, placed):
    subject = indexes.Nominations()
    for i in range(nominees):
        pod = {"metadata": {"name": f"p{i}", "namespace": "ns"}, "spec": {"containers": [CONTAINER]}}
        task = model.Task(id=model.TaskId(f"ours/map-{i}"), task_class=model.ClassId("ours/map"))
        facts = transforms.pods("boathouse")(msgspec.convert(pod, wire.PodView))
        row = rows.PodRow(id=task.id, namespace="ns", facts=facts, task=task)
        subject.set(row, model.NodeName("n0"))
    shell = core.Shell(core.nodes(1, core.amount(4000, 4)))
    shell.profile = dataclasses.replace(shell.profile, filters=(*shell.profile.filters, subject))
    shell.submit("ours", 1, core.amount(3000, 1), submitted_s=0.0)
    shell.submit("equal", 1, core.amount(1000, 1), submitted_s=1.0)
    assert [node for _, node in core.where(shell.cycle())] == placed


CONTAINER = {"name": "c", "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}}
