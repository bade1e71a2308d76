"""Transforms of the informers: reduce each object to the used fields, with a limit of its size.

An informer calls its transform with each decoded object and stores the result, so memory depends only on the number of
objects. To read another annotation of pods, add it to `POD_ANNOTATIONS`. A kind that reads others, or labels that are
not in `POD_LABELS`, names them in `Options.pod_labels`, and the containers of its tasks in `Options.pod_containers`.

A pod's containers, overhead and resizes in flight are stored as its effective requests. If a pod that is not pending
requests very many resources, only those are stored that some node has, for their names are arbitrary.
"""

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from boathouse.cluster import views, wire
from boathouse.resources import names
from boathouse.scheduling.pods import facts, ownership, requests, translate
from boathouse.suspension import stages
from boathouse_policies import model

POD_LABELS = frozenset({names.LABEL_JOB_UID, names.LABEL_QUEUE, names.LABEL_PROBE, names.LABEL_TASK_TYPE})
POD_ANNOTATIONS = frozenset(
    {names.ANNOTATION_IDEAL_MEMORY, names.ANNOTATION_EXECUTOR_MEMORY, names.ANNOTATION_EXIT_CODE}
)
CLAIM_ANNOTATIONS = frozenset({views.SELECTED_NODE, views.BIND_COMPLETED, views.CLASS_ANNOTATION})
POD_CONDITIONS = frozenset({"PodScheduled", "PodResizePending", "DisruptionTarget"})

NAME_LENGTH = 253
MESSAGE_LENGTH = 1024
MOST_CONSTRAINT_LENGTH = 16 << 10
MOST_CONSTRAINT_LENGTH_OF_TASK = 96 << 10
"""Above the limits of an MRJob. Of each of its classes only a few pods are pending at a time."""
MOST_SELECTOR_LENGTH = 4 << 10  # maximum size of a claim's selector
MOST_VOLUMES = 32
MOST_LABEL_LENGTH = 3 << 10  # characters of labels that affinity counts: of one with more, the first by name
MOST_HOST_PORTS = 32
"""Maximum claims, disks and host ports of a pod: a pending pod with more is too complex, of others the first count."""
MOST_RESOURCES = 16  # extended resources of a pod that is not pending; of more, only those of some node are stored


def pods(
    scheduler_name: str,
    offered: Callable[[], frozenset[str]] = frozenset,
    labels: frozenset[str] = frozenset(),
    containers: frozenset[str] = frozenset({names.CONTAINER}),
) -> Callable[[wire.PodView], facts.PodFacts]:
    """Return the transform of pods. Constraints are stored for pods of this scheduler, and statuses of `containers`.

    `offered` returns the extended resources that nodes have. `labels` are stored, and annotations of these names, in
    addition to those of all pods.
    """
    annotations, labels = labels | POD_ANNOTATIONS, labels | POD_LABELS

    def transform(pod: wire.PodView) -> facts.PodFacts:
        spec, task_of, ports = pod.spec, ownership.owning_job(pod), translate.host_ports(pod)
        waits, is_task = spec.scheduler_name == scheduler_name and not spec.node_name, task_of is not None
        is_foreign = waits and not is_task
        metadata = _metadata(pod.metadata, labels, annotations)
        is_ours = is_task or (spec.scheduler_name == scheduler_name and ownership.parent_of(pod.metadata) is not None)
        container = requests.task_container(pod) if is_task else None
        try:
            resources, size = _resources(pod, None if waits else offered), requests.cpu_size(container)
            is_resizing = bool(spec.node_name) and requests.is_resizing(pod)
            if waits and (problem := _too_complex(pod, ports, is_task=is_task)):
                raise requests.UnreadablePodError(problem, is_too_complex=True)
        except (ValueError, ArithmeticError) as error:
            return _unrepresentable(pod, metadata, task_of, error)
        return facts.PodFacts(
            metadata=metadata,
            status=_status(pod.status, containers if is_task else frozenset()),
            node_name=spec.node_name,
            scheduler_name=spec.scheduler_name[:NAME_LENGTH],
            priority=spec.priority,
            priority_class=spec.priority_class_name,
            task_of=task_of,
            restarts=is_task and spec.restart_policy == "Always",
            resources=resources,
            host_ports=tuple(
                [
                    dataclasses.replace(port, protocol=port.protocol[:NAME_LENGTH], host_ip=port.host_ip[:NAME_LENGTH])
                    for port in ports[:MOST_HOST_PORTS]
                ]
            ),
            claims_by_field=tuple(itertools.islice(translate.claims_by_field(pod), MOST_VOLUMES)),
            disks=tuple(itertools.islice(translate.attached_inline(spec), MOST_VOLUMES)),
            constraints=_constraints(pod) if is_foreign else None,
            unsupported=translate.unsupported(pod) if is_foreign else None,
            too_many_constraints=spec.too_many_constraints,
            reserved=_reserved(pod.metadata) if is_task else (),
            is_gated=bool(spec.scheduling_gates),
            is_bindable=pod.is_bindable,
            memory_limit=container.resources.limits.get("memory", "") if container else "",
            is_resizing=is_resizing,
            cpu_request_milli=size.request_milli,
            cpu_limit_milli=size.limit_milli,
            outlived_exit_code=_outlived_exit_code(pod, containers) if is_ours else None,
            can_resize=container is not None and _can_resize(pod.status),
            resize_problem=_resize_problem(pod.status) if is_task else "",
            suspension=_record(pod.metadata) if is_task else None,
            labels=_labels(pod.metadata),
            anti_affinity=_anti_affinity(pod),
        )

    return transform


