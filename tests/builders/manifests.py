"""Kubernetes objects: as manifests, which the API server stores, and as views, which the operator decodes.

A manifest has camel-case fields, `pod("p", cpu="1", hostNetwork=True)`; a view has Python's, `pod_view("p", cpu="1",
host_network=True)`. Both have one container `task` unless a test names others. Objects are in the namespace `demo`, and
pods are of the scheduler `boathouse`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from boathouse.cluster import views, wire
from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.scheduling import transforms

if TYPE_CHECKING:
    from boathouse.scheduling.pods import facts

NAMESPACE = "demo"
NODE_RESOURCES = {"cpu": "4", "memory": "8Gi", "pods": "110"}

TRANSFORM_POD = transforms.pods(names.SCHEDULER_NAME, labels=mrjob_names.POD_LABELS)
"""Reduces the view of a pod to its facts, as the watches of pods do."""


# Manifests


def metadata(name: str, *, namespace: str = NAMESPACE, **fields: Any) -> dict[str, Any]:
    """Return the metadata of an object, without the fields that are empty."""
    return {"name": name} | {key: value for key, value in {"namespace": namespace, **fields}.items() if value}


def owner(kind: str = "MRJob", name: str = "j", uid: str = "j", api: str = names.API_VERSION) -> dict[str, Any]:
    """Return the reference to the object that controls another one."""
    return {"apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": True}


def pod(
    name: str = "p",
    *,
    namespace: str = NAMESPACE,
    cpu: str = "100m",
    memory: str = "64Mi",
    limits: dict[str, str] | None = None,
    node: str = "",
    phase: str = "Pending",
    scheduler: str = names.SCHEDULER_NAME,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    owner: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Return a pod; further keywords go into its spec."""
    resources: dict[str, Any] = {"requests": {"cpu": cpu, "memory": memory}} | ({"limits": limits} if limits else {})
    container = {"name": names.CONTAINER, "image": "busybox", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(
            name,
            namespace=namespace,
            labels=labels,
            annotations=annotations,
            ownerReferences=[owner] if owner else None,
        ),
        "spec": {"schedulerName": scheduler, "containers": [container]} | ({"nodeName": node} if node else {}) | spec,
        "status": {"phase": phase},
    }


def node(
    name: str = "n1",
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "110",
    ready: bool = True,
    labels: dict[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
    unschedulable: bool = False,
    **extended: str,
) -> dict[str, Any]:
    """Return a node; further keywords are more resources (`**{"example.com/gpu": "1"}`)."""
    resources = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi", **extended}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata(name, namespace="", labels={"kubernetes.io/hostname": name, **(labels or {})}),
        "spec": ({"taints": taints} if taints else {}) | ({"unschedulable": True} if unschedulable else {}),
        "status": {
            "capacity": resources,
            "allocatable": dict(resources),
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "nodeInfo": {"operatingSystem": "linux", "architecture": "amd64", "kubeletVersion": "v1.36.3"},
        },
    }


def namespace(name: str = NAMESPACE, **labels: str) -> dict[str, Any]:
    """Return a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(name, namespace="", labels=labels)}


def config_map(name: str, *, namespace: str = NAMESPACE, **data: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(name, namespace=namespace), "data": data}


def lease(name: str = "boathouse", *, namespace: str = "boathouse-system", **spec: Any) -> dict[str, Any]:
    """Return a Lease."""
    of = metadata(name, namespace=namespace)
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": of, "spec": spec}


def quota(name: str = "q", *, namespace: str = NAMESPACE, **hard: str) -> dict[str, Any]:
    """Return a ResourceQuota, of which nothing is used yet."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata(name, namespace=namespace),
        "spec": {"hard": hard},
        "status": {"hard": hard},
    }


def condition(type_: str, status: str = "True", *, reason: str = "", message: str = "") -> dict[str, str]:
    """Return a condition."""
    return {"type": type_, "status": status, "reason": reason, "message": message}


