"""Guards of jobs: what tenants write into ConfigMaps, labels, results and statuses, and what follows from restores."""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import gzip
import json
import types
from unittest import mock

import msgspec

from boathouse import leader
from boathouse.cluster import errors, retries
from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.services import learned
from boathouse.services.frame import admission, object_store, reconciler, status_codec
from boathouse.services.frame.object_store import Resync
from boathouse.services.mrjob import job_state, results, splits
from boathouse.services.mrjob.planning import planner, steps
from boathouse.services.progress import certificates
from boathouse_task import command, contract, counters
from tests.builders import manifests
from tests.builders.operators.mrjobs import CONFIG, KEY, RunningMRJob, mrjob, split_plan
from tests.wire import fake_api, waiting
from tests.wire.guards import Guard

MOST = 2**63 - 1
NOWHERE = -1
"""No descriptor."""
SPLITS = 3


@contextlib.asynccontextmanager
async def cluster_of(api):
    async with api.client() as client:
        cluster = RunningMRJob(api, client, SPLITS)
        cluster.client = client
        yield cluster


def ended(cluster):
    return cluster.status.get("phase") in {"Succeeded", "Failed"}


def failing(cluster, key=KEY):
    """Whether a look at the job has failed."""
    operator = cluster.kubelet.operator
    return operator is not None and bool(operator.queue._failures.get(f"{key}:MRJob"))


async def ends(cluster):
    """Run until the job ends or a look at it fails; returns what is wrong."""
    async with cluster.running():
        await waiting.eventually(lambda: ended(cluster) or failing(cluster))
    return [] if cluster.status.get("phase") == "Succeeded" else [cluster.status.get("phase")]


# Scenarios: each returns what broke


async def a_result_with_a_counter_beyond_64_bits(api, _tmp):
    refused = []

    def chaos(call):  # as the API server's schema
        counters = (call.body or {}).get("status", {}).get("counters") if call.name == "patch mrjobs/status" else None
        wrong = any(value > MOST for group in (counters or {}).values() for value in group.values())
        refused.extend([counters] if wrong else [])
        return fake_api.Fault(status=422, reason="Invalid") if wrong else fake_api.Fault()

    api.chaos = chaos
    async with cluster_of(api) as cluster:
        said = {"outcome": "succeeded", "winner_attempt": 1, "counters": {"a": {"b": 99999999999999999999}}}
        cluster.kubelet.script["m-00001", 1] = {"message": json.dumps(said)}
        cluster.kubelet.winners["m-00001"] = 1
        api.add(mrjob())
        return await ends(cluster) or refused


async def a_status_that_is_refused_for_its_counters(api, _tmp):
    def chaos(call):
        has_counters = call.name == "patch mrjobs/status" and (call.body or {}).get("status", {}).get("counters")
        return fake_api.Fault(status=422, reason="Invalid") if has_counters else fake_api.Fault()

    api.chaos = chaos
    async with cluster_of(api) as cluster:
        api.add(mrjob())
        return await ends(cluster)


async def a_plan_that_somebody_planted(api, _tmp):
    job = api.add(mrjob())
    forged = splits.encode(split_plan(1))
    owner = {"apiVersion": names.API_VERSION, "kind": "MRJob", "name": "wordcount", "uid": job["metadata"]["uid"]}
    metadata = {
        "name": f"wordcount-{job['metadata']['uid'][:8]}-s0-plan-000",
        "namespace": "demo",
        "annotations": {mrjob_names.ANNOTATION_PLAN_DIGEST: forged.digest, mrjob_names.ANNOTATION_PLAN_SHARDS: "1"},
        "ownerReferences": [owner],
    }
    content = {splits.KEY: base64.b64encode(forged.pieces[0]).decode()}
    api.add({"kind": "ConfigMap", "metadata": metadata, "immutable": True, "binaryData": content})
    async with cluster_of(api) as cluster, cluster.running():
        await waiting.eventually(lambda: cluster.status.get("plan"))
        return [] if cluster.status["plan"]["splits"] == SPLITS else ["the planted plan is the job's"]


async def more_unfinished_jobs_than_a_namespace_may_have(api, _tmp):
    async with cluster_of(api) as cluster:
        limits = CONFIG.tenant_limits.model_copy(update={"max_unfinished_jobs": 1})
        cluster.config = CONFIG.model_copy(update={"tenant_limits": limits})
        cluster.kubelet.script["setup", 1] = None
        api.add(mrjob())
        second = mrjob()
        api.add({**second, "metadata": second["metadata"] | {"name": "zweiter"}})
        async with cluster.running():
            await waiting.eventually(
                lambda: (
                    len(api.objects("pods")) == 2
                    or (api.get("mrjobs", "demo/zweiter") or {}).get("status", {}).get("reason") == "TooManyJobs"
                )
            )
        return [key for key in api.objects("pods") if "zweiter" in key]


