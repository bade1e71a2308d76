"""Volumes for the scheduler: a filter of the cycle, reservations for pods, and errors of claims."""

import collections
import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from typing_extensions import override

from boathouse.cluster import views
from boathouse.scheduling.pods import facts
from boathouse.scheduling.pods.states import PendingReason
from boathouse.scheduling.volumes import rules
from boathouse_policies import framework, model

CLAIM_NOT_BOUND, NOT_OWNED, NO_CLASS = "VolumeClaimNotBound", "VolumeClaimNotOwned", "StorageClassNotFound"
_KEPT = 256

Revisions: TypeAlias = dict[tuple[str, str], int]
"""(kind, name) of objects that were written for claims that are not bound yet, with their resourceVersion."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Reservation of a pod's volumes, until the watch confirms the pod on its node."""

    node: model.NodeName
    claims: tuple[str, ...]
    bindings: rules.Bindings


Mounted: TypeAlias = tuple[model.NodeName, tuple[str, ...]]  # a node, and the claims and disks that a pod mounts there


class Mounts:
    """Indexes of pods with claims, by node and by claim."""

    def __init__(self) -> None:
        self.version = 0
        self._nodes: dict[model.NodeName, dict[model.TaskId, tuple[str, ...]]] = {}
        self._users: dict[str, dict[model.TaskId, None]] = {}

    def replace(self, pod: model.TaskId, former: Mounted | None, mounted: Mounted | None) -> None:
        """Replace the claims that a pod mounts; None: no claims."""
        self.version += 1
        if former is not None:
            _discard(self._nodes, former[0], pod)
            for claim in former[1]:
                _discard(self._users, claim, pod)
        if mounted is not None:
            self._nodes.setdefault(mounted[0], {})[pod] = mounted[1]
            for claim in mounted[1]:
                self._users.setdefault(claim, {})[pod] = None

    def on(self, node: model.NodeName, *, but: model.TaskId | None = None) -> set[str]:
        """Return the claims that pods other than this one mount on a node."""
        return {claim for pod, claims in self._nodes.get(node, {}).items() if pod != but for claim in claims}

    def used_by_others(self, claims: Iterable[str], pod: model.TaskId | None = None) -> bool:
        """Return whether a pod other than this one mounts any of the claims."""
        return any(self._users.get(claim, {}).keys() - {pod} for claim in claims)


