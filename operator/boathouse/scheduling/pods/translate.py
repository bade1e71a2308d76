"""From Kubernetes' objects to the policies' model: what a pod demands, what a node offers, what is not supported.

Disks that a pod or a volume names itself are translated too. Kubelets hand disks of clouds to CSI drivers, so these
count against the drivers' limits of a node, with the names of their volumes by Kubernetes' rules of migration.
"""

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.scheduling.pods import requests
from boathouse_policies import model

MIGRATED: Final = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
}
"""The CSI driver of each provisioner whose disks it attaches."""
_EBS, _GCE, _AZURE, _CINDER = MIGRATED.values()
_UNSPECIFIED = "UNSPECIFIED"
_NAME_LENGTH = 253
_HANDLE_LENGTH = 512  # of a driver and the name of its volume: the URI of an Azure disk with two long names has 272
_DIGEST_BYTES = 16
_ANY_IP = "0.0.0.0"  # noqa: S104 - Kubernetes' own default, never bound


def attached(source: wire.DiskSource, zones: Sequence[str] = ()) -> tuple[str, str] | None:
    """Return (driver, volume) of a disk that a CSI driver attaches; None without one. A volume's label names zones."""
    if source.aws_elastic_block_store is not None:
        return _EBS, source.aws_elastic_block_store.volume_id.rpartition("/")[2]
    if source.gce_persistent_disk is not None:
        first = zones[0] if zones else _UNSPECIFIED
        place = f"regions/{first.rpartition('-')[0]}" if len(zones) > 1 else f"zones/{first}"
        return _GCE, f"projects/{_UNSPECIFIED}/{place}/disks/{source.gce_persistent_disk.pd_name}"
    if source.azure_disk is not None:
        return _AZURE, source.azure_disk.disk_uri
    return None if source.cinder is None else (_CINDER, source.cinder.volume_id)


def attached_inline(spec: wire.PodSpec) -> Iterator[str]:
    """Yield each disk that a pod names itself and that a CSI driver attaches, as driver/volume."""
    for volume in spec.volumes:
        if (disk := attached(volume)) is not None:
            yield "/".join(disk)[:_HANDLE_LENGTH]


def handle_of(key: str) -> tuple[str, str] | None:
    """Return (driver, volume) of a disk's key; None for namespace/name of a claim, as namespaces have no dots."""
    driver, _, volume = key.partition("/")
    return (driver, volume) if "." in driver else None


def unshared(spec: wire.PodSpec) -> Iterator[model.HostPort]:
    """Yield the disks of which a node has one: its pods share them at most for reading, EBS volumes never."""
    for volume in spec.volumes:
        if (gce := volume.gce_persistent_disk) is not None:
            yield _unshared("gce", gce.pd_name, is_shared=gce.read_only)
        if (ebs := volume.aws_elastic_block_store) is not None:
            yield _unshared("ebs", ebs.volume_id, is_shared=False)
        if (iscsi := volume.iscsi) is not None:
            yield _unshared("iscsi", iscsi.iqn, is_shared=iscsi.read_only)
        if (rbd := volume.rbd) is not None:
            for monitor in rbd.monitors:
                yield _unshared("rbd", f"{monitor}/{rbd.pool}/{rbd.image}", is_shared=rbd.read_only)


def _unshared(kind: str, name: str, *, is_shared: bool) -> model.HostPort:
    """Return a disk; a long name is its start and its digest, because pods on nodes keep a bounded part of it only."""
    protocol = f"{model.DISK}{kind}/{name}"
    if len(protocol) > _NAME_LENGTH:
        digest = hashlib.blake2b(protocol.encode(), digest_size=_DIGEST_BYTES).hexdigest()
        protocol = protocol[: _NAME_LENGTH - len(digest)] + digest
    return model.HostPort(port=0, protocol=protocol, is_shared=is_shared)


COUNTED = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})  # resources of every node; others are extended

_DEFAULT_MAX_PODS = 110


def resources_of(amounts: Mapping[str, int]) -> model.Resources:
    """Return nano-units by resource name as resources, rounded up; pods with equal requests share the value."""
    return _resources_of(tuple(amounts.items()))


