"""Limits of a namespace: its ResourceQuotas before admission, and the shapes of pods that it may have pending.

What a gang will create must fit its quotas together. The API server refuses an executor that exceeds a quota, and
its driver requests the next one, without a word to anybody. So a driver starts only when its namespace's quotas have
room for it and for its minimum of executors.

A shape is the requests and constraints that pods of one owner share, a task class. Each is compared with all nodes.
Without limits, a namespace with thousands of shapes, or with constraints of a megabyte, would delay the pods of all
others. A shape beyond the limits is pending until others of its namespace were placed or deleted. New constraints are
evaluated a few at a time.
"""

import collections
import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from boathouse import fair
from boathouse.cluster import views
from boathouse.resources.config import TenantLimits
from boathouse.scheduling.pods import indexes, requests, translate
from boathouse.scheduling.pods.states import PendingReason
from boathouse_policies import model

EXCEEDS_QUOTA = "ExceedsQuota"  # more is requested than a quota ever allows
QUOTA_EXCEEDED = "QuotaExceeded"  # more is requested than others leave of a quota now

Amounts = Mapping[str, int]
"""By resource name, as `Resources.by_name`, and by line of `translate.LIMITS`: millicores, bytes, counts."""


class Quotas:
    """The quotas of all namespaces."""

    def __init__(self) -> None:
        self._quotas: dict[str, dict[str, views.QuotaView]] = {}
        self.changed: set[str] = set()  # namespaces with a quota that changed since this was last cleared

    def set(self, quota: views.QuotaView, *, is_gone: bool = False) -> None:
        """Add, replace or remove a quota."""
        namespace, name = quota.metadata.namespace, quota.metadata.name
        if is_gone:
            indexes.discard(self._quotas, namespace, name)
        else:
            self._quotas.setdefault(namespace, {})[name] = quota
        self.changed.add(namespace)

    def __contains__(self, namespace: str) -> bool:
        return namespace in self._quotas

    def counts(self, namespace: str, line: str) -> bool:
        """Return whether a quota of a namespace has a line of a name, such as `limits.cpu`."""
        return any(line in quota.spec.hard for quota in self._quotas.get(namespace, {}).values())

    def check(
        self,
        namespace: str,
        wanted: Amounts,
        *,
        priority_class: str = "",
        promised: Iterable[Amounts] = (),
        held: Amounts = MappingProxyType({}),
    ) -> PendingReason | None:
        """Return why pods that request this together cannot be created in a namespace; None if they can.

        `promised` is what other drivers were admitted for and have not created yet, and `held` what of `wanted` is
        counted as used already, because pods that show them exist.
        """
        if namespace not in self._quotas:
            return None
        promised_total: collections.Counter[str] = collections.Counter()
        for amounts in promised:
            promised_total.update(amounts)
        refusal = None
        for name, quota in sorted(self._quotas[namespace].items()):
            for line, resource, hard, used in _limits(quota) if _matches(quota.spec, priority_class) else ():
                unit = requests.NANO_PER_MILLI if _is_cpu(resource) else requests.NANO
                need, more, less = (amounts.get(resource, 0) * unit for amounts in (wanted, promised_total, held))
                if need > hard:
                    return _reason(EXCEEDS_QUOTA, line, resource, need, f"quota {name} allows", hard)
                left = hard - (used + more - less)
                if need and need > left and refusal is None:
                    refusal = _reason(QUOTA_EXCEEDED, line, resource, need, f"quota {name} has left", max(0, left))
        return refusal


def _limits(quota: views.QuotaView) -> Iterator[tuple[str, str, int, int]]:
    """Yield the lines that concern pods, with their resource, the limit and what is used of it, both in nano-units.

    A line that cannot be read limits nothing.
    """
    for line, hard in (quota.status.hard or quota.spec.hard).items():
        if (resource := _resource(line)) is not None:
            with contextlib.suppress(ValueError):
                yield line, resource, requests.nano(hard), requests.nano(quota.status.used.get(line, "0"))


def _resource(name: str) -> str | None:
    """Return the resource that a line of a quota limits; None for what is no request of a pod."""
    if name in {"pods", "count/pods"}:
        return "pods"
    if name in {"cpu", "memory", "ephemeral-storage", *translate.LIMITS}:
        return name
    if name == "limits.memory":  # of a driver and of its executors, it is what they request
        return "memory"
    prefix, _, resource = name.partition(".")
    return resource if prefix == "requests" and resource and resource != "storage" else None


def _matches(spec: views.QuotaSpec, priority_class: str) -> bool:
    """Say whether a quota counts pods that request something and have no deadline."""
    scopes = [views.ScopeRequirement(scope_name=scope, operator="Exists") for scope in spec.scopes]
    selected = () if spec.scope_selector is None else spec.scope_selector.match_expressions
    return all(_selects(requirement, priority_class) for requirement in (*scopes, *selected))


def _selects(requirement: views.ScopeRequirement, priority_class: str) -> bool:
    if requirement.scope_name != "PriorityClass":
        return requirement.scope_name in {"NotTerminating", "NotBestEffort"}
    is_listed = priority_class in requirement.values
    holds = {"In": is_listed, "NotIn": not is_listed, "Exists": bool(priority_class)}
    return holds.get(requirement.operator, not priority_class)


def _is_cpu(resource: str) -> bool:
    return resource in {"cpu", "limits.cpu"}


