"""Statuses on a real API server: what it refuses, and that it takes the worst that a task can say."""

from __future__ import annotations

import json

import msgspec
import pytest

from boathouse.cluster import errors, wire
from boathouse.resources import names
from boathouse.resources.config import OperatorConfig
from boathouse.resources.mrjob import status as mrjob_status
from boathouse.services.frame.status_codec import stripped
from boathouse.services.mrjob import attempt_pods, job_state, model, settle
from boathouse.services.mrjob.job_state import JobState
from boathouse.services.mrjob.model import MRJOBS
from boathouse.services.mrjob.planning import observation, planner
from tests.builders import manifests
from tests.contract.test_crd import job

pytestmark = pytest.mark.usefixtures("crds")

CONFIG = OperatorConfig.model_validate({"task": {"image": "task:dev"}})
HUGE = 99999999999999999999


def worst(outcome):
    """A termination message in which everything is as large, as odd and as wrong as it can be."""
    text = "\x00\x1b[2J\u202e\ud7ff\uffff" + "x" * 700
    return json.dumps(
        {
            "outcome": outcome,
            "reason": text,
            "message": text,
            "user_error": True,
            "winner_attempt": HUGE,
            "digest": text,
            "splits": HUGE,
            "bytes_total": -HUGE,
            "counters": {text: {text: HUGE, "ok": 2**63 - 1, "": -(2**63)}, "": {"": 1}},
            "timings": [[text, -HUGE, HUGE]] * 3,
            "stderr_tail": text,
            "exit_code": HUGE,
        }
    )


def pod(task_type, index, message, phase):
    labels = {"job-uid": "j", "task-type": task_type, "task-index": str(index), "attempt": "1", "step": "0"}
    ended = {"terminated": {"exitCode": 1, "message": message, "reason": "Error", "finishedAt": "2026-01-01T00:00:00Z"}}
    manifest = {
        "metadata": {
            "name": f"{task_type}-{index}",
            "uid": f"{task_type}-{index}",
            "labels": {f"boathouse.dev/{name}": value for name, value in labels.items()},
            "ownerReferences": [{"apiVersion": names.API_VERSION, "kind": "MRJob", "uid": "j", "controller": True}],
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"nodeName": "n" * 253},
        "status": {"phase": phase, "containerStatuses": [{"name": "task", "state": ended}]},
    }
    found = attempt_pods.task_pod(manifests.TRANSFORM_POD(msgspec.convert(manifest, wire.PodView)))
    assert found is not None
    return found


def state_after_plan(known_job, state, *pods, **more):
    limits = settle.Limits(start_timeout_s=600, image_pull_timeout_s=600)
    observed = observation.Observation(job=known_job, state=state, pods=pods, now_s=1.8e9, limits=limits, **more)
    return planner.plan(observed).state


async def test_a_counter_beyond_64_bits_makes_a_status_invalid(api, namespace):
    made = (await api.create(MRJOBS, job(), namespace))["metadata"]
    with pytest.raises(errors.Invalid, match="counters"):
        await api.patch_status(MRJOBS, made["name"], {"counters": {"a": {"b": HUGE}}}, namespace)


async def test_the_status_of_a_job_whose_tasks_say_the_worst_is_taken_and_read_back(api, namespace):
    made = await api.create(MRJOBS, job(), namespace)
    known_job = model.from_resource(made, CONFIG)
    assert isinstance(known_job, model.Job)
    plan = mrjob_status.PlanStatus(digest="d" * 64, splits=4, bytes=2**63 - 1, shards=1)
    mapping = state_after_plan(known_job, JobState(), stored=plan)
    state = state_after_plan(
        known_job,
        mapping,
        pod("map", 0, worst("succeeded"), "Succeeded"),
        pod("map", 1, worst("succeeded"), "Succeeded"),
        pod("map", 2, worst("failed"), "Failed"),
        pod("map", 3, "[" * 4000, "Failed"),
    )
    assert state.counters
    assert len(state.last_failures) == 2
    name = made["metadata"]["name"]
    taken = await api.patch_status(MRJOBS, name, job_state.to_status(state), namespace)
    assert stripped(taken["status"]) == stripped(job_state.to_status(state))
    assert job_state.from_status(taken["status"], reduces=1).stages == state.stages


async def test_what_is_no_more_in_the_attempts_is_cleared(api, namespace):
    made = await api.create(MRJOBS, job(), namespace)
    name = made["metadata"]["name"]
    before = {"attempts": {"map": {"last": "eNpjZAAAAAQAAg==", "killed": "eNpjZAAAAAQAAg=="}}}
    await api.patch_status(MRJOBS, name, before, namespace)
    taken = await api.patch_status(MRJOBS, name, job_state.to_status(JobState()), namespace)
    assert not taken["status"].get("attempts")
