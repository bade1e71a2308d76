"""What becomes of a probe that is over."""

from types import SimpleNamespace

import pytest

from boathouse.resources.mrjob.status import Prediction
from boathouse.services.mrjob import submission
from boathouse.services.mrjob.job_state import JobState
from boathouse.services.mrjob.memory import ProbeMemory
from boathouse.services.mrjob.probes import Probes
from tests.builders import mrjobs


@pytest.mark.parametrize(("phase", "succeeded"), [("Succeeded", True), ("Failed", False)])
async def test_policies_are_told_whether_a_probe_succeeded(phase, succeeded):
    job, ends = mrjobs.job(), []
    found = Probes(
        sizes=None, settings=None, related_objects=None, pod_settings=None, clusters=None,
        pods=SimpleNamespace(of=lambda _: ()),
        plans=SimpleNamespace(plan=lambda *_: None),
        events=SimpleNamespace(ended=lambda uid, *, succeeded, **_: ends.append((uid, succeeded))),
        placing=SimpleNamespace(withdraw=lambda _: None),
    )  # fmt: skip
    state = JobState(prediction=Prediction(probe=phase))
    await found.carry_on(job, state, ProbeMemory(is_published=True), writes=None)
    assert ends == [(submission.probe_uid(job.uid), succeeded)]