def _reason(reason: str, line: str, resource: str, need: int, verb: str, left: int) -> PendingReason:
    amounts = map(requests.milli if _is_cpu(resource) else requests.ones, (need, left))
    wanted, given = (model.readable(resource.removeprefix("limits."), amount) for amount in amounts)
    who = "the driver and its minimum of executors"
    return PendingReason(reason, f"{who} request {wanted} {line}, and {verb} {given}")


TOO_COMPLEX = "TooComplex"

RECOUNT_S = 1.0  # interval of counting a namespace's pending classes while it is at its limits
FORGET_S = 60.0
PRICE_S = 2.5e-6  # measured time to evaluate a set of constraints for one node, and each of its constraints
PRICE_OF_EACH_S = 1.0e-6
_MORE_FOR_OTHERS = 9
LOAD = 0.05  # share of the scheduler's time for evaluating a namespace's new constraints
BURST_S = 0.25


def count(constraints: model.Constraints, namespace: str = "") -> int:
    """Return the number of constraints in a set.

    Ten values of an expression count as one, each other entry as one. A term that may select pods of other namespaces
    counts as ten, because each start and end of such a pod is counted for it.
    """
    terms = constraints.affinity or ()
    expressions = [expression for term in terms for expression in (*term.expressions, *term.fields)]
    terms_of_pods = (*constraints.pod_affinity, *constraints.pod_anti_affinity)
    sets = [term.pods for term in terms_of_pods]
    selectors = [selector for pods in sets for selector in (pods.selector, pods.namespace_selector)]
    selectors += [spread.selector for spread in constraints.spread]
    expressions += [expression for selector in selectors if selector is not None for expression in selector.expressions]
    of_nodes = (constraints.node_selector, constraints.tolerations, constraints.host_ports, constraints.claims, terms)
    wide = [pods for pods in sets if pods.namespace_selector is not None or set(pods.namespaces) - {namespace}]
    return (
        sum(map(len, (*of_nodes, terms_of_pods, constraints.spread)))
        + sum(1 + len(expression.values) // 10 for expression in expressions)
        + _MORE_FOR_OTHERS * len(wide)
    )


@dataclasses.dataclass(slots=True)
class _Used:
    """Admitted shapes of a namespace."""

    namespace: str
    at_s: float  # time of the last count of the pending classes
    shapes: set[model.ClassId] = dataclasses.field(default_factory=set)
    constraints: dict[model.Constraints, int] = dataclasses.field(default_factory=dict)  # how many of each set
    total: int = 0

    def add(self, task_class: model.ClassId, constraints: model.Constraints) -> None:
        self.shapes.add(task_class)
        if constraints not in self.constraints:
            self.constraints[constraints] = count(constraints, self.namespace)
            self.total += self.constraints[constraints]


class Variety:
    """Admits task classes within the limits of each namespace: equal sets of constraints of its shapes count once."""

    def __init__(
        self,
        limits: TenantLimits,
        *,
        waiting: Callable[[str], Iterable[model.TaskClass]],
        nodes: Callable[[], int],
        clock: Callable[[], float],
    ) -> None:
        self._limits, self._waiting, self._nodes, self._clock = limits, waiting, nodes, clock
        self._used: dict[str, _Used] = {}
        self._time = fair.Buckets(rate_per_s=LOAD, burst=BURST_S, clock=clock)
        self._swept_s = clock()

    def refusal(self, namespace: str, task_class: model.TaskClass) -> str | None:
        """Admit a class, or return why it is not considered now."""
        used, constraints = self._used.get(namespace), task_class.constraints
        if used is not None and task_class.id in used.shapes:
            return None
        if used is None or self._exceeded(namespace, used, constraints) is not None:
            used = self._recount(namespace)
        if (why := self._exceeded(namespace, used, constraints)) is not None:
            return why
        number = 0 if constraints in used.constraints else count(constraints, namespace)
        if number and not self._time.take(namespace, self._nodes() * (PRICE_S + PRICE_OF_EACH_S * number)):
            return "new constraints of a namespace are evaluated at a limited rate: this pod is considered shortly"
        used.add(task_class.id, constraints)
        return None

    def sweep(self) -> None:
        """Drop classes that are no longer pending, once a minute."""
        if self._clock() < self._swept_s + FORGET_S:
            return
        self._swept_s = self._clock()
        for namespace in list(self._used):
            if not self._recount(namespace).shapes:
                del self._used[namespace]

    def _exceeded(self, namespace: str, used: _Used, constraints: model.Constraints) -> str | None:
        limits = self._limits
        more = 0 if constraints in used.constraints else count(constraints, namespace)
        if len(used.shapes) >= limits.max_shapes:
            what = f"{limits.max_shapes} shapes (requests and constraints; tenantLimits.maxShapes)"
        elif used.total + more > limits.max_constraints:
            what = f"{limits.max_constraints} constraints (tenantLimits.maxConstraints)"
        else:
            return None
        return (
            f"at most {what} of pending pods in namespace {namespace} are considered at a time: this pod is considered "
            "when others were placed or deleted; give pods the same requests and constraints if possible"
        )

    def _recount(self, namespace: str) -> _Used:
        now_s, former = self._clock(), self._used.get(namespace)
        if former is not None and now_s < former.at_s + RECOUNT_S:
            return former
        used = self._used[namespace] = _Used(namespace, now_s)
        if former is not None:
            for task_class in self._waiting(namespace):
                if task_class.id in former.shapes:
                    used.add(task_class.id, task_class.constraints)
        return used