async def a_status_whose_every_write_conflicts(api, _tmp):
    writes = []

    def chaos(call):
        if call.name != "patch mrjobs/status":
            return fake_api.Fault()
        writes.append(call)
        return fake_api.Fault(status=409, reason="Conflict")

    api.chaos = chaos
    async with cluster_of(api) as cluster:
        api.add(mrjob())
        async with cluster.running():
            await waiting.eventually(lambda: failing(cluster) or len(writes) > 6)
    return writes[6:]


async def a_restore_of_etcd(api, _tmp):
    async with cluster_of(api) as cluster:
        cluster.kubelet.script |= {(f"m-{index:05d}", 1): None for index in range(SPLITS)}
        api.add(mrjob())
        async with cluster.running():
            await waiting.eventually(lambda: cluster.status.get("phase") == "Map")
            backup = api.world.backup()
            for _ in range(3):
                api.change("mrjobs", KEY, {"metadata": {"labels": {"touched": str(api.world.revision)}}})
            newest = api.world.revision
            known = cluster.operator.jobs
            await waiting.eventually(lambda: known.get(KEY)["metadata"]["resourceVersion"] == str(newest))
            api.restore(backup)
            await Resync(cluster.client, known, ()).run_once()
            version = known.get(KEY)["metadata"]["resourceVersion"]
    return [] if int(version) < newest else ["the version before the restore is kept for ever"]


async def a_pod_that_is_labelled_as_a_task_of_a_step_that_is_not_there(api, _tmp):
    async with cluster_of(api) as cluster:
        job = api.add(mrjob())
        uid = job["metadata"]["uid"]
        labels = {"job-uid": uid, "task-type": "reduce", "task-index": "7", "attempt": "1", "step": "31"}
        owner = {"apiVersion": names.API_VERSION, "kind": "MRJob", "name": "wordcount", "uid": uid, "controller": True}
        named = {f"boathouse.dev/{name}": value for name, value in labels.items()}
        api.add(manifests.pod("rogue", node="n1", labels=named, owner=owner, phase="Running"))
        return await ends(cluster)


async def a_status_of_a_newer_version(api, _tmp):
    async with cluster_of(api) as cluster:
        strange = {"phase": "Rebalancing", "conditions": [{"type": "X", "status": "Maybe"}], "currentStep": 9}
        api.add(mrjob() | {"status": strange})
        return await ends(cluster)


async def a_job_that_cannot_be_processed(api, _tmp):
    async with cluster_of(api) as cluster:
        api.add(mrjob())
        with mock.patch.object(planner, "plan", side_effect=IndexError("an object that cannot be represented")):
            async with cluster.running():
                await waiting.eventually(lambda: failing(cluster))
        admitted = [
            condition["reason"]
            for condition in cluster.status.get("conditions") or ()
            if condition["type"] == "Admitted"
        ]
    return [] if admitted == ["SetAside"] else ["nobody is told"]


class _Part:
    def __init__(self):
        self.value = 0

    def dump(self):
        return {"value": self.value}

    def load(self, state):
        self.value = state["value"] + 0


async def a_part_of_what_was_learnt_that_is_malformed(api, _tmp):
    plain = b'{"a": {"value": "x"}, "b": {"value": 8}}'
    content = {learned.KEY: base64.b64encode(gzip.compress(plain)).decode()}
    metadata = {"name": learned.NAME, "namespace": "boathouse-system"}
    api.add({"kind": "ConfigMap", "metadata": metadata, "binaryData": content})
    parts = {"a": _Part(), "b": _Part()}
    async with api.client() as client:
        try:
            await learned.SavedState(client, "boathouse-system", parts, lambda: True).load()
        except Exception as error:  # noqa: BLE001 - it would end the leader
            return [error]
    return [] if (parts["a"].value, parts["b"].value) == (0, 8) else ["a part was lost for another's fault"]


async def a_bundle_of_authorities_that_somebody_edited(api, _tmp):
    async with api.client() as client:
        bundles = certificates.Bundles(client, namespace="ours", replica="a", now=lambda: dt.datetime.now(dt.UTC))
        await bundles.add("A")
        await bundles.ensure("demo")
        api.change("configmaps", f"demo/{names.PROGRESS_CA_CONFIG_MAP}", {"data": {names.PROGRESS_CA_KEY: "forged"}})
        await bundles.refresh()
    found = api.get("configmaps", f"demo/{names.PROGRESS_CA_CONFIG_MAP}")["data"][names.PROGRESS_CA_KEY]
    return [] if found == "A" else [found]


