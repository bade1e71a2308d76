"""What the informers keep of each object: what is used, in a size that does not depend on what its author writes.

An informer's transform is called with each decoded object, and what it returns is stored. So memory depends on the
number of objects. `POD_LABELS` and `POD_ANNOTATIONS` name what is read of pods: whoever reads another label of pods
adds it there.

A pod's containers, init containers, overhead and resizes under way become one container with the pod's effective
requests. Anybody can invent names of resources: of a pod that does not wait and asks for very many, those count that
some node offers, for of others no node can have too little. Constraints are kept only of a pod that this scheduler may
still have to place.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import msgspec

from boathouse.cluster import storage, wire
from boathouse.resources import names
from boathouse.scheduling.pods import ownership, requests, translate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

POD_LABELS = frozenset(
    {
        names.LABEL_JOB_UID,
        names.LABEL_STEP,
        names.LABEL_TASK_TYPE,
        names.LABEL_TASK_INDEX,
        names.LABEL_ATTEMPT,
        names.LABEL_QUEUE,
    }
)
POD_ANNOTATIONS = frozenset({names.ANNOTATION_IDEAL_MEMORY})
NAMESPACE_LABELS = frozenset({names.LABEL_QUEUE})
CLAIM_ANNOTATIONS = frozenset({storage.SELECTED_NODE, storage.BIND_COMPLETED, storage.CLASS_ANNOTATION})
POD_CONDITIONS = frozenset({"PodScheduled", "PodResizePending", "DisruptionTarget"})

NAME_LENGTH = 253
MESSAGE_LENGTH = 1024
MOST_CONSTRAINT_LENGTH = 16 << 10
MOST_CONSTRAINT_LENGTH_OF_TASK = 96 << 10
"""More than an MRJob may hold: of each of its classes, a few pods wait at a time."""
MOST_SELECTOR_LENGTH = 4 << 10
"""Of a claim."""
MOST_VOLUMES = 32
MOST_HOST_PORTS = 32
"""Of a pod that waits; one that has more is too complex. Of one on a node, the first of each count."""
MOST_RESOURCES = 16
"""Of a pod that does not wait: if it asks for more, those count that some node offers."""


def pods(
    scheduler_name: str, offered: Callable[[], frozenset[str]] = frozenset
) -> Callable[[wire.PodView], wire.PodView]:
    """Return the transform of pods.

    Args:
        scheduler_name: Ours: constraints are kept of pods that name it.
        offered: Returns the extended resources that nodes have.
    """

    def keep(pod: wire.PodView) -> wire.PodView:
        metadata = _metadata(pod.metadata, POD_LABELS, POD_ANNOTATIONS)
        if not pod.is_readable:
            return msgspec.structs.replace(pod, metadata=metadata)
        waits = pod.spec.scheduler_name == scheduler_name and not pod.spec.node_name
        problem = _too_complex(pod) if waits else ""
        try:
            container = wire.Container(name="", resources=_sum(pod, None if waits else offered), ports=_ports(pod))
        except (ValueError, ArithmeticError) as error:
            return _unreadable(pod, metadata, str(error), too_complex=False)
        if problem:
            return _unreadable(pod, metadata, problem, too_complex=True)
        is_task = ownership.is_task(pod)
        spec = _waiting_spec(pod.spec) if waits else wire.PodSpec(volumes=_volumes(pod.spec))
        spec = msgspec.structs.replace(
            spec,
            node_name=pod.spec.node_name,
            scheduler_name=pod.spec.scheduler_name[:NAME_LENGTH],
            priority=pod.spec.priority,
            priority_class_name=pod.spec.priority_class_name,
            containers=(container, *_task_container(pod.spec)) if is_task else (container,),
        )
        return wire.PodView(metadata=metadata, spec=spec, status=_status(pod.status, is_task=is_task))

    return keep


def node(view: wire.NodeView) -> wire.NodeView:
    """Keep of a node its labels, taints and allocatable resources, and whether it is ready."""
    conditions = tuple(
        wire.Condition(type=one.type, status=one.status) for one in view.status.conditions if one.type == "Ready"
    )
    return wire.NodeView(
        metadata=_metadata(view.metadata, None, frozenset()),
        spec=view.spec,
        status=wire.NodeStatus(allocatable=view.status.allocatable, conditions=conditions),
    )


def namespace(view: wire.ObjectView) -> wire.ObjectView:
    """Keep of a namespace the label of its default queue."""
    return wire.ObjectView(metadata=_metadata(view.metadata, NAMESPACE_LABELS, frozenset()))


def claim(view: storage.ClaimView) -> storage.ClaimView:
    """Keep of a claim all but its labels and most annotations; a selector that is too long selects nothing."""
    spec, selector = view.spec, view.spec.selector
    if selector is not None and sum(map(len, _selected(selector))) > MOST_SELECTOR_LENGTH:
        nothing = wire.Requirement(key="", operator="In")
        spec = msgspec.structs.replace(spec, selector=storage.LabelSelector(match_expressions=(nothing,)))
    metadata = _metadata(view.metadata, frozenset(), CLAIM_ANNOTATIONS)
    return storage.ClaimView(metadata=metadata, spec=spec, status=view.status)


def _selected(selector: storage.LabelSelector) -> Iterator[str]:
    yield from itertools.chain(selector.match_labels, selector.match_labels.values())
    for requirement in selector.match_expressions:
        yield requirement.key
        yield from requirement.values


def _metadata(meta: wire.ObjectMeta, labels: frozenset[str] | None, annotations: frozenset[str]) -> wire.ObjectMeta:
    """Keep these labels (None: all) and annotations, and of the owners the controller."""
    owner = meta.controller
    return msgspec.structs.replace(
        meta,
        labels=meta.labels if labels is None else _chosen(meta.labels, labels),
        annotations=_chosen(meta.annotations, annotations),
        owner_references=() if owner is None else (_owner(owner),),
    )


def _chosen(texts: Mapping[str, str], kept: frozenset[str]) -> dict[str, str]:
    return {key: texts[key][:NAME_LENGTH] for key in kept & texts.keys()} if texts and kept else {}


def _owner(owner: wire.OwnerReference) -> wire.OwnerReference:
    return wire.OwnerReference(
        api_version=owner.api_version[:NAME_LENGTH],
        kind=owner.kind[:NAME_LENGTH],
        name=owner.name[:NAME_LENGTH],
        uid=owner.uid[:NAME_LENGTH],
        controller=owner.controller,
    )


# Specs of pods


def _sum(pod: wire.PodView, offered: Callable[[], frozenset[str]] | None) -> wire.ResourceRequirements:
    """Return the effective requests, exactly: nano-units are the finest step there is.

    Args:
        pod: The pod.
        offered: Returns the extended resources that count where they are very many; None for a pod that waits.

    Raises:
        ValueError: An amount is no quantity, or a pod that waits asks for too many different resources.
    """
    asked = requests.pod_requests(pod)
    if offered is None:
        requests.check_variety(asked)
    elif len(asked) > MOST_RESOURCES:
        counted = translate.COUNTED | offered()
        asked = {name: amount for name, amount in asked.items() if name in counted}
    return wire.ResourceRequirements(requests={name: f"{amount}n" for name, amount in asked.items() if amount})


def _ports(pod: wire.PodView) -> tuple[wire.ContainerPort, ...]:
    taken = translate.host_ports(pod)[:MOST_HOST_PORTS]
    return tuple(
        wire.ContainerPort(host_port=one.port, protocol=one.protocol[:NAME_LENGTH], host_ip=one.host_ip[:NAME_LENGTH])
        for one in taken
    )


def _volumes(spec: wire.PodSpec) -> tuple[wire.Volume, ...]:
    return tuple(itertools.islice(_mounted(spec), MOST_VOLUMES))


def _mounted(spec: wire.PodSpec) -> Iterator[wire.Volume]:
    return (one for one in spec.volumes if one.persistent_volume_claim is not None or one.ephemeral is not None)


def _waiting_spec(spec: wire.PodSpec) -> wire.PodSpec:
    """Keep what decides where the pod may go; of what is not supported, that it is there."""
    return wire.PodSpec(
        node_selector=spec.node_selector,
        affinity=None if spec.affinity is None else _affinity(spec.affinity),
        tolerations=spec.tolerations,
        topology_spread_constraints=tuple(
            wire.TopologySpreadConstraint(when_unsatisfiable=one)
            for one in sorted({one.when_unsatisfiable[:NAME_LENGTH] for one in spec.topology_spread_constraints})[:2]
        ),
        scheduling_gates=tuple(wire.SchedulingGate() for _ in spec.scheduling_gates[:1]),
        scheduling_group=spec.scheduling_group,
        resource_claims=spec.resource_claims[:1],
        volumes=_volumes(spec),
        too_many_constraints=spec.too_many_constraints,
    )


def _affinity(affinity: wire.Affinity) -> wire.Affinity:
    pod, anti, nodes = affinity.pod_affinity, affinity.pod_anti_affinity, affinity.node_affinity
    return wire.Affinity(
        node_affinity=None if nodes is None else wire.NodeAffinity(required=nodes.required),
        pod_affinity=None if pod is None else wire.PodAffinity(required=pod.required[:1]),
        pod_anti_affinity=None if anti is None else wire.PodAffinity(required=anti.required[:1]),
    )


def _too_complex(pod: wire.PodView) -> str:
    """Return what of a waiting pod is more than is kept; empty if nothing is. The API bounds no value's length."""
    most_characters = MOST_CONSTRAINT_LENGTH_OF_TASK if ownership.is_task(pod) else MOST_CONSTRAINT_LENGTH
    for what, count, most in (
        ("claims", sum(1 for _ in _mounted(pod.spec)), MOST_VOLUMES),
        ("host ports", len(translate.host_ports(pod)), MOST_HOST_PORTS),
        (
            "characters in its node selector, affinity and tolerations",
            sum(map(len, _constraints(pod.spec))),
            most_characters,
        ),
    ):
        if count > most:
            return f"it has {count} {what}: at most {most} are possible"
    return ""