@functools.lru_cache(maxsize=256)
def _resources_of(amounts: tuple[tuple[str, int], ...]) -> model.Resources:
    amount_of = dict(amounts)
    return model.Resources.of(
        cpu_milli=requests.milli(amount_of.pop("cpu", 0)),
        memory_bytes=requests.ones(amount_of.pop("memory", 0)),
        ephemeral_storage_bytes=requests.ones(amount_of.pop("ephemeral-storage", 0)),
        extended={name: requests.ones(amount) for name, amount in amount_of.items() if name not in COUNTED},
    )


WHOLE_NODE = model.Resources(cpu_milli=model.LARGEST, memory_bytes=model.LARGEST, ephemeral_storage_bytes=model.LARGEST)
"""What a pod is counted for whose requests cannot be computed: more than any node has."""


def manifest_view(manifest: dict[str, Any]) -> wire.PodView:
    """Return a manifest's pod, or raise msgspec.ValidationError. As in the API server, a limit is a request too."""
    for container in (*manifest["spec"]["containers"], *manifest["spec"].get("initContainers", ())):
        resources = container.get("resources", {})
        if resources.get("limits"):
            resources["requests"] = resources["limits"] | resources.get("requests", {})
    return msgspec.convert(manifest, wire.PodView)


def spec_resources(pod: wire.PodView) -> model.Resources:
    """Return the requests of a pod that does not exist yet. Raises ValueError for odd amounts, or too many."""
    amounts = requests.pod_requests(pod)
    requests.check_variety(amounts)
    return resources_of(amounts)


def manifest_resources(manifest: dict[str, Any]) -> model.Resources:
    """Return the requests of a manifest's pod. Raises the errors of both `manifest_view` and `spec_resources`."""
    return spec_resources(manifest_view(manifest))


LIMITS = ("limits.cpu", "limits.ephemeral-storage")  # lines of a ResourceQuota for limits that are no requests


def manifest_limits(manifest: dict[str, Any]) -> dict[str, int]:
    """Return the limits of a manifest's pod by line of `LIMITS`: millicores and bytes.

    A line is left out if a container lacks the limit: a LimitRange may set it, or a quota refuses the pod. Raises
    ValueError if a limit is not a quantity.
    """
    limits = [container.get("resources", {}).get("limits", {}) for container in manifest["spec"]["containers"]]
    amounts = {}
    for line in LIMITS:
        resource = line.removeprefix("limits.")
        if all(resource in container_limits for container_limits in limits):
            total = sum(requests.nano(str(container_limits[resource])) for container_limits in limits)
            amounts[line] = requests.milli(total) if resource == "cpu" else requests.ones(total)
    return amounts


def node(view: wire.NodeView) -> model.Node:
    """Return a node as the policies see it. Raises ValueError for an odd amount, or an unknown effect of a taint."""
    allocatable = {name: requests.nano(amount) for name, amount in view.status.allocatable.items()}
    labels = view.metadata.labels
    return model.Node(
        name=model.NodeName(view.metadata.name),
        allocatable=_floor(allocatable),
        max_pods=allocatable["pods"] // requests.NANO if "pods" in allocatable else _DEFAULT_MAX_PODS,
        labels=labels,
        taints=tuple(
            model.Taint(key=taint.key, value=taint.value, effect=model.TaintEffect(taint.effect))
            for taint in view.spec.taints
        ),
        unschedulable=view.spec.unschedulable,
        ready=view.is_ready,
        features=frozenset(view.status.declared_features),
        server=labels.get(names.LABEL_SERVER),
        rack=labels.get(names.LABEL_RACK),
    )


def unusable(view: wire.NodeView) -> model.Node:
    """Return a node that takes no pod, for one that cannot be translated."""
    return model.Node(
        name=model.NodeName(view.metadata.name),
        allocatable=model.Resources(),
        max_pods=0,
        unschedulable=True,
        ready=False,
    )


