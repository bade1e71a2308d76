"""What a pod asks of its node: the request formula of Kubernetes, and exact sums of quantities.

    max( sum(containers) + sum(sidecars),  max over i ( init_i + sidecars started before i ) ) + overhead

with, for a container whose status reports resources, the larger of what is specified, actuated and allocated (an
in-place resize under way counts at its larger end), and with pod-level requests in place of the containers' for the
resources they name. The kubelet admits pods by the same formula, so a difference here is a pod rejected there.
Source: Kubernetes 1.36, component-helpers `resource.PodRequests`.

Amounts are kept as whole numbers of nano-units, because that is the finest step the API server stores. Only the final
value is rounded, up, to the unit that schedulers count in: CPU in thousandths, all else in ones.
"""

import functools
import math
from collections.abc import Mapping

from boathouse.cluster import wire
from boathouse.resources import names, quantity
from boathouse.suspension import stages

NANO = 1_000_000_000
NANO_PER_MILLI = 1_000_000
LARGEST = int(quantity.LARGEST) * NANO
"""The largest amount of Kubernetes: sums saturate there too, so that a sum can be written as a quantity."""


@functools.lru_cache(maxsize=4096)  # a cluster's pods request few different amounts
def nano(text: str | float) -> int:
    """Return a quantity in nano-units, rounded up. Raises ValueError if the text is not a quantity."""
    return math.ceil(quantity.parse(text).scaleb(9))