def _unrepresentable(
    pod: wire.PodView, metadata: wire.ObjectMeta, task_of: str | None, error: Exception
) -> facts.PodFacts:
    return facts.PodFacts(
        metadata=metadata,
        status=wire.PodStatus(phase=pod.status.phase),
        node_name=pod.spec.node_name,
        scheduler_name=pod.spec.scheduler_name[:NAME_LENGTH],
        task_of=task_of,
        resources=translate.WHOLE_NODE,
        labels=_labels(pod.metadata),
        is_bindable=pod.is_bindable,
        problem=str(error)[:MESSAGE_LENGTH],
        is_too_complex=isinstance(error, requests.UnreadablePodError) and error.is_too_complex,
    )


def node(view: wire.NodeView) -> wire.NodeView:
    """Reduce a node to its labels, taints, allocatable resources, readiness, and the address of its kubelet."""
    status = view.status
    internal = (address for address in status.addresses if address.type == "InternalIP")
    ready = (condition for condition in status.conditions if condition.type == "Ready")
    return wire.NodeView(
        metadata=_metadata(view.metadata, None, frozenset()),
        spec=view.spec,
        status=wire.NodeStatus(
            allocatable=status.allocatable,
            declared_features=status.declared_features,
            conditions=tuple([wire.Condition(type=condition.type, status=condition.status) for condition in ready]),
            addresses=tuple([address for address in internal if len(address.address) <= NAME_LENGTH][:1]),
            daemon_endpoints=status.daemon_endpoints,
        ),
    )


def namespace(view: wire.ObjectView) -> wire.ObjectView:
    """Reduce a namespace to its labels, which select the pods that affinity counts."""
    metadata = _metadata(view.metadata, None, frozenset())
    return wire.ObjectView(metadata=msgspec.structs.replace(metadata, labels=_bounded(metadata.labels)))


def quota(view: views.QuotaView) -> views.QuotaView:
    """Keep of a quota all but its labels and annotations."""
    return msgspec.structs.replace(view, metadata=_metadata(view.metadata, frozenset(), frozenset()))


def device_class(view: views.DeviceClassView) -> views.DeviceClassView:
    """Keep of a DeviceClass its name and its extended resource."""
    return msgspec.structs.replace(view, metadata=_metadata(view.metadata, frozenset(), frozenset()))


def claim(view: views.ClaimView) -> views.ClaimView:
    """Remove a claim's labels and most annotations; a selector that is too long selects nothing."""
    spec, selector = view.spec, view.spec.selector
    if selector is not None and sum(map(len, _selected(selector))) > MOST_SELECTOR_LENGTH:
        nothing = wire.Requirement(key="", operator="In")
        spec = msgspec.structs.replace(spec, selector=wire.LabelSelector(match_expressions=(nothing,)))
    return msgspec.structs.replace(view, metadata=_metadata(view.metadata, frozenset(), CLAIM_ANNOTATIONS), spec=spec)