class VolumeBook(framework.Filter):
    """Constraints of volumes, including reservations that the API server does not show yet."""

    by_shape = True  # claims are constraints

    def __init__(self, objects: rules.Storage) -> None:
        self.storage, self.mounts = objects, Mounts()
        self.is_needed = False  # whether pods with claims were to be scheduled; the filter is skipped until then
        self._taken: dict[str, str] = {}
        self._promises: collections.Counter[str] = collections.Counter()  # by volume, because pods may share a claim
        self._version = 0
        self._judge: tuple[int, rules.Judge] | None = None
        self._judged: dict[tuple[str, ...], tuple[Sequence[model.Node], tuple[int, int], list[str | None]]] = {}

    def changed(self) -> None:
        """Invalidate cached results after a change of storage."""
        self._version += 1

    def promise(self, task: model.TaskId, claims: tuple[str, ...], node: model.Node) -> Promise | None:
        """Reserve a pod's volumes on a node; return None if one of them was reserved since the cycle."""
        bindings = rules.IN_USE if self._is_used(claims, task) else self._on(claims, node, task)
        if isinstance(bindings, str):
            return None
        self._taken.update({volume: claim for claim, volume in bindings.volumes})
        self._promises.update({volume for _, volume in bindings.volumes})
        self._version += 1
        return Promise(node=node.name, claims=claims, bindings=bindings)

    def release(self, promise: Promise) -> None:
        """Release a reservation that is fulfilled or void."""
        for volume in {volume for _, volume in promise.bindings.volumes}:
            self._promises[volume] -= 1
            if not self._promises[volume]:
                del self._promises[volume], self._taken[volume]
        self._version += 1

    def problem(self, pod: facts.PodFacts) -> PendingReason | None:
        """Return why a pod's claims cannot be mounted on any node, with the field; None if that depends on the node."""
        return next(filter(None, (self._problem(pod, field, claim) for field, claim in pod.claims_by_field)), None)

    def _problem(self, pod: facts.PodFacts, field: str, key: str) -> PendingReason | None:
        namespace, _, name = key.partition("/")
        claim, is_ephemeral = self.storage.claims.get(key), field.endswith(".ephemeral")
        about = f'{field}: the PersistentVolumeClaim "{name}"'
        if claim is None:
            who = "the ephemeral volume controller has not created it yet" if is_ephemeral else "create it"
            return PendingReason("VolumeClaimNotFound", f'{about} does not exist in namespace "{namespace}": {who}')
        by = self.storage.classes.get(claim.storage_class)
        owner, volume = claim.metadata.controller, claim.spec.volume_name
        is_own, is_unbound = owner is not None and owner.uid == pod.metadata.uid, not claim.is_bound
        is_late = by is not None and by.waits_for_consumer
        of_class, why = f'is of the class "{claim.storage_class}"', "although its StorageClass binds immediately"
        problems = (
            (is_ephemeral and not is_own, NOT_OWNED, "was not created for this pod: delete it, or rename the volume"),
            (claim.metadata.deletion_timestamp is not None, "VolumeClaimDeleted", "is being deleted"),
            (claim.status.phase == "Lost", "VolumeClaimLost", f'has lost its volume "{volume}"'),
            (is_unbound and volume, CLAIM_NOT_BOUND, f'is not bound yet to the volume "{volume}"'),
            (is_unbound and claim.storage_class and by is None, NO_CLASS, f"{of_class}, which does not exist"),
            (is_unbound and not is_late, CLAIM_NOT_BOUND, f"is not bound yet, {why}: check its events"),
        )
        return next((PendingReason(reason, f"{about} {what}") for holds, reason, what in problems if holds), None)

    @override
    def concerns(self, pending: framework.PendingClass) -> bool:
        return bool(pending.task_class.constraints.claims)

    @override
    def mask(
        self, pending: framework.PendingClass, state: framework.CycleState, where: framework.Where
    ) -> model.BoolVector | None:
        refusals = self._refusals(pending.task_class.constraints.claims, state.view.nodes)
        return np.array([reason is None for reason in refusals], np.bool_)[where]

    @override
    def refusals(
        self, pending: framework.PendingClass, state: framework.CycleState, among: model.BoolVector
    ) -> Sequence[model.Refusal]:
        refusals = self._refusals(pending.task_class.constraints.claims, state.view.nodes)
        counts = collections.Counter(filter(None, itertools.compress(refusals, among.tolist())))
        return [model.Refusal(reason=reason, nodes=nodes) for reason, nodes in counts.items()]

    def _refusals(self, claims: tuple[str, ...], nodes: Sequence[model.Node]) -> list[str | None]:
        former, version = self._judged.get(claims), (self._version, self.mounts.version)
        if former is not None and former[0] is nodes and former[1] == version:
            return former[2]
        if len(self._judged) >= _KEPT:
            self._judged.clear()
        if self._is_used(claims, None):
            refusals: list[str | None] = [rules.IN_USE] * len(nodes)
        else:
            refusals = [outcome if isinstance(outcome := self._on(claims, node, None), str) else None for node in nodes]
        self._judged[claims] = (nodes, version, refusals)
        return refusals

    def _is_used(self, claims: tuple[str, ...], task: model.TaskId | None) -> bool:
        """Return whether another pod than this one mounts a claim that only one pod may use (ReadWriteOncePod)."""
        existing = self.storage.claims
        for_one = [key for key in claims if key in existing and views.ONE_POD in existing[key].spec.access_modes]
        return self.mounts.used_by_others(for_one, task)

    def _on(self, claims: tuple[str, ...], node: model.Node, task: model.TaskId | None) -> rules.Bindings | str:
        judge, mounted = self._judge_now(), self.mounts.on(node.name, but=task)
        bindings = judge.bindings(claims, node)
        if not isinstance(bindings, str) and judge.too_many(claims, node.name, mounted):
            return rules.TOO_MANY
        return bindings

    def _judge_now(self) -> rules.Judge:
        if self._judge is None or self._judge[0] != self._version:
            self._judge = self._version, rules.Judge(self.storage, self._taken)
        return self._judge[1]


def _discard(index: dict[Any, dict[model.TaskId, Any]], key: str, pod: model.TaskId) -> None:
    del index[key][pod]
    if not index[key]:
        del index[key]
