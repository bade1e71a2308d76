"""NetworkPolicies, judged: who may open a connection to whom. Pure.

https://kubernetes.io/docs/concepts/services-networking/network-policies: a pod that no policy selects is open; else a
connection needs one rule of one policy that permits it, at its source (egress) and at its target (ingress).
"""

import dataclasses
import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

Policy = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One end of a connection.

    Attributes:
        namespace: Its name, which is also its label kubernetes.io/metadata.name.
        ports: The numbers of its named ports.
        address: The address of a node or another machine, which is no pod; empty for a pod.
    """

    namespace: str
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    ports: Mapping[str, int] = dataclasses.field(default_factory=dict)
    namespace_labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    address: str = ""


def allowed(policies: Iterable[Policy], source: Pod, target: Pod, port: int, protocol: str = "TCP") -> bool:
    """Whether policies let a pod connect to a port of another."""
    policies = list(policies)
    return _permits(policies, "Egress", source, target, target, port, protocol) and _permits(
        policies, "Ingress", target, source, target, port, protocol
    )


def _permits(
    policies: list[Policy], direction: str, subject: Pod, peer: Pod, target: Pod, port: int, protocol: str
) -> bool:
    selecting = [
        policy["spec"]
        for policy in policies
        if policy["metadata"]["namespace"] == subject.namespace
        and direction in policy["spec"].get("policyTypes", ["Ingress"])
        and selects(policy["spec"].get("podSelector", {}), subject.labels)
    ]
    field, peers = ("ingress", "from") if direction == "Ingress" else ("egress", "to")
    rules = [(spec, rule) for spec in selecting for rule in spec.get(field) or ()]
    own = subject.namespace
    return not selecting or any(
        _includes(rule.get(peers), peer, own) and _opens(rule.get("ports"), target, port, protocol) for _, rule in rules
    )


def _includes(peers: Iterable[Mapping[str, Any]] | None, pod: Pod, own_namespace: str) -> bool:
    """No peers: everybody. An ipBlock is for machines, which are peers with an address."""
    return not peers or any(_is(peer, pod, own_namespace) for peer in peers)


def _is(peer: Mapping[str, Any], pod: Pod, own_namespace: str) -> bool:
    if "ipBlock" in peer:
        return bool(pod.address) and ipaddress.ip_address(pod.address) in ipaddress.ip_network(peer["ipBlock"]["cidr"])
    if pod.address:
        return False
    labels = {"kubernetes.io/metadata.name": pod.namespace, **pod.namespace_labels}
    near = selects(peer["namespaceSelector"], labels) if "namespaceSelector" in peer else pod.namespace == own_namespace
    return near and selects(peer.get("podSelector", {}), pod.labels)


def _opens(ports: Iterable[Mapping[str, Any]] | None, target: Pod, port: int, protocol: str) -> bool:
    def opens(one: Mapping[str, Any]) -> bool:
        if one.get("protocol", "TCP") != protocol:
            return False
        number = target.ports.get(one["port"]) if isinstance(one.get("port"), str) else one.get("port")
        return "port" not in one or (number is not None and number <= port <= one.get("endPort", number))

    return not ports or any(opens(one) for one in ports)


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a label selector matches labels; an empty one matches all."""
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        _meets(one, labels) for one in selector.get("matchExpressions", ())
    )


def _meets(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values", ())
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    raise ValueError(f"{expression['operator']} is no operator of a label selector")
