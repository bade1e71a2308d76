"""Predicates that are left out or wrong: of each, a few cases about its features must show a difference."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np

from boathouse.scheduling.pods import requests, translate
from boathouse.scheduling.volumes import rules
from boathouse_policies import model
from boathouse_policies.framework import affinity, eligibility as static, judges

CASES = 120


class Mutation(NamedTuple):
    """What replaces an attribute, and the features and number of cases that show it."""

    about: tuple[str, ...]
    owner: object
    attribute: str
    value: Any
    cases: int = CASES


def everywhere(judge: judges.Judge) -> model.BoolVector:
    """Allow all nodes."""
    return np.ones_like(judge._counts[0].domains.exist)


def spread(*also: str, cases: int = CASES, **fields: Any) -> Mutation:
    """Give all topology spread constraints these fields."""
    whole = translate._spread
    replaced = lambda pod, one: whole(pod, msgspec.structs.replace(one, **fields))  # noqa: E731 - a value
    return Mutation(("spread", *also), translate, "_spread", replaced, cases)


# Without `matchLabelKeys` nothing differs here: the API server writes them into the selector of a new pod.
BROKEN = {
    "taints": Mutation(("taints",), static, "untolerated", lambda *_: None),
    "labels": Mutation(("selector",), static, "selected", lambda *_: True),
    "greater-and-less": Mutation(("numbers",), static, "_compare", lambda *_: 0),
    "whole-numbers": Mutation(
        ("numbers",), static, "_whole", lambda text, _spelling: int(text) if text.lstrip("0").isdecimal() else None
    ),
    "host-ports": Mutation(("ports",), model.HostPort, "conflicts", lambda *_: False),
    "init-containers-and-sidecars": Mutation(("init",), requests, "_include_init_containers", lambda *_, **__: None),
    "pod-level-requests": Mutation(("pod-level",), requests, "_override_by_pod_level", lambda *_, **__: None),
    "disks": Mutation(("disks",), translate, "unshared", lambda _: ()),
    "disks-of-csi-drivers": Mutation(("attached",), translate, "attached", lambda *_, **__: None),
    "limits-of-csi-drivers": Mutation(("attached",), rules.Judge, "too_many", lambda *_: False),
    "node-affinity-of-volumes": Mutation(("volume",), rules, "reaches", lambda *_: True),
    "zones-of-volumes": Mutation(("zone",), rules, "_in_zone", lambda *_: True),
    "pod-affinity": Mutation(("near",), judges.Judge, "near", everywhere),
    "first-pod-that-matches-itself": Mutation(
        ("near",),
        judges.Judge,
        "near",
        lambda judge: np.logical_and.reduce([counts.present() for counts in judge._affinity]),
    ),
    "pod-anti-affinity": Mutation(("apart",), judges.Judge, "apart", everywhere),
    "anti-affinity-of-pods-that-are-there": Mutation(("hermits",), judges.Judge, "unforbidden", everywhere),
    "pods-that-are-being-deleted": Mutation(
        ("spread",),
        affinity.Tallies,
        "_selects",
        lambda self, tally, pod: all(self.belongs(pod, one) for one in tally.sets),
    ),
    "namespaces-of-terms": Mutation(
        ("apart", "namespaces"),
        affinity.Tallies,
        "belongs",
        lambda _, pod, pods: pods.selector is not None and affinity.matches(pods.selector, pod.labels),
    ),
    "topology-spread": Mutation(
        ("spread",), judges.SpreadCounts, "even", lambda self: np.ones_like(self.counts.domains.exist)
    ),
    "max-skew": spread(max_skew=5),
    "min-domains": spread(min_domains=1),
    "node-affinity-policy": spread("selector", node_affinity_policy="Honor"),
    "node-taints-policy": spread("taints", cases=600, node_taints_policy="Ignore"),
}