def constraints(pod: wire.PodView) -> model.Constraints:
    """Return a pod's hard constraints that are supported. Raises ValueError if an operator or effect is not known."""
    spec = pod.spec
    together = spec.affinity.pod_affinity if spec.affinity else None
    return model.Constraints(
        node_name=model.NodeName(spec.node_name) if spec.node_name else None,
        node_selector=tuple(sorted(spec.node_selector.items())),
        affinity=_affinity(spec.affinity),
        tolerations=tuple(map(_toleration, spec.tolerations)),
        host_ports=host_ports(pod),
        claims=tuple(sorted({*[claim for _, claim in claims_by_field(pod)], *attached_inline(spec)})),
        features=tuple(sorted(_features(spec))),
        pod_affinity=tuple([_pod_term(pod, term) for term in together.required]) if together else (),
        pod_anti_affinity=anti_affinity(pod),
        spread=tuple(
            [
                _spread(pod, constraint)
                for constraint in spec.topology_spread_constraints
                if constraint.when_unsatisfiable == "DoNotSchedule"
            ]
        ),
    )


def anti_affinity(pod: wire.PodView) -> tuple[model.PodTerm, ...]:
    """Return the terms of required anti-affinity, but for `_repeated`. Raises ValueError for an unknown operator."""
    if (affinity := pod.spec.affinity) is None or affinity.pod_anti_affinity is None:
        return ()
    repeated = _repeated(pod)
    return tuple([_pod_term(pod, term) for term in affinity.pod_anti_affinity.required if term != repeated])


def _repeated(pod: wire.PodView) -> wire.PodAffinityTerm | None:
    """Return the term that says what the label `apart` of a pod says: a port of the node already keeps such pods apart.

    Cluster autoscalers read the term. For the scheduler a port is cheaper.
    """
    if (apart := pod.metadata.labels.get(names.LABEL_APART)) is None:
        return None
    return wire.PodAffinityTerm(
        label_selector=wire.LabelSelector(match_labels={names.LABEL_APART: apart}), topology_key=names.HOSTNAME
    )


def _pod_term(pod: wire.PodView, term: wire.PodAffinityTerm) -> model.PodTerm:
    namespaces = term.namespaces or ((pod.metadata.namespace,) if term.namespace_selector is None else ())
    pods = model.PodSet(
        selector=_with_own_labels(pod, selector(term.label_selector), term.match_label_keys, term.mismatch_label_keys),
        namespaces=tuple(sorted(set(namespaces))),
        namespace_selector=selector(term.namespace_selector),
    )
    return _shared(model.PodTerm(topology_key=term.topology_key, pods=pods))


def _with_own_labels(
    pod: wire.PodView, counted: model.Selector | None, match: Sequence[str], mismatch: Sequence[str] = ()
) -> model.Selector | None:
    """Return a selector with the pod's own values of labels; those that the API server has added stay as they are."""
    if counted is None or not (match or mismatch):
        return counted
    labels = pod.metadata.labels
    existing = {(requirement.operator, requirement.key) for requirement in counted.expressions}
    keys = *((model.Operator.IN, key) for key in match), *((model.Operator.NOT_IN, key) for key in mismatch)
    own = [
        model.Expression(key=key, operator=operator, values=(labels[key],))
        for operator, key in keys
        if key in labels and (operator, key) not in existing
    ]
    return model.Selector(expressions=(*counted.expressions, *own))


@functools.lru_cache(maxsize=1024)
def _shared(term: model.PodTerm) -> model.PodTerm:
    """Return one object for equal terms: pods of one owner have the same."""
    return term


def _spread(pod: wire.PodView, constraint: wire.TopologySpreadConstraint) -> model.Spread:
    return model.Spread(
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        selector=_with_own_labels(pod, selector(constraint.label_selector), constraint.match_label_keys),
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=constraint.node_affinity_policy == "Honor",
        honors_taints=constraint.node_taints_policy == "Honor",
    )


def selector(view: wire.LabelSelector | None) -> model.Selector | None:
    """Return a label selector; None selects nothing. Raises ValueError if an operator is not known."""
    if view is None:
        return None
    equal = [
        model.Expression(key=key, operator=model.Operator.IN, values=(value,))
        for key, value in sorted(view.match_labels.items())
    ]
    return model.Selector(expressions=(*equal, *map(expression, view.match_expressions)))