def _selected(selector: wire.LabelSelector) -> Iterator[str]:
    yield from itertools.chain(selector.match_labels, selector.match_labels.values())
    for requirement in selector.match_expressions:
        yield from (requirement.key, *requirement.values)


def _metadata(meta: wire.ObjectMeta, labels: frozenset[str] | None, annotations: frozenset[str]) -> wire.ObjectMeta:
    """Reduce metadata to these labels (None: all) and annotations, and the controller of the owners."""
    owner = meta.controller
    return msgspec.structs.replace(
        meta,
        labels=meta.labels if labels is None else _selected_keys(meta.labels, labels),
        annotations=_selected_keys(meta.annotations, annotations),
        owner_references=() if owner is None else (_owner(owner),),
    )


def _selected_keys(texts: Mapping[str, str], keys: frozenset[str]) -> dict[str, str]:
    return {key: texts[key][:NAME_LENGTH] for key in keys & texts.keys()} if texts and keys else {}


def _owner(owner: wire.OwnerReference) -> wire.OwnerReference:
    return wire.OwnerReference(
        api_version=owner.api_version[:NAME_LENGTH],
        kind=owner.kind[:NAME_LENGTH],
        name=owner.name[:NAME_LENGTH],
        uid=owner.uid[:NAME_LENGTH],
        controller=owner.controller,
    )


def _labels(metadata: wire.ObjectMeta) -> dict[str, str]:
    return _shared(tuple(_bounded(metadata.labels).items()))


