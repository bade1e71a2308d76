"""Rules for a pod's claims: which nodes can mount them, and what must be written before the pod is bound. Pure.

The rules are kube-scheduler's (plugins VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits, 1.36). The
node must be able to attach every bound volume. A claim that waits for its first consumer gets the smallest available
volume that the node can attach, or is provisioned there. A node has a maximum of volumes per driver.
"""

import collections
import dataclasses
import sys
from collections.abc import Collection, Iterable, Mapping

from boathouse.cluster import views, wire
from boathouse.scheduling.pods import requests, translate
from boathouse_policies import model
from boathouse_policies.framework import eligibility as static

NO_SUCH_CLAIM = "node(s) could not be judged: a PersistentVolumeClaim of the pod does not exist"
UNREACHABLE = "node(s) didn't match PersistentVolume's node affinity"
WRONG_ZONE = "node(s) had no available volume zone"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
VOLUME_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
TOO_MANY = "node(s) exceed max volume count"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_ZONE = "topology.kubernetes.io/zone"
_OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
_TOPOLOGY = {
    _ZONE: _ZONE,
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
    _OLD_ZONE: _ZONE,
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_SEVERAL = "__"  # separates the zones of a volume that spans several


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Objects of storage by name (claims and capacities by namespace/name), which the watches keep current."""

    claims: Mapping[str, views.ClaimView] = dataclasses.field(default_factory=dict)
    volumes: Mapping[str, views.VolumeView] = dataclasses.field(default_factory=dict)
    classes: Mapping[str, views.ClassView] = dataclasses.field(default_factory=dict)
    csi_nodes: Mapping[str, views.CsiNodeView] = dataclasses.field(default_factory=dict)
    drivers: Mapping[str, views.CsiDriverView] = dataclasses.field(default_factory=dict)
    capacities: Mapping[str, views.CapacityView] = dataclasses.field(default_factory=dict)
    attachments: Mapping[str, views.AttachmentView] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bindings:
    """Writes that a pod's claims need before the pod is bound to a node."""

    volumes: tuple[tuple[str, str], ...] = ()  # (claim, volume) of available volumes to bind
    provisions: tuple[str, ...] = ()  # claims whose volume is to be provisioned for the node


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    """A claim that waits for its first consumer, with what is independent of the node."""

    claim: views.ClaimView
    reserved: views.VolumeView | None
    at_hand: tuple[views.VolumeView, ...]  # available volumes that fit it, the smallest first
    is_made_anywhere: bool  # whether a volume can be provisioned for it on every node


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Requirements of a pod's claims that are independent of the node, computed once for all nodes."""

    refusal: str | None = None  # why no node can mount the claims; None if a node may
    bound: tuple[views.ClaimView, ...] = ()
    waiting: tuple[_Waiting, ...] = ()  # other claims, in the order in which they get volumes
    handles: frozenset[tuple[str, str]] = frozenset()  # (driver, volume) of each claim and disk that is counted


class Judge:
    """Determines for a set of claims which nodes can mount them, and the writes that this needs.

    It has indexes of storage, which are valid until storage or reservations change. `taken` has the claims by volume of
    reservations that the API server does not show yet.
    """

    def __init__(self, objects: Storage, taken: Mapping[str, str]) -> None:
        self._objects, self._taken = objects, taken
        self._questions: dict[tuple[str, ...], Question] = {}
        self._free: list[views.VolumeView] = []
        self._reserved: dict[tuple[str, str], list[views.VolumeView]] = {}  # by the claim that they are reserved for
        self._attached: dict[str, set[tuple[str, str]]] = {}  # (driver, volume) by node
        for volume in objects.volumes.values():
            if (reference := volume.spec.claim_ref) is None:
                self._free.append(volume)
            else:
                self._reserved.setdefault((reference.namespace, reference.name), []).append(volume)
        for attachment in objects.attachments.values():
            spec, attached = attachment.spec, objects.volumes.get(attachment.spec.source.persistent_volume_name)
            if spec.attacher and attached is not None and attached.spec.csi is not None:
                handle = spec.attacher, attached.spec.csi.volume_handle
                self._attached.setdefault(spec.node_name, set()).add(handle)

    def question(self, claims: Iterable[str]) -> Question:
        """Return the requirements of claims."""
        key = tuple(claims)
        if key not in self._questions:
            self._questions[key] = self._question(key)
        return self._questions[key]

    def _question(self, claims: tuple[str, ...]) -> Question:
        listed = [self._objects.claims.get(key) for key in claims if translate.handle_of(key) is None]
        existing = [claim for claim in listed if claim is not None]
        if len(existing) < len(listed):
            return Question(refusal=NO_SUCH_CLAIM)
        waiting = [claim for claim in existing if not claim.is_bound]
        if any(claim.spec.volume_name or not self._class_of(claim).waits_for_consumer for claim in waiting):
            return Question(refusal=NO_VOLUME)  # another controller binds it, and has not done so yet
        waiting.sort(key=lambda claim: (_requested_bytes(claim), claim.metadata.key))
        return Question(
            bound=tuple(claim for claim in existing if claim.is_bound),
            waiting=tuple(map(self._waiting, waiting)),
            handles=frozenset(self._handles(claims)),
        )

    def _waiting(self, claim: views.ClaimView) -> _Waiting:
        meta, by = claim.metadata, self._class_of(claim)
        reserved = self._reserved.get((meta.namespace, meta.name), ())
        at_hand = [
            volume
            for volume in self._free
            if _is_at_hand(volume, claim)
            and _has_shape(volume, claim)
            and self._taken.get(volume.metadata.name, meta.key) == meta.key
        ]
        return _Waiting(
            claim=claim,
            reserved=next(
                (volume for volume in reserved if _is_for(volume, claim) and _has_shape(volume, claim)), None
            ),
            at_hand=tuple(sorted(at_hand, key=lambda volume: (_capacity(volume), volume.metadata.name))),
            is_made_anywhere=_provisions(by) and not by.allowed_topologies and not self._has_capacities(by),
        )

    def bindings(self, claims: Iterable[str], node: model.Node) -> Bindings | str:
        """Return the writes that a pod with these claims needs on a node, or why the node cannot mount them."""
        question = self.question(claims)
        if question.refusal is not None:
            return question.refusal
        refusals = (self._of_bound(claim, node) for claim in question.bound)
        return next(filter(None, refusals), None) or self._for_waiting(question.waiting, node)

    def _class_of(self, claim: views.ClaimView) -> views.ClassView:
        return self._objects.classes.get(claim.storage_class, views.ClassView())

    def _of_bound(self, claim: views.ClaimView, node: model.Node) -> str | None:
        if (volume := self._objects.volumes.get(claim.spec.volume_name)) is None:
            return VOLUME_GONE
        if not reaches(volume, node):
            return UNREACHABLE
        return None if _in_zone(volume, node) else WRONG_ZONE

    def _for_waiting(self, claims: Iterable[_Waiting], node: model.Node) -> Bindings | str:
        chosen: dict[str, str] = {}  # volume to claim
        provisions = []
        for waiting in claims:
            selected = waiting.claim.metadata.annotations.get(views.SELECTED_NODE)
            if selected is not None and selected != node.name:
                return NO_VOLUME  # a provisioner works for another node, until it gives up
            volume = None if selected is not None else _match(waiting, node, chosen)
            if volume is not None:
                chosen[volume.metadata.name] = waiting.claim.metadata.key
            elif not waiting.is_made_anywhere and (refusal := self._cannot_provision(waiting.claim, node)) is not None:
                return refusal
            else:
                provisions.append(waiting.claim.metadata.key)
        return Bindings(
            volumes=tuple((claim, volume) for volume, claim in chosen.items()), provisions=tuple(provisions)
        )

    def _cannot_provision(self, claim: views.ClaimView, node: model.Node) -> str | None:
        by = self._class_of(claim)
        if not _provisions(by) or not _allows(by.allowed_topologies, node):
            return NO_VOLUME
        if not self._has_capacities(by):
            return None
        is_enough = any(
            capacity.storage_class_name == by.metadata.name
            and _size_bytes(capacity.maximum_volume_size or capacity.capacity or "-1", otherwise=-1)
            >= _requested_bytes(claim)
            and _selects(capacity.node_topology, node.labels)
            for capacity in self._objects.capacities.values()
        )
        return None if is_enough else NO_SPACE

    def _has_capacities(self, by: views.ClassView) -> bool:
        """Return whether the driver of a class says where it has room."""
        driver = self._objects.drivers.get(by.provisioner)
        return driver is not None and driver.spec.storage_capacity

    def _handles(self, claims: Iterable[str]) -> set[tuple[str, str]]:
        """Return (driver, volume) of each claim and disk that is counted; for a missing volume, the claim's name."""
        return set(filter(None, (translate.handle_of(key) or self._handle_of_claim(key) for key in claims)))

    def _handle_of_claim(self, key: str) -> tuple[str, str] | None:
        if (claim := self._objects.claims.get(key)) is None:
            return None
        if (volume := self._objects.volumes.get(claim.spec.volume_name)) is None:
            provisioner = self._class_of(claim).provisioner
            return translate.MIGRATED.get(provisioner, provisioner), key
        if volume.spec.csi is not None:
            return volume.spec.csi.driver, volume.spec.csi.volume_handle
        zones = volume.metadata.labels.get(_OLD_ZONE) or volume.metadata.labels.get(_ZONE)
        return translate.attached(volume.spec, zones=zones.split(_SEVERAL) if zones else [])

    def _limits(self, node: str) -> dict[str, int]:
        csi = self._objects.csi_nodes.get(node, views.CsiNodeView())
        limited = ((driver.name, driver.allocatable) for driver in csi.spec.drivers or ())
        return {name: most.count for name, most in limited if most is not None and most.count is not None}

    def too_many(self, claims: Iterable[str], node: str, mounted: Iterable[str]) -> bool:
        """Return whether a pod with these claims would exceed a limit of a node with the mounted claims.

        Like kube-scheduler: a volume that is attached to the node, but mounted by no pod there, counts as attached and
        again for the pod, because it may be detached at any moment and then has to be attached again.
        """
        if not (limits := self._limits(node)):
            return False
        mounts = self._handles(mounted)
        there = collections.Counter(driver for driver, _ in mounts | self._attached.get(node, set()))
        added = collections.Counter(driver for driver, _ in self.question(claims).handles - mounts)
        return any(driver in limits and there[driver] + count > limits[driver] for driver, count in added.items())


def _match(waiting: _Waiting, node: model.Node, chosen: Collection[str]) -> views.VolumeView | None:
    """Return the volume reserved for a claim, else the smallest available one that fits and the node can attach."""
    if waiting.reserved is not None and waiting.reserved.metadata.name not in chosen:
        return waiting.reserved if reaches(waiting.reserved, node) else None
    fitting = (volume for volume in waiting.at_hand if volume.metadata.name not in chosen and reaches(volume, node))
    return next(fitting, None)


def reaches(volume: views.VolumeView, node: model.Node) -> bool:
    """Return whether a node matches the node affinity of a volume."""
    if (affinity := volume.spec.node_affinity) is None or affinity.required is None:
        return True
    try:
        terms = translate.terms(affinity.required)
    except ValueError:  # an operator that is not known
        return False
    return static.selected(model.Constraints(affinity=terms), node)


def _in_zone(volume: views.VolumeView, node: model.Node) -> bool:
    """Return whether a node is in a volume's zone and region; True for a node without these labels."""
    return not _TOPOLOGY.keys() & node.labels or all(
        node.labels.get(key, node.labels.get(_TOPOLOGY[key])) in value.split(_SEVERAL)
        for key, value in volume.metadata.labels.items()
        if key in _TOPOLOGY
    )


def _is_for(volume: views.VolumeView, claim: views.ClaimView) -> bool:
    """Return whether a volume that is reserved for a claim of this name is reserved for this claim."""
    return volume.spec.claim_ref is not None and volume.spec.claim_ref.uid in ("", claim.metadata.uid)


def _has_shape(volume: views.VolumeView, claim: views.ClaimView) -> bool:
    return (
        volume.metadata.deletion_timestamp is None
        and volume.spec.volume_mode == claim.spec.volume_mode
        and volume.spec.volume_attributes_class_name == claim.spec.volume_attributes_class_name
        and _capacity(volume) >= _requested_bytes(claim)
    )


def _is_at_hand(volume: views.VolumeView, claim: views.ClaimView) -> bool:
    return (
        volume.status.phase == "Available"
        and volume.spec.storage_class_name == claim.storage_class
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
        and (claim.spec.selector is None or _selects(claim.spec.selector, volume.metadata.labels))
    )


def _capacity(volume: views.VolumeView) -> int:
    return _size_bytes(volume.spec.capacity.get("storage", "0"), otherwise=0)


def _requested_bytes(claim: views.ClaimView) -> int:
    return _size_bytes(claim.spec.resources.requests.get("storage", "0"), otherwise=sys.maxsize)


def _size_bytes(text: str, *, otherwise: int) -> int:
    """Return a size in bytes, or a default for an invalid quantity, so that one object cannot stop a cycle."""
    try:
        return requests.size_bytes(text)
    except ValueError:
        return otherwise


def _selects(selector: wire.LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return whether a label selector matches; an absent one matches nothing, an empty one everything."""
    if selector is None:
        return False
    try:
        expressions = tuple(map(translate.expression, selector.match_expressions))
    except ValueError:  # an operator that is not known
        return False
    constraints = model.Constraints(
        node_selector=tuple(selector.match_labels.items()),
        affinity=(model.AffinityTerm(expressions=expressions),) if expressions else None,
    )
    return static.selected(
        constraints, model.Node(name=model.NodeName(""), allocatable=model.Resources(), labels=labels)
    )


def _provisions(by: views.ClassView) -> bool:
    return by.provisioner not in ("", views.NO_PROVISIONER)


def _allows(terms: tuple[views.TopologyTerm, ...], node: model.Node) -> bool:
    return not terms or any(
        bool(term.match_label_expressions)
        and all(node.labels.get(expression.key) in expression.values for expression in term.match_label_expressions)
        for term in terms
    )