def host_ports(pod: wire.PodView) -> tuple[model.HostPort, ...]:
    """Return the ports of its node that a pod takes, sorted; those that no socket has keep pods and disks apart."""
    sidecars = [init for init in pod.spec.init_containers if init.restart_policy == requests.RESTARTABLE]
    ports = {
        model.HostPort(port=port.host_port, protocol=port.protocol or "TCP", host_ip=port.host_ip or _ANY_IP)
        for container in (*pod.spec.containers, *sidecars)
        for port in container.ports
        if port.host_port
    }
    ports.update(unshared(pod.spec))
    if apart := pod.metadata.labels.get(names.LABEL_APART):
        ports.add(model.HostPort(port=0, protocol=f"apart/{pod.metadata.namespace}/{apart}"))
    return tuple(sorted(ports))


def claims_by_field(pod: wire.PodView) -> Iterator[tuple[str, str]]:
    """Yield each claim, as namespace/name, with the field that names it; an ephemeral volume's is named POD-VOLUME."""
    namespace, name = pod.metadata.namespace, pod.metadata.name
    for volume in pod.spec.volumes:
        if (claim := volume.persistent_volume_claim) is not None:
            yield f"spec.volumes[{volume.name}].persistentVolumeClaim", f"{namespace}/{claim.claim_name}"
        if volume.ephemeral is not None:
            yield f"spec.volumes[{volume.name}].ephemeral", f"{namespace}/{name}-{volume.name}"


def _features(spec: wire.PodSpec) -> Iterator[str]:
    rules = (rule for container in (*spec.containers, *spec.init_containers) for rule in container.restart_policy_rules)
    if any(rule.action == "RestartAllContainers" for rule in rules):
        yield "RestartAllContainersOnContainerExits"
    if spec.host_network and spec.host_users is False:
        yield "UserNamespacesHostNetworkSupport"


def unsupported(pod: wire.PodView) -> str | None:
    """Return the first field of a pod that Boathouse cannot honour, by its path, or None."""
    if pod.spec.resource_claims:
        return "spec.resourceClaims"
    if pod.spec.scheduling_group is not None:
        return "spec.schedulingGroup"
    return None if pod.spec.workload_ref is None else "spec.workloadRef"  # its name in Kubernetes 1.35


def _floor(amounts: Mapping[str, int]) -> model.Resources:
    """Round down, as for what is there: kube-scheduler rounds up here, which promises what a node has not."""
    extended = sorted(amounts.keys() - COUNTED)[: requests.MOST_RESOURCES]
    return model.Resources.of(
        cpu_milli=amounts.get("cpu", 0) // requests.NANO_PER_MILLI,
        memory_bytes=amounts.get("memory", 0) // requests.NANO,
        ephemeral_storage_bytes=amounts.get("ephemeral-storage", 0) // requests.NANO,
        extended={name: amounts[name] // requests.NANO for name in extended},
    )


@functools.lru_cache(maxsize=64)  # most pods have the same
def _toleration(toleration: wire.Toleration) -> model.Toleration:
    return model.Toleration(
        key=toleration.key,
        operator=model.TolerationOperator(toleration.operator or "Equal"),
        value=toleration.value,
        effect=model.TaintEffect(toleration.effect) if toleration.effect else None,
    )


def _affinity(affinity: wire.Affinity | None) -> tuple[model.AffinityTerm, ...] | None:
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
        return None
    return terms(affinity.node_affinity.required)


def terms(selector: wire.NodeSelector) -> tuple[model.AffinityTerm, ...]:
    """Return the ORed terms of a node selector."""
    return tuple(
        model.AffinityTerm(
            expressions=tuple(map(expression, term.match_expressions)), fields=tuple(map(expression, term.match_fields))
        )
        for term in selector.node_selector_terms
    )


def expression(view: wire.Requirement) -> model.Expression:
    """Return a requirement on a label or a field."""
    return model.Expression(key=view.key, operator=model.Operator(view.operator), values=view.values)
