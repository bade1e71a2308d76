"""ResourceQuotas before admission: what a gang will create must fit together, for a driver retries silently.

The API server refuses an executor that exceeds a quota, and its driver requests the next one, without a word to
anybody. So a driver starts only when its namespace's quotas have room for it and for its minimum of executors.
"""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from boathouse.cluster import views, wire
from boathouse.scheduling.pods import requests, translate
from boathouse.scheduling.pods.states import PendingReason
from boathouse_policies import model

EXCEEDS_QUOTA = "ExceedsQuota"
"""More is requested than a quota ever allows."""
QUOTA_EXCEEDED = "QuotaExceeded"
"""More is requested than others leave of a quota now."""

Amounts = Mapping[str, int]
"""By resource name, as `Resources.by_name`, and by line of `translate.LIMITS`: millicores, bytes, counts."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A line of a quota that counts pods or what they request.

    Attributes:
        name: The name that the quota has for the resource.
        resource: The resource.
        hard: The limit, in nano-units.
        used: What of it is used.
    """

    name: str
    resource: str
    hard: int
    used: int


class Quotas:
    """The quotas of all namespaces.

    Attributes:
        changed: Namespaces with a quota that changed since this was last cleared.
    """

    def __init__(self) -> None:
        self._quotas: dict[str, dict[str, views.QuotaView]] = {}
        self.changed: set[str] = set()

    def set(self, quota: views.QuotaView) -> None:
        """Add or replace a quota."""
        self._quotas.setdefault(quota.metadata.namespace, {})[quota.metadata.name] = quota
        self.changed.add(quota.metadata.namespace)

    def remove(self, metadata: wire.ObjectMeta) -> None:
        """Remove a quota."""
        found = self._quotas.get(metadata.namespace, {})
        found.pop(metadata.name, None)
        if not found:
            self._quotas.pop(metadata.namespace, None)
        self.changed.add(metadata.namespace)

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

        Args:
            namespace: The namespace.
            wanted: What they request together.
            priority_class: Their PriorityClass; empty for none.
            promised: What other drivers were admitted for and have not created yet.
            held: What of `wanted` is counted as used already, because pods that show them exist.
        """
        if namespace not in self._quotas:
            return None
        others: collections.Counter[str] = collections.Counter()
        for amounts in promised:
            others.update(amounts)
        found = None
        for name, quota in sorted(self._quotas[namespace].items()):
            for limit in _limits(quota) if _matches(quota.spec, priority_class) else ():
                need, other, own = (_nano(limit.resource, one.get(limit.resource, 0)) for one in (wanted, others, held))
                if need > limit.hard:
                    return _reason(EXCEEDS_QUOTA, name, limit, need, "allows")
                used = limit.used + other - own
                if need and used + need > limit.hard and found is None:
                    left = dataclasses.replace(limit, used=used)
                    found = _reason(QUOTA_EXCEEDED, name, left, need, "has left")
        return found


def _limits(quota: views.QuotaView) -> Iterator[Limit]:
    """Yield the lines that concern pods; one that cannot be read limits nothing."""
    for name, hard in (quota.status.hard or quota.spec.hard).items():
        resource = _resource(name)
        if resource is None:
            continue
        try:
            yield Limit(
                name=name,
                resource=resource,
                hard=requests.nano(hard),
                used=requests.nano(quota.status.used.get(name, "0")),
            )
        except ValueError:
            continue


def _resource(name: str) -> str | None:
    """Return the resource that a line of a quota limits; None for what is no request of a pod."""
    if name in {"pods", "count/pods"}:
        return "pods"
    if name in {"cpu", "memory", "ephemeral-storage"}:
        return name
    if name == "limits.memory":  # of a driver and of its executors, it is what they request
        return "memory"
    if name in translate.LIMITS:
        return name
    prefix, _, resource = name.partition(".")
    return resource if prefix == "requests" and resource and resource != "storage" else None


def _matches(spec: views.QuotaSpec, priority_class: str) -> bool:
    """Say whether a quota counts pods that request something and have no deadline."""
    scopes = [views.ScopeRequirement(scope_name=scope, operator="Exists") for scope in spec.scopes]
    selected = () if spec.scope_selector is None else spec.scope_selector.match_expressions
    return all(_selects(one, priority_class) for one in (*scopes, *selected))


def _selects(requirement: views.ScopeRequirement, priority_class: str) -> bool:
    if requirement.scope_name != "PriorityClass":
        return requirement.scope_name in {"NotTerminating", "NotBestEffort"}
    match requirement.operator:
        case "In":
            return priority_class in requirement.values
        case "NotIn":
            return priority_class not in requirement.values
        case "Exists":
            return bool(priority_class)
        case _:
            return not priority_class


def _nano(resource: str, amount: int) -> int:
    return amount * (requests.NANO_PER_MILLI if _is_cpu(resource) else requests.NANO)


def _is_cpu(resource: str) -> bool:
    return resource in {"cpu", "limits.cpu"}


def _reason(reason: str, quota: str, limit: Limit, need: int, verb: str) -> PendingReason:
    left = limit.hard if verb == "allows" else max(0, limit.hard - limit.used)
    message = (
        f"the driver and its minimum of executors request {_text(limit, need)} {limit.name}, and quota {quota} "
        f"{verb} {_text(limit, left)}"
    )
    return PendingReason(reason=reason, message=message)


def _text(limit: Limit, nano: int) -> str:
    amount = requests.milli(nano) if _is_cpu(limit.resource) else requests.ones(nano)
    return model.readable(limit.resource.removeprefix("limits."), amount)