@functools.lru_cache(maxsize=2048)
def _shared(labels: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return dict(labels)


def _bounded(labels: dict[str, str]) -> dict[str, str]:
    if sum(map(len, labels)) + sum(map(len, labels.values())) <= MOST_LABEL_LENGTH:
        return labels
    bounded, left = {}, MOST_LABEL_LENGTH
    for key, value in sorted(labels.items()):
        left -= len(key) + len(value)
        if left < 0:
            break
        bounded[key] = value
    return bounded


def _anti_affinity(pod: wire.PodView) -> tuple[model.PodTerm, ...]:
    try:
        return translate.anti_affinity(pod)
    except ValueError:
        return ()


def _resources(pod: wire.PodView, offered: Callable[[], frozenset[str]] | None) -> model.Resources:
    """Return the effective requests. `offered` has the resources that count of very many; None for a pending pod."""
    if isinstance(pod, wire.UnreadablePod):
        raise requests.UnreadablePodError("it could not be decoded", is_too_complex=False)
    amounts = requests.pod_requests(pod)
    if offered is None:
        requests.check_variety(amounts)
    elif len(amounts) > MOST_RESOURCES:
        counted = translate.COUNTED | offered()
        amounts = {name: amount for name, amount in amounts.items() if name in counted}
    return translate.resources_of(amounts)


def _reserved(metadata: wire.ObjectMeta) -> tuple[tuple[str, int], ...]:
    if (text := metadata.annotations.get(names.ANNOTATION_RESERVED)) is not None:
        with contextlib.suppress(msgspec.MsgspecError):
            return tuple(sorted(msgspec.json.decode(text, type=dict[str, int]).items()))
    return ()


def _record(metadata: wire.ObjectMeta) -> stages.SuspensionRecord | None:
    text = metadata.annotations.get(names.ANNOTATION_SUSPENSION)
    return None if text is None else stages.parse(text)


def _outlived_exit_code(pod: wire.PodView, own: frozenset[str]) -> int | None:
    """Return the exit code of a pod's own container, if that has ended for good and others of the pod have not."""
    statuses = pod.status.container_statuses
    if len(statuses) < 2 or pod.spec.restart_policy != "Never":  # noqa: PLR2004 - its own, and another
        return None
    ended = [status.state.terminated for status in statuses if status.name in own]
    others_run = any(status.state.terminated is None for status in statuses if status.name not in own)
    return ended[0].exit_code if others_run and len(ended) == 1 and ended[0] is not None else None


def _can_resize(status: wire.PodStatus) -> bool:
    """Return whether the kubelet accepts a resize of a task's container: it runs, and its resources are known."""
    return any(
        container.name == names.CONTAINER and container.state.running is not None and container.resources is not None
        for container in status.container_statuses
    )


def _resize_problem(status: wire.PodStatus) -> str:
    for condition in status.conditions:
        has_failed = condition.type == "PodResizeInProgress" and condition.reason == "Error"
        if has_failed or condition.type == "PodResizePending":
            return condition.reason[:NAME_LENGTH]
    return ""


def _constraints(pod: wire.PodView) -> model.Constraints | str:
    try:
        return translate.constraints(pod)
    except ValueError as error:
        return str(error)[:MESSAGE_LENGTH]


def _too_complex(pod: wire.PodView, ports: tuple[model.HostPort, ...], *, is_task: bool) -> str:
    """Return why a pending pod exceeds the limits, or an empty text. The API does not limit the length of values."""
    for what, count, most in (
        ("claims", sum([1 for _ in translate.claims_by_field(pod)]), MOST_VOLUMES),
        ("disks", sum([1 for _ in translate.attached_inline(pod.spec)]), MOST_VOLUMES),
        ("host ports", len(ports), MOST_HOST_PORTS),
        (
            "characters in its node selector, affinity, tolerations and topology spread constraints",
            sum(map(len, _texts(pod.spec))),
            MOST_CONSTRAINT_LENGTH_OF_TASK if is_task else MOST_CONSTRAINT_LENGTH,
        ),
    ):
        if count > most:
            return f"it has {count} {what}: at most {most} are supported"
    return ""


def _texts(spec: wire.PodSpec) -> Iterator[str]:
    for key, value in spec.node_selector.items():
        yield from (key, value)
    for toleration in spec.tolerations:
        yield from (toleration.key, toleration.value)
    for selector in _selectors(spec):
        yield from _selected(selector)
    required = spec.affinity.node_affinity.required if spec.affinity and spec.affinity.node_affinity else None
    for term in required.node_selector_terms if required else ():
        for requirement in (*term.match_expressions, *term.match_fields):
            yield from (requirement.key, *requirement.values)


def _selectors(spec: wire.PodSpec) -> Iterator[wire.LabelSelector]:
    affinity = spec.affinity or wire.Affinity()
    for kind in (affinity.pod_affinity, affinity.pod_anti_affinity):
        for term in () if kind is None else kind.required:
            yield from (selector for selector in (term.label_selector, term.namespace_selector) if selector is not None)
    yield from (
        constraint.label_selector
        for constraint in spec.topology_spread_constraints
        if constraint.label_selector is not None
    )


def _status(status: wire.PodStatus, containers: frozenset[str]) -> wire.PodStatus:
    return wire.PodStatus(
        phase=status.phase,
        reason=status.reason[:NAME_LENGTH],
        message=status.message[:MESSAGE_LENGTH],
        conditions=tuple(
            [
                msgspec.structs.replace(
                    condition, reason=condition.reason[:NAME_LENGTH], message=condition.message[:MESSAGE_LENGTH]
                )
                for condition in status.conditions
                if condition.type in POD_CONDITIONS
            ]
        ),
        nominated_node_name=status.nominated_node_name[:NAME_LENGTH],
        start_time=status.start_time,
        container_statuses=_container_statuses(status.container_statuses, containers),
        init_container_statuses=_container_statuses(status.init_container_statuses, containers),
        pod_ip=status.pod_ip[:NAME_LENGTH] if containers else "",
    )


def _container_statuses(
    statuses: Iterable[wire.ContainerStatus], containers: frozenset[str]
) -> tuple[wire.ContainerStatus, ...]:
    return tuple([_container_status(status) for status in statuses if status.name in containers])


def _container_status(status: wire.ContainerStatus) -> wire.ContainerStatus:
    """Reduce a container's status to its state, whose termination message the kubelet limits, and its last end."""
    if (waiting := status.state.waiting) is not None:
        waiting = wire.StateWaiting(reason=waiting.reason[:NAME_LENGTH], message=waiting.message[:MESSAGE_LENGTH])
    return wire.ContainerStatus(
        name=status.name,
        state=wire.ContainerState(waiting=waiting, running=status.state.running, terminated=status.state.terminated),
        last_state=wire.ContainerState(terminated=status.last_state.terminated),
        ready=status.ready,
        restart_count=status.restart_count,
    )
