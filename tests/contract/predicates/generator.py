"""Random clusters and pods for the comparison with kube-scheduler: small, and full of borderline cases.

A case is a few nodes, what their pods hold, and a probe. Each case is about a handful of features, so that most probes
fit somewhere and few fit everywhere. All is decided by the seed.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

Manifest = dict[str, Any]

RUNTIME_CLASS: Manifest = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "heavy"},
    "handler": "heavy",
    "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
}
NODES = 3
GPU = "example.com/gpu"
HUGE = "hugepages-2Mi"
_CPU = ("0", "1m", "100m", "250m", "500m", "1")
_MEMORY = ("0", "64Mi", "100M", "256Mi", "512Mi", "1Gi")
_SIZES = ({}, {"cpu": "250m"}, {"cpu": "500m", "memory": "256Mi"}, {"cpu": "100m", "memory": "1Gi"}, {"memory": "100M"})
_LABELS = {"zone": ("a", "b", "c"), "disk": ("ssd", "hdd"), "size": ("1", "4", "8", "big", "007", "0x8", "1_000")}
_BOUNDS = ("0", "3", "4", "7", "soon", "007", "1_000", "9223372036854775808")
_TAINTS = {"dedicated": ("spark", "batch", ""), "fault": ("", "disk"), "node.kubernetes.io/memory-pressure": ("",)}
_PORTS = {(port, protocol) for port in range(8080, 8083) for protocol in ("TCP", "UDP")}
_DRIVERS = ("ebs.csi.aws.com", "pd.csi.storage.gke.io", "disk.csi.azure.com", "cinder.csi.openstack.org")
_EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
FEATURES = (
    "selector",
    "affinity",
    "numbers",
    "fields",
    "taints",
    "cordon",
    "init",
    "sidecars",
    "overhead",
    "pod-level",
    "resize",
    "pod-level-resize",
    "ports",
    "extended",
    "hugepages",
    "storage",
    "pods",
    "ended",
    "limits",
    "volume",
    "zone",
    "near",
    "apart",
    "hermits",
    "spread",
    "namespaces",
    "disks",
    "attached",
)
OF_PODS = frozenset({"near", "apart", "hermits", "spread", "namespaces"})
"""Features about other pods: of a case with one of them, one probe at a time is there."""
NAMESPACE = "default"
NAMESPACE_LABELS = {"env": "live"}
SEEDS = range(1, 11)
CASES = 200
"""Cases of each seed: 2,000 in all."""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A pod that is on a node: its manifest, the status a kubelet would have written, and whether it is going."""

    manifest: Manifest
    status: Manifest
    deleted: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Nodes, what they hold, and the pod that is to be placed."""

    number: int
    features: frozenset[str]
    nodes: tuple[Manifest, ...]
    csi_nodes: tuple[Manifest, ...]
    held: tuple[Held, ...]
    probe: Manifest
    volume: Manifest | None
    claim: Manifest | None

    def probe_for(self, node: str, scheduler: str) -> Manifest:
        """The probe, for a scheduler, bound to say whether it may go to this one node."""
        pod = copy.deepcopy(self.probe)
        pod["metadata"]["name"] = f"{node}-{scheduler}"
        pod["spec"]["schedulerName"] = scheduler
        affinity = pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
        required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": [{}]})
        here = {"key": "metadata.name", "operator": "In", "values": [node]}
        terms = required["nodeSelectorTerms"]
        for term in terms if terms == [{}] else [term for term in terms if term]:  # an empty term must stay one
            term.setdefault("matchFields", []).append(here)
        return pod


def cases(seed: int, numbers: Iterable[int], count: int = CASES, about: Collection[str] = ()) -> Iterator[Case]:
    """Make the cases of a seed; no two have a number in common.

    Args:
        seed: Decides all but the numbers.
        numbers: Their numbers, which their names contain.
        count: How many to make.
        about: Their features; without any, each case has a few of all.
    """
    rng = random.Random(seed)
    for number in itertools.islice(numbers, count):
        yield case(rng, number, frozenset(about or rng.sample(FEATURES, rng.randint(1, 5))))


def case(rng: random.Random, number: int, features: frozenset[str]) -> Case:
    """Make one case with these features."""
    maker = _Maker(rng, number, features)
    nodes = tuple(maker.node(i) for i in range(NODES))
    csi_nodes = tuple(maker.csi_node(node["metadata"]["name"]) for node in nodes if "attached" in features)
    counts = (0, 1, 1, 2, 3) if features & OF_PODS else (0, 0, 1, 1, 2, 3)
    held = tuple(maker.held(node["metadata"]["name"], i) for node in nodes for i in range(rng.choice(counts)))
    volume, claim = maker.volume()
    probe = maker.probe(claim)
    return Case(
        number=number,
        features=features,
        nodes=nodes,
        csi_nodes=csi_nodes,
        held=held,
        probe=probe,
        volume=volume,
        claim=claim,
    )


class _Maker:
    """The parts of a case."""

    def __init__(self, rng: random.Random, number: int, features: frozenset[str]) -> None:
        self._rng = rng
        self._number = number
        self._features = features
        self._taken: set[tuple[int, str]] = set()
        self._kind = rng.randrange(12)  # the pods of a case share disks of a few kinds

    def _about(self, feature: str, chance: float = 0.6) -> bool:
        return feature in self._features and self._rng.random() < chance

    # Nodes

    def node(self, index: int) -> Manifest:
        name = f"c{self._number:04}-n{index}"
        ready = not self._about("taints", 0.1)
        taints = self._taints() if self._about("taints") else []
        if not ready:  # as the node controller has it
            taints.append({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": self._labels() | self._hostname(name)},
            "spec": {"taints": taints, "unschedulable": self._about("cordon", 0.4)},
            "status": {
                "allocatable": (amounts := self._allocatable()),
                "capacity": amounts,
                "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            },
        }

    def _hostname(self, name: str) -> Manifest:
        return {} if self._features & OF_PODS and self._rng.random() < 0.1 else {"kubernetes.io/hostname": name}

    def _labels(self) -> Manifest:
        zone = {"topology.kubernetes.io/zone": self._rng.choice(("a", "b", "c"))} if self._about("zone", 0.8) else {}
        if self._features & OF_PODS and self._rng.random() < 0.85:  # domains are of one case alone
            zone |= {"topology": f"c{self._number:04}-{self._rng.choice('ab')}"}
        return zone | {key: self._rng.choice(values) for key, values in _LABELS.items() if self._rng.random() < 0.7}

    def _taints(self) -> list[Manifest]:
        rng = self._rng
        chosen = rng.sample(sorted(_TAINTS), rng.randint(1, 2))
        return [{"key": key, "value": rng.choice(_TAINTS[key]), "effect": rng.choice(_EFFECTS)} for key in chosen]

    def _allocatable(self) -> Manifest:
        rng = self._rng
        amounts = {"cpu": rng.choice(("500m", "1", "1500m", "2")), "memory": rng.choice(("1Gi", "1500M", "2Gi", "4Gi"))}
        amounts["pods"] = rng.choice(("1", "2", "3")) if self._about("pods") else "110"
        if self._about("storage", 0.8):
            amounts["ephemeral-storage"] = rng.choice(("1Gi", "2Gi"))
        if self._about("extended", 0.8):
            amounts[GPU] = rng.choice(("0", "2", "4", "4"))
        if self._about("hugepages", 0.8):
            amounts[HUGE] = rng.choice(("4Mi", "8Mi", "64Mi"))
        return amounts

    def csi_node(self, name: str) -> Manifest:
        drivers = [
            {"name": driver, "nodeID": name, "allocatable": {"count": self._rng.choice((1, 1, 1, 2))}}
            for driver in _DRIVERS
            if self._rng.random() < 0.8
        ]
        return {"metadata": {"name": name}, "spec": {"drivers": drivers}}

    # A volume that is bound to its claim

    def volume(self) -> tuple[Manifest, Manifest] | tuple[None, None]:
        if not self._features & {"volume", "zone", "attached"}:
            return None, None
        name, rng = f"c{self._number:04}", self._rng
        common = {"accessModes": ["ReadWriteMany"], "storageClassName": "bound"}
        spec: Manifest = {**common, "capacity": {"storage": "1Gi"}, **self._volume_source()}
        if "volume" in self._features:
            terms = [{"matchExpressions": [self._requirement()]} for _ in range(rng.randint(1, 2))]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        labels = {}
        if "zone" in self._features:
            key = rng.choice(("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"))
            labels = {key: rng.choice(("a", "b", "a__b"))}
        spec["claimRef"] = {"namespace": "default", "name": name}
        asked = {**common, "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}}
        volume = {"metadata": {"name": name, "labels": labels}, "spec": spec}
        return volume, {"metadata": {"name": name}, "spec": asked}

    def _volume_source(self) -> Manifest:
        if "attached" not in self._features:
            return {"hostPath": {"path": "/volume"}}
        return self._rng.choice(
            (
                {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}},
                {"awsElasticBlockStore": {"volumeID": "aws://zone/vol-2"}},
                {"cinder": {"volumeID": "c1"}},
                {"hostPath": {"path": "/volume"}},
            )
        )

    # Disks that a pod names itself

    def _disks(self) -> list[Manifest]:
        kinds = (("disks", self._unshared_disk), ("attached", self._attached_disk))
        found = [make() for feature, make in kinds if self._about(feature, 0.9) for _ in range(self._rng.randint(1, 2))]
        return [{"name": f"disk{i}", **disk} for i, disk in enumerate(found)]

    def _unshared_disk(self) -> Manifest:
        rng = self._rng
        name, read_only = rng.choice("aaab"), rng.random() < 0.4
        kinds: tuple[Manifest, ...] = (
            {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}},
            {"awsElasticBlockStore": {"volumeID": f"vol-{name}", "readOnly": read_only}},
            {"iscsi": {"targetPortal": "1.2.3.4", "iqn": f"iqn.2026-01.a:{name}", "lun": 0, "readOnly": read_only}},
            {"rbd": {"monitors": [rng.choice("mmn")], "image": name, "readOnly": read_only}},
        )
        return kinds[(self._kind + rng.choice((0, 0, 1))) % len(kinds)]

    def _attached_disk(self) -> Manifest:
        rng = self._rng
        name = rng.choice("abcdef")
        kinds: tuple[Manifest, ...] = (
            {"gcePersistentDisk": {"pdName": name, "readOnly": True}},
            {"azureDisk": {"diskName": name, "diskURI": f"/subscriptions/{name}", "kind": "Managed"}},
            {"cinder": {"volumeID": f"c{rng.randint(1, 5)}"}},
        )
        return kinds[(self._kind + rng.choice((0, 0, 1))) % len(kinds)]

    # Pods

    def probe(self, claim: Manifest | None) -> Manifest:
        pod = self._pod("probe")
        spec, rng = pod["spec"], self._rng
        if claim is not None:
            source = {"claimName": claim["metadata"]["name"]}
            spec.setdefault("volumes", []).append({"name": "data", "persistentVolumeClaim": source})
        if self._about("selector", 0.8):
            key = rng.choice(sorted(_LABELS))
            spec["nodeSelector"] = {key: rng.choice(_LABELS[key])}
        if self._about("affinity", 0.9) or self._about("fields", 0.9) or self._about("numbers", 0.9):
            terms = [self._term() for _ in range(rng.randint(1, 3))]
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
            spec["affinity"] = {"nodeAffinity": required}
        if "taints" in self._features or "cordon" in self._features:
            spec["tolerations"] = [self._toleration() for _ in range(rng.randint(0, 3))]
        for feature, kind in (("near", "podAffinity"), ("apart", "podAntiAffinity")):
            if self._about(feature, 0.9):
                spec.setdefault("affinity", {})[kind] = self._pod_terms()
        if self._about("spread", 0.9):
            spec["topologySpreadConstraints"] = self._spreads()
        return pod

    def held(self, node: str, index: int) -> Held:
        pod = self._pod(f"{node}-held{index}")
        pod["spec"] |= {
            "nodeName": node,
            "schedulerName": self._rng.choice(("default-scheduler", "other", "boathouse")),
        }
        if self._about("hermits"):
            pod["spec"]["affinity"] = {"podAntiAffinity": self._pod_terms()}
        status: Manifest = {"phase": self._rng.choice(("Pending", "Running", "Running"))}
        if self._about("ended", 0.4):
            status = {"phase": self._rng.choice(("Succeeded", "Failed"))}
        elif self._about("resize", 0.8):
            self._resize(pod, status)
        elif "resources" in pod["spec"] and self._about("pod-level-resize", 0.9):
            actuated, allocated = self._size(), self._size()
            status |= {"resources": {"requests": actuated}, "allocatedResources": allocated}
            self._condition(status)
        deleted = (self._about("ended", 0.3) or self._about("spread", 0.2)) and status["phase"] in {
            "Pending",
            "Running",
        }
        return Held(manifest=pod, status=status, deleted=deleted)

    def _resize(self, pod: Manifest, status: Manifest) -> None:
        """What a kubelet says in the middle of a resize: three answers to how large a container is."""
        for field, where in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
            status[where] = [self._container_status(one["name"]) for one in pod["spec"].get(field, [])]
        self._condition(status)

    def _container_status(self, name: str) -> Manifest:
        rng = self._rng
        found: Manifest = {"name": name, "image": "none", "imageID": "", "ready": False, "restartCount": 0}
        if rng.random() < 0.8:
            found["resources"] = {"requests": self._size()}
        if rng.random() < 0.8:
            found["allocatedResources"] = self._size()
        return found

    def _condition(self, status: Manifest) -> None:
        reason = self._rng.choice(("", "Deferred", "Infeasible"))
        if reason:
            status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]

    def _pod(self, name: str) -> Manifest:
        rng = self._rng
        self._taken = set()
        spec: Manifest = {
            "automountServiceAccountToken": False,
            "containers": [self._container(f"main{i}") for i in range(rng.choice((1, 1, 2)))],
        }
        if self._about("init") or self._about("sidecars"):
            spec["initContainers"] = [self._init_container(i) for i in range(rng.randint(1, 3))]
        if self._about("overhead"):
            spec["runtimeClassName"] = "heavy"
        if self._about("pod-level") or self._about("pod-level-resize", 0.9):
            self._pod_level(spec)
        if volumes := self._disks():
            spec["volumes"] = volumes
        metadata: Manifest = {"name": name}
        if self._features & OF_PODS:
            metadata["labels"] = self._pod_labels()
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _container(self, name: str) -> Manifest:
        container: Manifest = {"name": name, "image": "none", "resources": self._resources()}
        if self._about("ports", 0.8):
            container["ports"] = [self._port()]
        return container

    def _init_container(self, index: int) -> Manifest:
        """A sidecar, or one whose host ports nobody takes while the pod runs."""
        container = self._container(f"init{index}")
        if self._about("sidecars"):
            container["restartPolicy"] = "Always"
        return container

    def _port(self) -> Manifest:
        port, protocol = self._rng.choice(sorted(_PORTS - self._taken))
        self._taken.add((port, protocol))  # the API server wants them different within a pod
        found: Manifest = {"containerPort": port, "hostPort": port, "protocol": protocol}
        if self._rng.random() < 0.5:
            found["hostIP"] = self._rng.choice(("127.0.0.1", "10.0.0.1", "0.0.0.0"))
        return found

    def _resources(self) -> Manifest:
        rng = self._rng
        asked: Manifest = dict(rng.choice(_SIZES)) if rng.random() < 0.7 else self._size()
        limits: Manifest = {}
        if self._about("storage"):
            asked["ephemeral-storage"] = rng.choice(("0", "256Mi", "512Mi", "1Gi"))
        if self._about("extended"):
            asked[GPU] = limits[GPU] = rng.choice(("0", "1", "2"))
        if self._about("hugepages"):
            asked = {"cpu": "250m"} | asked
            asked[HUGE] = limits[HUGE] = rng.choice(("2Mi", "4Mi"))
        if self._about("limits"):  # a limit without a request is a request
            limits[rng.choice(("cpu", "memory"))] = "2Gi"
            asked = {name: amount for name, amount in asked.items() if name not in limits or name in (GPU, HUGE)}
        return {"requests": asked, "limits": limits}

    def _size(self) -> Manifest:
        return {"cpu": self._rng.choice(_CPU), "memory": self._rng.choice(_MEMORY)}

    def _pod_level(self, spec: Manifest) -> None:
        """Pod-level requests must cover the containers'; those are made small here, and the whole large."""
        for container in (*spec["containers"], *spec.get("initContainers", [])):
            container["resources"] = {"requests": {"cpu": "50m", "memory": "32Mi"}}
        cpu, memory = self._rng.choice(("750m", "1", "1250m")), self._rng.choice(("512Mi", "1Gi"))
        asked = {"cpu": cpu, "memory": memory}
        if self._rng.random() < 0.3:
            del asked[self._rng.choice(("cpu", "memory"))]
        spec["resources"] = {"requests": asked}

    # Constraints on other pods: only those of the case, which cannot concern other cases

    def _pod_labels(self) -> Manifest:
        rng = self._rng
        own = {key: rng.choice("ab") for key in ("app", "tier") if rng.random() < 0.6}
        return {"case": f"c{self._number:04}", **own}

    def _selector(self) -> Manifest:
        rng = self._rng
        mine = {"case": f"c{self._number:04}"}
        if rng.random() < 0.5:
            return {"matchLabels": mine}
        if rng.random() < 0.5:
            return {"matchLabels": mine | {rng.choice(("app", "tier")): rng.choice("ab")}}
        key, operator = rng.choice(("app", "tier")), rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        found: Manifest = {"key": key, "operator": operator}
        if operator in {"In", "NotIn"}:
            found["values"] = rng.sample("ab", rng.randint(1, 2))
        return {"matchLabels": mine, "matchExpressions": [found]}

    def _pod_term(self) -> Manifest:
        rng = self._rng
        found: Manifest = {"topologyKey": rng.choice(("kubernetes.io/hostname", "topology"))}
        if rng.random() < 0.9:  # without a selector it selects no pod
            found["labelSelector"] = self._selector()
            if rng.random() < 0.3:
                found[rng.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["tier"]
                found["labelSelector"] = {"matchLabels": {"case": f"c{self._number:04}"}}
        if "namespaces" in self._features:
            found |= rng.choice(
                (
                    {"namespaces": ["elsewhere"]},
                    {"namespaces": ["elsewhere", NAMESPACE]},
                    {"namespaceSelector": {}},
                    {"namespaceSelector": {"matchLabels": NAMESPACE_LABELS}},
                    {"namespaceSelector": {"matchLabels": {"env": "test"}}},
                )
            )
        return found

    def _pod_terms(self) -> Manifest:
        return {REQUIRED: [self._pod_term() for _ in range(self._rng.choice((1, 1, 2)))]}

    def _spread(self) -> Manifest:
        rng = self._rng
        found: Manifest = {
            "topologyKey": rng.choice(("kubernetes.io/hostname", "topology")),
            "maxSkew": rng.choice((1, 1, 1, 2)),
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": rng.choice((self._selector(), self._selector(), self._selector(), {})),
        }
        if rng.random() < 0.5:
            found["minDomains"] = rng.randint(1, 4)
        if rng.random() < 0.3:
            found["matchLabelKeys"] = ["tier"]
            found["labelSelector"] = {"matchLabels": {"case": f"c{self._number:04}"}}
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if rng.random() < 0.7:
                found[policy] = rng.choice(("Honor", "Ignore"))
        return found

    def _spreads(self) -> list[Manifest]:
        found = [self._spread() for _ in range(self._rng.choice((1, 1, 2)))]
        return list({one["topologyKey"]: one for one in found}.values())  # a key may be there once

    # Constraints

    def _term(self) -> Manifest:
        rng = self._rng
        if rng.random() < 0.1:
            return {}
        term: Manifest = {"matchExpressions": [self._requirement() for _ in range(rng.randint(1, 2))]}
        if self._about("fields"):
            name = f"c{self._number:04}-n{rng.randrange(NODES)}"
            operator = rng.choice(("In", "NotIn", "NotIn"))
            term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [name]}]
            if rng.random() < 0.5:
                del term["matchExpressions"]
        return term

    def _requirement(self) -> Manifest:
        rng = self._rng
        key = rng.choice((*sorted(_LABELS), "absent"))
        operators = (
            ("Gt", "Lt") if "numbers" in self._features else ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
        )
        operator = rng.choice(operators)
        found: Manifest = {"key": key, "operator": operator}
        if operator in {"In", "NotIn"}:
            known = _LABELS.get(key, ("x",))
            found["values"] = rng.sample(known, min(len(known), rng.randint(1, 2)))
        elif operator in {"Gt", "Lt"}:
            found |= {"key": rng.choice((key, "size", "size", "size")), "values": [rng.choice(_BOUNDS)]}
        return found

    def _toleration(self) -> Manifest:
        rng = self._rng
        key = rng.choice((*sorted(_TAINTS), "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready", ""))
        effect = rng.choice(("", "", "NoSchedule", "NoExecute"))
        if not key or rng.random() < 0.4:
            return {"key": key, "operator": "Exists", "effect": effect}
        return {"key": key, "operator": "Equal", "value": rng.choice(_TAINTS.get(key, ("",))), "effect": effect}
