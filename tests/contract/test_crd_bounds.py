"""How much an MRJob may hold in all, on a real API server; and what stored jobs that hold more still permit."""

from __future__ import annotations

import copy

import pytest

from boathouse.cluster import errors
from boathouse.resources import pod_template as pod_fields
from boathouse.resources.mrjob import steps as mrjob_steps
from boathouse.resources.mrjob.status import MRJOB
from boathouse.resources.pod_environment import MAX_ENV_BYTES
from tests.contract.test_crd import CRDS, MRJOBS, job

pytestmark = pytest.mark.usefixtures("crds")

KIB = 1024


def env(total_bytes, character="x"):
    """Variables whose names and values have so many bytes in all."""
    size = len(character.encode())
    values = [character * (4096 // size)] * (total_bytes // (4096 + 4))
    return {"env": [{"name": f"V{index:03}", "value": value} for index, value in enumerate(values)]}


def steps(total_bytes):
    """Steps whose commands have so many bytes in all."""
    return {
        "mapper": None,
        "reducer": None,
        "steps": [{"mapper": {"command": ["x" * 4095]}} for _ in range(total_bytes // 4096)],
    }


def command(total_bytes):
    return {"mapper": {"command": ["x" * 4095] * (total_bytes // 4096)}}


def annotations(total_bytes):
    values = {f"a{index}": "x" * 4096 for index in range(total_bytes // 4096)}
    return {"podTemplate": {"metadata": {"annotations": values}}}


def affinity(total_bytes):
    values = ["x" * 63] * 64
    one = {"matchExpressions": [{"key": "k", "operator": "In", "values": values}] * (total_bytes // (64 * 64) // 4)}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [one] * 4}}
    return {"podTemplate": {"affinity": {"nodeAffinity": required}}}


BOUNDS = {
    "env": (env, MAX_ENV_BYTES, "env may have 131072 bytes in total"),
    "env of many bytes a character": (
        lambda size: env(size, "\u20ac"),
        MAX_ENV_BYTES,
        "env may have 131072",
    ),
    "a command": (
        command,
        mrjob_steps.MAX_COMMAND_CHARACTERS,
        "the commands of all steps may have 65536 characters in total",
    ),
    "annotations": (annotations, pod_fields.MAX_ANNOTATION_BYTES, "annotations may have 65536 bytes in total"),
    "affinity": (affinity, pod_fields.MAX_AFFINITY_BYTES, "keys and values may have 65536 bytes in total"),
}


@pytest.mark.parametrize("case", BOUNDS)
async def test_what_is_within_a_bound_is_taken_and_what_is_beyond_it_is_refused(api, namespace, case):
    build, most, complaint = BOUNDS[case]
    await api.create(MRJOBS, job(**build(most - 8 * KIB)), namespace, dry_run=True)
    with pytest.raises(errors.Invalid) as refused:
        await api.create(MRJOBS, job(**build(most + 32 * KIB)), namespace, dry_run=True)
    assert complaint in refused.value.message


async def test_the_commands_of_all_steps_count_together(api, namespace):
    await api.create(MRJOBS, job(**steps(56 * KIB)), namespace, dry_run=True)
    many = steps(64 * KIB)
    many["steps"] = [{"mapper": {"command": ["x" * 4095, "y" * 600]}} for _ in many["steps"]]
    with pytest.raises(errors.Invalid, match="the commands of all steps may have"):
        await api.create(MRJOBS, job(**many), namespace, dry_run=True)


@pytest.mark.parametrize("field", ["nodeSelector", "requests"])
async def test_names_have_a_bound(api, namespace, field):
    long = f"example.com/{'x' * 400}"
    fields = {
        "nodeSelector": {"nodeSelector": {long: "a"}},
        "requests": {"mapper": {"command": ["cat"], "resources": {"requests": {long: 1}}}},
    }[field]
    with pytest.raises(errors.Invalid, match="a name has at most 317 characters"):
        await api.create(MRJOBS, job(**fields), namespace, dry_run=True)


def without_bounds_in_all(manifest):
    """The CRD as it was before environment and commands had a bound together."""
    old = copy.deepcopy(manifest)
    spec = old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for node in spec, spec["properties"]["env"]:
        rules = node["x-kubernetes-validations"]
        node["x-kubernetes-validations"] = [rule for rule in rules if "in total" not in rule.get("message", "")]
    return old


async def test_a_stored_job_beyond_the_bounds_can_be_suspended_and_gets_its_status(api, namespace, eventually):
    """An upgrade of the CRD must not stop jobs that run."""
    new, old = MRJOB.manifest(), without_bounds_in_all(MRJOB.manifest())
    big = job(**env(MAX_ENV_BYTES + 32 * KIB), **command(mrjob_steps.MAX_COMMAND_CHARACTERS + 32 * KIB))
    await api.patch(CRDS, MRJOB.name, {"spec": old["spec"]})
    try:
        created = await eventually_created(api, big, namespace, eventually)
    finally:
        await api.patch(CRDS, MRJOB.name, {"spec": new["spec"]})
    await eventually(lambda: is_refused(api, big, namespace))
    name = created["metadata"]["name"]
    status = await api.patch(MRJOBS, name, {"status": {"phase": "Map"}}, namespace, subresource="status")
    assert status["status"]["phase"] == "Map"
    suspended = await api.patch(MRJOBS, name, {"spec": {"suspend": True}}, namespace)
    assert suspended["spec"]["suspend"] is True


async def eventually_created(api, manifest, namespace, eventually):
    created = []

    async def attempt():
        try:
            created.append(await api.create(MRJOBS, manifest, namespace))
        except errors.Invalid:
            return False
        return True

    await eventually(attempt)
    return created[-1]


async def is_refused(api, manifest, namespace):
    try:
        await api.create(MRJOBS, manifest, namespace, dry_run=True)
    except errors.Invalid:
        return True
    return False