# Views


def meta_view(
    name: str = "p",
    *,
    namespace: str = NAMESPACE,
    uid: str | None = None,
    revision: int | str = "",
    owner: wire.OwnerReference | None = None,
    **fields: Any,
) -> wire.ObjectMeta:
    """Return the metadata of an object, whose UID is `uid-` and its name."""
    return wire.ObjectMeta(
        name=name,
        namespace=namespace,
        uid=f"uid-{name}" if uid is None else uid,
        resource_version=str(revision),
        owner_references=(owner,) if owner else (),
        **fields,
    )


def owner_view(
    kind: str = "MRJob", name: str = "j", uid: str = "j", api: str = names.API_VERSION
) -> wire.OwnerReference:
    """Return the reference to the object that controls another one."""
    return wire.OwnerReference(api_version=api, kind=kind, name=name, uid=uid, controller=True)


def resources(limits: dict[str, str] | None = None, **requests: str) -> wire.ResourceRequirements:
    """Return requests of a container, such as `ephemeral_storage="1Gi"`, and its limits."""
    named = {name.replace("_", "-"): value for name, value in requests.items()}
    return wire.ResourceRequirements(requests=named, limits=limits or {})


def container(name: str = names.CONTAINER, *, limits: dict[str, str] | None = None, **requests: str) -> wire.Container:
    """Return a container with these requests."""
    return wire.Container(name=name, resources=resources(limits, **requests))


def sidecar(name: str, **requests: str) -> wire.Container:
    """Return an init container that runs beside the others."""
    return wire.Container(name=name, restart_policy="Always", resources=resources(**requests))


def container_status(
    name: str = names.CONTAINER,
    *,
    actuated: dict[str, str] | None,
    allocated: dict[str, str] | None = None,
    is_running: bool = False,
) -> wire.ContainerStatus:
    """Return the status of a container: the requests that its node gives it, and those that it has allocated."""
    return wire.ContainerStatus(
        name=name,
        resources=None if actuated is None else wire.ResourceRequirements(requests=actuated),
        allocated_resources=allocated or {},
        state=wire.ContainerState(running=wire.StateRunning() if is_running else None),
    )


def pod_view(
    name: str = "p",
    *,
    cpu: str = "1",
    memory: str = "1Gi",
    containers: tuple[wire.Container, ...] = (),
    node: str = "",
    scheduler: str = names.SCHEDULER_NAME,
    phase: str = "Pending",
    conditions: tuple[wire.Condition, ...] = (),
    statuses: tuple[wire.ContainerStatus, ...] = (),
    status: wire.PodStatus | None = None,
    meta: dict[str, Any] | None = None,
    **spec: Any,
) -> wire.PodView:
    """Return a pod; `meta` has the fields of `meta_view`, and further keywords go into its spec."""
    return wire.PodView(
        metadata=meta_view(name, **(meta or {})),
        spec=wire.PodSpec(
            containers=containers or (container(cpu=cpu, memory=memory),),
            node_name=node,
            scheduler_name=scheduler,
            **spec,
        ),
        status=status or wire.PodStatus(phase=phase, conditions=conditions, container_statuses=statuses),
    )


def task_pod_view(name: str = "t", *, job: str = "j", revision: int = 1, **fields: Any) -> wire.PodView:
    """Return the pod of a task of a job, whose UID and name are the same."""
    meta = {
        "revision": revision,
        "labels": {names.LABEL_JOB_UID: job},
        "owner": owner_view(name=job, uid=job),
    } | fields.pop("meta", {})
    return pod_view(name, meta=meta, **({"restart_policy": "Never"} | fields))


def pod_facts(name: str = "p", **fields: Any) -> facts.PodFacts:
    """Return what the scheduler keeps of a pod, with the keywords of `pod_view`."""
    return TRANSFORM_POD(pod_view(name, **fields))


