"""The fields about a job's life and its pods, on a real API server: what may change when, and what is refused."""

import pytest

from boathouse.cluster import errors
from boathouse.services.mrjob.model import MRJOBS
from tests.contract.test_crd import job

pytestmark = pytest.mark.usefixtures("crds")

TERM = {"key": "disk", "operator": "In", "values": ["ssd"]}


def affinity(*requirements):
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(requirements)}]}
    return {"podTemplate": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}}


def elastic(least, **requests):
    return {"mapper": {"command": ["cat"], "elasticMemory": {"min": least}, "resources": {"requests": requests}}}


async def test_defaults_of_a_jobs_life_are_filled_in(api, namespace):
    spec = (await api.create(MRJOBS, job(), namespace))["spec"]
    assert (spec["suspend"], spec["taskTimeoutSeconds"], spec["slowStartCompletedMapsPercent"]) == (False, 600, 100)


async def test_every_field_for_pods_that_is_right_is_taken(api, namespace):
    template = affinity(TERM)["podTemplate"] | {
        "metadata": {"labels": {"example.com/team": "a"}, "annotations": {"note": "x"}},
        "priorityClassName": "urgent",
        "securityContext": {"runAsUser": 2000, "supplementalGroups": [7]},
    }
    pull, sources = [{"name": "registry"}], [{"prefix": "DB_", "secretRef": {"name": "db", "optional": True}}]
    wanted = job(podTemplate=template, imagePullSecrets=pull, envFrom=sources, serviceAccountName="reader")
    spec = (await api.create(MRJOBS, wanted | {}, namespace))["spec"]
    assert (spec["podTemplate"], spec["envFrom"], spec["imagePullSecrets"]) == (template, sources, pull)


WRONG = {
    "a label of ours": (
        {"podTemplate": {"metadata": {"labels": {"boathouse.dev/queue": "x"}}}},
        "belong to Boathouse",
    ),
    "a label with a bad name": ({"podTemplate": {"metadata": {"labels": {"a b": "x"}}}}, r"must be \[PREFIX/\]NAME"),
    "a label with a bad value": ({"podTemplate": {"metadata": {"labels": {"a": "x y"}}}}, "labels"),
    "the root user": ({"podTemplate": {"securityContext": {"runAsUser": 0}}}, "greater than or equal to 1"),
    "a requirement without values": (affinity({"key": "disk", "operator": "In"}), "In and NotIn need values"),
    "a comparison with a word": (affinity(TERM | {"operator": "Gt"}), "Gt and Lt one whole number"),
    "an affinity without terms": (affinity(), "at least 1 items"),
    "two sources": ({"envFrom": [{"secretRef": {"name": "a"}, "configMapRef": {"name": "b"}}]}, "exactly one of"),
    "no source": ({"envFrom": [{"prefix": "A_"}]}, "exactly one of"),
    "our prefix": ({"envFrom": [{"prefix": "BOATHOUSE_", "secretRef": {"name": "a"}}]}, "choose another"),
    "an account that is no name": ({"serviceAccountName": "a b"}, "serviceAccountName"),
    "a deadline of nothing": ({"activeDeadlineSeconds": 0}, "greater than or equal to 1"),
    "a negative time to live": ({"ttlSecondsAfterFinished": -1}, "greater than or equal to 0"),
    "more than all maps": ({"slowStartCompletedMapsPercent": 101}, "less than or equal to 100"),
    "a negative timeout": ({"taskTimeoutSeconds": -1}, "greater than or equal to 0"),
    "elastic above what is asked for": (elastic("1Gi", memory="512Mi"), "is more than resources.requests.memory"),
    "elastic above the default": (elastic("1Gi"), "is more than resources.requests.memory"),
    "elastic with too little": (elastic("1Mi", memory="512Mi"), "is less than 64Mi"),
}


@pytest.mark.parametrize(("spec", "message"), WRONG.values(), ids=WRONG)
async def test_what_is_wrong_is_refused_with_what_to_do(api, namespace, spec, message):
    with pytest.raises(errors.Invalid, match=message):
        await api.create(MRJOBS, job(**spec), namespace)


async def change(api, namespace, created, **spec):
    return await api.patch(MRJOBS, created["metadata"]["name"], {"spec": spec}, namespace)


@pytest.mark.parametrize(
    "spec",
    [{"suspend": True}, {"activeDeadlineSeconds": 9}, {"ttlSecondsAfterFinished": 9}, {"cleanUp": "Never"}],
    ids=lambda s: next(iter(s)),
)
async def test_what_a_batch_job_lets_change_may_change(api, namespace, spec):
    created = await api.create(MRJOBS, job(), namespace)
    assert (await change(api, namespace, created, **spec))["spec"] | spec == (
        await api.get(MRJOBS, created["metadata"]["name"], namespace)
    )["spec"]


PLACEMENT = {
    "queue": "other",
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"operator": "Exists"}],
    "podTemplate": {"priorityClassName": "urgent"},
}


@pytest.mark.parametrize("field", PLACEMENT)
async def test_placement_may_change_only_while_the_job_is_suspended(api, namespace, field):
    running = await api.create(MRJOBS, job(), namespace)
    with pytest.raises(errors.Invalid, match=rf"spec\.{field} can only be changed while the job is suspended"):
        await change(api, namespace, running, **{field: PLACEMENT[field]})
    suspended = await api.create(MRJOBS, job(suspend=True), namespace)
    admitted = await change(api, namespace, suspended, suspend=False, **{field: PLACEMENT[field]})
    assert admitted["spec"][field] == PLACEMENT[field]


@pytest.mark.parametrize(
    "spec", [{"output": "s3://bucket/else"}, {"image": "other"}, {"reducer": None}, {"env": [{"name": "A"}]}], ids=str
)
async def test_all_else_is_immutable_and_the_refusal_names_the_field(api, namespace, spec):
    created = await api.create(MRJOBS, job(suspend=True), namespace)
    with pytest.raises(errors.Invalid, match=rf"spec\.{next(iter(spec))} is immutable"):
        await change(api, namespace, created, **spec)