def _constraints(spec: wire.PodSpec) -> Iterator[str]:
    for key, value in spec.node_selector.items():
        yield from (key, value)
    for one in spec.tolerations:
        yield from (one.key, one.value)
    required = spec.affinity.node_affinity.required if spec.affinity and spec.affinity.node_affinity else None
    for term in required.node_selector_terms if required else ():
        for requirement in (*term.match_expressions, *term.match_fields):
            yield requirement.key
            yield from requirement.values


def _task_container(spec: wire.PodSpec) -> tuple[wire.Container, ...]:
    """Keep the memory limit of a task's container; its requests are in the sum."""
    found = next((one for one in spec.containers if one.name == names.CONTAINER), None)
    limit = found.resources.limits.get("memory") if found is not None else None
    if limit is None:
        return ()
    return (wire.Container(name=names.CONTAINER, resources=wire.ResourceRequirements(limits={"memory": limit})),)


def _unreadable(pod: wire.PodView, metadata: wire.ObjectMeta, problem: str, *, too_complex: bool) -> wire.UnreadablePod:
    place = wire.PodSpec(node_name=pod.spec.node_name, scheduler_name=pod.spec.scheduler_name[:NAME_LENGTH])
    return wire.UnreadablePod(
        metadata=metadata,
        spec=place,
        status=wire.PodStatus(phase=pod.status.phase),
        problem=problem[:MESSAGE_LENGTH],
        is_too_complex=too_complex,
    )