def decoded_pod(manifest: dict[str, Any]) -> wire.PodView:
    """Return the view of a manifest."""
    return msgspec.convert(manifest, wire.PodView)


def node_view(
    name: str = "n1",
    *,
    ready: bool = True,
    labels: dict[str, str] | None = None,
    allocatable: dict[str, str] | None = None,
    **spec: Any,
) -> wire.NodeView:
    """Return a node of four cores and 8 GiB; further keywords go into its spec."""
    return wire.NodeView(
        metadata=wire.ObjectMeta(name=name, labels=labels or {}),
        spec=wire.NodeSpec(**spec),
        status=wire.NodeStatus(
            allocatable=NODE_RESOURCES if allocatable is None else allocatable,
            conditions=(wire.Condition(type="Ready", status="True" if ready else "False"),),
        ),
    )


def quota_view(
    name: str = "q",
    *,
    namespace: str = NAMESPACE,
    hard: dict[str, str] | None = None,
    used: dict[str, str] | None = None,
    **spec: Any,
) -> views.QuotaView:
    """Return a ResourceQuota and what is used of it; further keywords go into its spec."""
    return views.QuotaView(
        metadata=meta_view(name, namespace=namespace),
        spec=views.QuotaSpec(hard=hard or {}, **spec),
        status=views.QuotaStatus(hard=hard or {}, used=used or {}),
    )


def claim_view(
    name: str = "c",
    *,
    volume: str = "",
    storage_class: str = "late",
    size: str = "1Gi",
    node: str = "",
    mode: str = "ReadWriteOnce",
    is_bound: bool | None = None,
    revision: int | str = "",
) -> views.ClaimView:
    """Return a claim: bound if it has a volume, and provisioned for a node if it has that."""
    bound = bool(volume) if is_bound is None else is_bound
    annotations = {views.BIND_COMPLETED: "yes"} if bound else {}
    annotations |= {views.SELECTED_NODE: node} if node else {}
    return views.ClaimView(
        metadata=meta_view(name, uid=name, revision=revision, annotations=annotations),
        spec=views.ClaimSpec(
            volume_name=volume,
            storage_class_name=storage_class,
            access_modes=(mode,),
            resources=resources(storage=size),
        ),
    )


def volume_affinity(*hosts: str) -> views.VolumeNodeAffinity:
    """Return the affinity of a volume on these nodes."""
    here = wire.Requirement(key="kubernetes.io/hostname", operator="In", values=hosts)
    term = wire.NodeSelectorTerm(match_expressions=(here,))
    return views.VolumeNodeAffinity(required=wire.NodeSelector(node_selector_terms=(term,)))


def volume_view(
    name: str = "v",
    *,
    size: str = "1Gi",
    host: str = "",
    labels: dict[str, str] | None = None,
    claim: str = "",
    driver: str = "",
    phase: str = "Available",
) -> views.VolumeView:
    """Return a volume of the class `late`: on one node if it has a host, and reserved if it has a claim."""
    return views.VolumeView(
        metadata=wire.ObjectMeta(name=name, labels=labels or {}),
        spec=views.VolumeSpec(
            capacity={"storage": size},
            access_modes=("ReadWriteOnce",),
            storage_class_name="late",
            node_affinity=volume_affinity(host) if host else None,
            claim_ref=wire.Identity(namespace=NAMESPACE, name=claim) if claim else None,
            csi=views.CsiSource(driver=driver, volume_handle=name) if driver else None,
        ),
        status=views.Phase(phase=phase),
    )


def storage_class_view(name: str = "late", *, provisioner: str = views.NO_PROVISIONER) -> views.ClassView:
    """Return a storage class whose volumes are bound once a pod has a node."""
    of = wire.ObjectMeta(name=name)
    return views.ClassView(metadata=of, provisioner=provisioner, volume_binding_mode="WaitForFirstConsumer")
