"""Guards of what one tenant's cheap objects cost the others: room on nodes, and time of the loop."""

from __future__ import annotations

import heapq

from boathouse.cluster import views, wire
from boathouse.resources.config import TenantLimits
from boathouse.scheduling.pods import requests
from boathouse.scheduling.volumes import book as volume_book, rules
from boathouse.services.frame import status_writer
from boathouse_policies import model
from tests.builders import manifests
from tests.builders.operators.schedulers import scheduling
from tests.wire import waiting
from tests.wire.guards import Guard

DRIVER = "example.com/d"


# Scenarios: each returns what broke


async def a_small_pod_with_invented_resources(api, _tmp):
    invented = {f"example.com/r{i}": "1" for i in range(65)}
    api.add(manifests.node("n1", cpu="4"))
    container = {"name": "c", "resources": {"requests": {"cpu": "1", **invented}}}
    api.add(manifests.pod("small", scheduler="none", node="n1", containers=[container]))
    async with scheduling(api) as w:
        api.add(manifests.pod("good", cpu="3"))
        await waiting.eventually(lambda: "demo/good" in w.placed() or w.condition("demo/good"))
        return [] if "demo/good" in w.placed() else ["the node counts as full"]


class _Looked(dict):
    looks = 0

    def values(self):
        self.looks += 1
        return super().values()


async def a_pod_whose_claims_wait_for_their_volumes(_api, _tmp):
    by = views.ClassView(
        metadata=wire.ObjectMeta(name="late"), provisioner=DRIVER, volume_binding_mode="WaitForFirstConsumer"
    )
    spec, meta = views.ClaimSpec(storage_class_name="late"), wire.ObjectMeta(name="c", namespace="demo")
    known = rules.Storage(
        claims={"demo/c": views.ClaimView(metadata=meta, spec=spec)},
        volumes=_Looked(),
        classes={"late": by},
        csi_nodes={},
        drivers={},
        capacities={},
        attachments={},
    )
    nodes = [model.Node(name=model.NodeName(f"n{i}"), allocatable=model.Resources()) for i in range(20)]
    volume_book.VolumeBook(known)._refusals(("demo/c",), nodes)
    looks = known.volumes.looks
    return [] if looks == 1 else [f"all volumes were gone through {looks} times for {len(nodes)} nodes"]


async def many_jobs_whose_statuses_change(_api, _tmp):
    now_s, asked, written = 0.0, 0, 0
    statuses = status_writer.StatusShare(TenantLimits().status_writes_per_second, lambda: now_s)
    due = [(0.0, f"demo/j{i}") for i in range(3000)]
    while due[0][0] < 10.0:
        now_s, key = heapq.heappop(due)
        asked += 1
        wait_s = statuses.take(key, is_urgent=True)
        written += not wait_s
        heapq.heappush(due, (now_s + max(wait_s or 10.0, 0.05), key))
    return [] if asked < 2 * written else [f"{asked} looks at jobs for {written} statuses"]


# What takes each correction away


def with_no_more_than_64_resources(patch):
    whole = requests.pod_requests

    def refused(pod):
        asked = whole(pod)
        requests.check_variety(asked)
        return asked

    patch.setattr(requests, "pod_requests", refused)


def with_a_look_at_all_volumes_for_each_node(patch):
    patch.setattr(volume_book.VolumeBook, "_judge_now", lambda book: rules.Judge(book.storage, {}))


def with_no_turns(patch):
    whole = status_writer.StatusShare.take

    def take(self, key, *, is_urgent):
        wait_s = whole(self, key, is_urgent=is_urgent)
        self.forget(key)
        return wait_s

    patch.setattr(status_writer.StatusShare, "take", take)


GUARDS = {
    "invented-resources": Guard(a_small_pod_with_invented_resources, with_no_more_than_64_resources),
    "claims-by-one-look": Guard(a_pod_whose_claims_wait_for_their_volumes, with_a_look_at_all_volumes_for_each_node),
    "turns-of-statuses": Guard(many_jobs_whose_statuses_change, with_no_turns),
}