async def an_api_server_that_fails_once_when_leading_begins(api, _tmp):
    api.add(manifests.pod("op-1", namespace="boathouse-system"))
    api.fail_next("list pods", status=503, reason="ServiceUnavailable")
    async with api.client() as client:
        options = types.SimpleNamespace(config=types.SimpleNamespace(namespace="boathouse-system"), identity="op-1")
        itself = types.SimpleNamespace(_context=types.SimpleNamespace(api=client, options=options))
        try:
            await leader.Leader._mark_leader(itself)
        except errors.ClusterError as error:
            return [error]
    return []


async def counter_lines_that_java_would_not_parse(_api, _tmp):
    kept = counters.CounterSet()
    pump = command.StderrPump(None, count=kept.add_users, status=kept.set_status, passed_on=NOWHERE)
    for amount in ("--5", "9" * 5000, "99999999999999999999", "²", "1"):
        try:
            pump._take(f"reporter:counter:g,n,{amount}\n".encode())
        except ValueError as error:
            return [error]
    return [] if kept.values() == {"g": {"n": 1}} else [kept.values()]


# Guards, and how each is broken


def without_bounds_of_results(patch):
    patch.setattr(results, "read", lambda text: msgspec.json.decode(text, type=contract.TaskResult) if text else None)
    patch.setattr(contract, "clamp", lambda amount: amount)


def without_a_status_without_counters(patch):
    patch.setattr(job_state, "without_free_parts", lambda known: known)


def without_setups_word(patch):
    patch.setattr(steps, "owned_digests", lambda *_: {splits.encode(split_plan(1)).digest})


def without_a_limit_of_jobs(patch):
    patch.setattr(admission.Admission, "admits", lambda *_: True)


def without_backoff_from_conflicts(patch):
    patch.setattr(reconciler, "CONFLICTS_AT_ONCE", 10**9)


def without_belief_in_later_reads(patch):
    whole = object_store.ObjectStore.put
    patch.setattr(object_store.ObjectStore, "put", lambda self, body, _began=None: whole(self, body))


def without_a_look_at_labels(patch):
    patch.setattr(steps, "existing", lambda pods, *_: tuple(pods))


def without_tolerance(patch):
    patch.setattr(status_codec.StatusCodec, "read", lambda codec, status: codec._adapter.validate_python(status or {}))


def without_setting_jobs_aside(patch):
    async def nothing(*_):
        pass

    patch.setattr(reconciler.Reconciler, "_set_aside", nothing)


def without_a_check_of_parts(patch):
    patch.setattr(learned, "_load_part", lambda _, part, raw: part.load(msgspec.json.decode(raw)))


def without_a_look_at_published_bundles(patch):
    patch.setattr(certificates.Bundles, "_restore", certificates.Bundles.ensure)


def without_another_attempt(patch):
    async def once(call, **_):
        return await call()

    patch.setattr(retries, "until_done", once)


def without_bounds_of_amounts(patch):
    def parse(text):
        group, name, amount = text.split(",")
        return command.Count(group, name, int(amount))

    patch.setattr(command, "parse_counter", parse)


GUARDS = {
    "results-in-bounds": Guard(a_result_with_a_counter_beyond_64_bits, without_bounds_of_results),
    "refused-status": Guard(a_status_that_is_refused_for_its_counters, without_a_status_without_counters),
    "plan-vouched-for": Guard(a_plan_that_somebody_planted, without_setups_word),
    "unfinished-jobs": Guard(more_unfinished_jobs_than_a_namespace_may_have, without_a_limit_of_jobs),
    "conflict-backoff": Guard(a_status_whose_every_write_conflicts, without_backoff_from_conflicts),
    "etcd-restore": Guard(a_restore_of_etcd, without_belief_in_later_reads),
    "task-labels": Guard(a_pod_that_is_labelled_as_a_task_of_a_step_that_is_not_there, without_a_look_at_labels),
    "tolerant-status": Guard(a_status_of_a_newer_version, without_tolerance),
    "job-set-aside": Guard(a_job_that_cannot_be_processed, without_setting_jobs_aside),
    "learned-by-part": Guard(a_part_of_what_was_learnt_that_is_malformed, without_a_check_of_parts),
    "authorities-restored": Guard(a_bundle_of_authorities_that_somebody_edited, without_a_look_at_published_bundles),
    "leading-retried": Guard(an_api_server_that_fails_once_when_leading_begins, without_another_attempt),
    "counter-amounts": Guard(counter_lines_that_java_would_not_parse, without_bounds_of_amounts),
}