# Statuses of pods


def _status(status: wire.PodStatus, *, is_task: bool) -> wire.PodStatus:
    return wire.PodStatus(
        phase=status.phase,
        reason=status.reason[:NAME_LENGTH],
        message=status.message[:MESSAGE_LENGTH],
        conditions=tuple(_condition(one) for one in status.conditions if one.type in POD_CONDITIONS),
        nominated_node_name=status.nominated_node_name[:NAME_LENGTH],
        start_time=status.start_time,
        container_statuses=tuple(_container_status(one) for one in _statuses_of_tasks(status)) if is_task else (),
    )


def _condition(condition: wire.Condition) -> wire.Condition:
    return msgspec.structs.replace(
        condition, reason=condition.reason[:NAME_LENGTH], message=condition.message[:MESSAGE_LENGTH]
    )


def _statuses_of_tasks(status: wire.PodStatus) -> Iterator[wire.ContainerStatus]:
    return (one for one in status.container_statuses if one.name == names.CONTAINER)


def _container_status(status: wire.ContainerStatus) -> wire.ContainerStatus:
    """Keep how the container does; a termination message is bounded by the kubelet, and holds a task's result."""
    waiting = status.state.waiting
    if waiting is not None:
        waiting = wire.StateWaiting(reason=waiting.reason[:NAME_LENGTH], message=waiting.message[:MESSAGE_LENGTH])
    state = wire.ContainerState(waiting=waiting, running=status.state.running, terminated=status.state.terminated)
    return wire.ContainerStatus(name=status.name, state=state, ready=status.ready, restart_count=status.restart_count)