def milli(nano_units: int) -> int:
    """Return nano-units as thousandths, rounded up."""
    return -(-nano_units // NANO_PER_MILLI)


def ones(nano_units: int) -> int:
    """Return nano-units as whole units, rounded up."""
    return -(-nano_units // NANO)


def cpu_milli(text: str | float) -> int:
    """Return a CPU quantity in millicores, rounded up. Raises ValueError if the text is not a quantity."""
    return milli(nano(text))


def size_bytes(text: str | float) -> int:
    """Return a memory or storage quantity in bytes, rounded up. Raises ValueError if the text is not a quantity."""
    return ones(nano(text))


Amounts = dict[str, int]  # resource name to nano-units

MOST_RESOURCES = 64  # of a pod that waits, or of one node: each is a name that others must store and compare

RESTARTABLE = "Always"
INFEASIBLE = "Infeasible"
_LEAST_CPU = 2 * NANO_PER_MILLI  # requests up to this are the same to a kernel: a kubelet may report any of them
_RESIZABLE = ("cpu", "memory")


class UnreadablePodError(ValueError):
    """A pod is known in part only, so its requests and constraints are not known."""

    def __init__(self, problem: str, *, is_too_complex: bool) -> None:
        super().__init__(problem)
        self.is_too_complex = is_too_complex  # whether it is only too much of what could be represented


def pod_requests(pod: wire.PodView) -> Amounts:
    """Return a pod's effective requests in nano-units, at most `LARGEST`. Raises ValueError if one is no quantity."""
    infeasible = _resize_is_infeasible(pod)
    statuses = {status.name: status for status in (*pod.status.container_statuses, *pod.status.init_container_statuses)}
    total: Amounts = {}
    for container in pod.spec.containers:
        _add(total, _effective(container.resources.requests, statuses.get(container.name), infeasible=infeasible))
    if pod.spec.init_containers:
        _include_init_containers(total, pod, statuses, infeasible=infeasible)
    if pod.spec.resources is not None:
        _override_by_pod_level(total, pod, pod.spec.resources.requests, infeasible=infeasible)
    if pod.spec.overhead:
        _add(total, _nano(pod.spec.overhead))
    return {name: min(amount, LARGEST) for name, amount in total.items()}


def is_resizing(pod: wire.PodView) -> bool:
    """Say whether a node has yet to give a pod the size of its spec. Raises ValueError if an amount is no quantity."""
    spec, status = pod.spec, pod.status
    desired = {container.name: container.resources for container in (*spec.containers, *spec.init_containers)}
    for reported in (*status.container_statuses, *status.init_container_statuses):  # not by `any`: for each pod event
        if _differ(desired.get(reported.name), reported.resources, reported.allocated_resources):
            return not _resize_is_infeasible(pod)
    return _differ(spec.resources, status.resources, status.allocated_resources) and not _resize_is_infeasible(pod)


def _differ(
    desired: wire.ResourceRequirements | None, actuated: wire.ResourceRequirements | None, allocated: Mapping[str, str]
) -> bool:
    """Compare what can be resized. A node that cannot resize shows no actuated resources."""
    if desired is None or actuated is None or desired.requests == actuated.requests == allocated:
        return False
    wanted = [(name, desired.requests[name]) for name in _RESIZABLE if name in desired.requests]
    pairs = [(name, text, given.get(name, text)) for name, text in wanted for given in (actuated.requests, allocated)]
    amounts = [(name, nano(desired), nano(actual)) for name, desired, actual in pairs if desired != actual]
    return any(
        desired != actual and not (name == "cpu" and max(desired, actual) <= _LEAST_CPU)
        for name, desired, actual in amounts
    )


def task_container(pod: wire.PodView) -> wire.Container | None:
    """Return the container of a task's pod."""
    return next((container for container in pod.spec.containers if container.name == names.CONTAINER), None)


def cpu_size(container: wire.Container | None) -> stages.CpuSize:
    """Return the CPU of a task's container, by the spec. Raises ValueError if an amount is not a quantity."""
    if container is None:
        return stages.CpuSize(0, 0)
    amounts = container.resources
    return stages.CpuSize(cpu_milli(amounts.requests.get("cpu", "0")), cpu_milli(amounts.limits.get("cpu", "0")))


def check_variety(amounts: Amounts) -> None:
    """Refuse too many different resources. Raises ValueError if they are more than `MOST_RESOURCES`."""
    if len(amounts) > MOST_RESOURCES:
        raise ValueError(f"it requests {len(amounts)} different resources: at most {MOST_RESOURCES} are supported")


def _include_init_containers(
    total: Amounts, pod: wire.PodView, statuses: Mapping[str, wire.ContainerStatus], *, infeasible: bool
) -> None:
    sidecars: Amounts = {}
    start_up: Amounts = {}
    for container in pod.spec.init_containers:
        if container.restart_policy == RESTARTABLE:
            requested = _effective(container.resources.requests, statuses.get(container.name), infeasible=infeasible)
            _add(total, requested)
            _add(sidecars, requested)
            _raise_to(start_up, sidecars)
        else:
            needed = dict(sidecars)
            _add(needed, _nano(container.resources.requests))
            _raise_to(start_up, needed)
    _raise_to(total, start_up)


def _override_by_pod_level(total: Amounts, pod: wire.PodView, requested: wire.Quantities, *, infeasible: bool) -> None:
    effective = _effective(requested, pod.status, infeasible=infeasible)
    for name in requested:
        if name in _RESIZABLE or name.startswith("hugepages-"):
            total[name] = effective.get(name, 0)


def _effective(
    spec: wire.Quantities, status: wire.ContainerStatus | wire.PodStatus | None, *, infeasible: bool
) -> Amounts:
    """Return the largest of spec, actuated and allocated; a resize that the node can never do counts as in force."""
    if status is None or status.resources is None:
        return _nano(spec)
    result = _nano(status.resources.requests)
    _raise_to(result, _nano(status.allocated_resources))
    if not infeasible:
        _raise_to(result, _nano(spec))
    return result


def _resize_is_infeasible(pod: wire.PodView) -> bool:
    return any(
        condition.reason == INFEASIBLE and condition.type == "PodResizePending" for condition in pod.status.conditions
    )


def _nano(amounts: Mapping[str, str]) -> Amounts:
    return {name: nano(value) for name, value in amounts.items()}


def _add(total: Amounts, more: Amounts) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _raise_to(total: Amounts, floor: Amounts) -> None:
    for name, value in floor.items():
        if value > total.get(name, 0):
            total[name] = value
